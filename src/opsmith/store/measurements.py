"""How fast candidates were measured to be, and what profiles say about why: their rows, and the questions to them.

A row is named by what it says, clock times apart: the same one added twice is one row, and a measurement that is made
again is another one. Nothing is measured here.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import select

from opsmith.records import content_hash, dumps
from opsmith.store import schema
from opsmith.store.database import Row
from opsmith.store.queries import Reader
from opsmith.store.rows import text_row
from opsmith.store.schema import text

Grade = Literal["screen", "full"]  # steers a search; may be published


@dataclass(frozen=True)
class Measurement:
    """One figure of one program at one shape on one device; None and a reason where it cannot be said."""

    task: str
    program: str  # Candidate.id, or the name of a baseline
    device: str
    shape: Mapping[str, int]  # sizes by symbol
    protocol: str
    grade: Grade
    unit: str  # of value, lower and upper: ns, cycles, or ratio
    value: float | None
    lower: float | None = None  # the interval's ends; None: it has none, or none is known
    upper: float | None = None
    reason: str = ""  # why there is no value
    sample: str | None = None  # that the program is a candidate of; None: a baseline
    against: str | None = None  # what a ratio is to, named as `program` is; None: the figure stands alone
    notes: Mapping[str, Any] = field(default_factory=dict)  # all else that was noted, as JSON data
    seconds: float | None = field(default=None, compare=False)  # that measuring took

    def __post_init__(self) -> None:
        name = f"Measurement of {self.program[:8]}"
        if (self.value is None) != bool(self.reason):
            raise ValueError(f"{name}: given value {self.value}, reason {self.reason!r}; expected one of the two")
        figures = [figure for figure in (self.lower, self.value, self.upper) if figure is not None]
        if not all(map(math.isfinite, figures)) or figures != sorted(figures):
            raise ValueError(f"{name}: given lower, value, upper {figures}; expected finite numbers that do not fall")


@dataclass(frozen=True)
class Profile:
    """What the build or a run of a candidate says about its speed."""

    sample: str
    candidate: str  # Candidate.id
    device: str
    kind: str
    media: str  # text/plain, image/png ...
    body: str  # the text; what is no text in base64


def measurement_rows(run: str, measured: Measurement) -> list[Row]:
    """A measurement as rows."""
    notes = text_row(dumps(measured.notes))
    names = ("task", "sample", "program", "against", "device", "protocol", "grade", "unit")
    what = {name: getattr(measured, name) for name in names} | {"shape": dumps(measured.shape)}
    figures = {name: _as_float(getattr(measured, name)) for name in ("value", "lower", "upper")}
    values = {**what, **figures, "reason": measured.reason, "body": notes[1]["hash"]}
    named = {"run": run, "id": content_hash(dumps(values))}
    return [notes, (schema.measurement, {**named, **values, "seconds": measured.seconds, "at": time.time()})]


def profile_rows(run: str, profile: Profile) -> list[Row]:
    """A profile as rows."""
    body = text_row(profile.body)
    values = {name: getattr(profile, name) for name in ("sample", "candidate", "device", "kind", "media")}
    values["body"] = body[1]["hash"]
    return [body, (schema.profile, {"run": run, "id": content_hash(dumps(values)), **values, "at": time.time()})]


def read_measurements(reader: Reader, run: str) -> list[Measurement]:
    """Of a whole run, in the order in which they were made."""
    table = schema.measurement
    query = select(table, text.c.body.label("notes")).join(text, text.c.hash == table.c.body)
    rows = reader.fetch_rows(query.where(table.c.run == run).order_by(table.c.at, table.c.id))
    return [_read_measurement(row._asdict()) for row in rows]


def read_profiles(reader: Reader, run: str) -> list[Profile]:
    """Of a whole run, in the order in which they were made."""
    table = schema.profile
    columns = (table.c.sample, table.c.candidate, table.c.device, table.c.kind, table.c.media, text.c.body)
    query = select(*columns).join(text, text.c.hash == table.c.body)
    return [
        Profile(*tuple(row))
        for row in reader.fetch_rows(query.where(table.c.run == run).order_by(table.c.at, table.c.id))
    ]


def _read_measurement(values: dict[str, Any]) -> Measurement:
    parsed = {"shape": json.loads(values["shape"]), "notes": json.loads(values["notes"])}
    return Measurement(**{name: value for name, value in values.items() if name not in _NOT_TOLD} | parsed)


def _as_float(figure: float | None) -> float | None:
    """As the database gives it back, so that equal figures have one name."""
    return None if figure is None else float(figure)


_NOT_TOLD = {"run", "id", "body", "at"}
