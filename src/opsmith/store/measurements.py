"""How fast programs were measured to be, and what profiles say about why: their rows, and the questions to them.

A row is one measurement as a whole, and is named by what it says, clock times apart: the same one added twice is one
row, and a measurement that is made again is another one. Nothing is measured here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func, select

from opsmith.measuring.record import RecordError, SpeedReport, name_unit, read_report, write_report
from opsmith.records import PICTURE, TEXT, ProfileReport, content_hash, dumps
from opsmith.store import schema
from opsmith.store.database import Row, damage_error
from opsmith.store.reading import Reading
from opsmith.store.rows import text_row
from opsmith.store.schema import text


@dataclass(frozen=True)
class StoredSpeed:
    """A measurement within a run."""

    task: str  # its id
    sample: str | None  # that the program is a candidate of; None: a baseline
    report: SpeedReport  # the measurement, and its share of the limit as far as it is known
    seconds: float | None = field(default=None, compare=False)  # that measuring took


@dataclass(frozen=True)
class Profile:
    """What the build or a run of a candidate says about its speed."""

    sample: str  # that the candidate comes from; "": the run began with it
    candidate: str  # Candidate.id
    device: str  # "": it does not depend on one
    kind: str
    media: str  # text/plain, image/png ...
    body: str  # the text; what is no text in base64
    task: str = ""  # its id; "": not stored by an earlier version

    @property
    def report(self) -> ProfileReport:
        """As agents are shown it."""
        return ProfileReport(self.kind, PICTURE if self.media == PICTURE else TEXT, self.body)


class SpeedQueries(Reading):
    """The questions to measurements and profiles."""

    def read_speeds(self, run: str, task: str | None = None) -> list[StoredSpeed]:
        """Of a run, or of a task in it, in the order in which they were made. Raises StoreError for one that cannot
        be read."""
        table = schema.measurement
        columns = (table.c.task, table.c.sample, table.c.seconds, text.c.body)
        query = select(*columns).join(text, text.c.hash == table.c.body).where(table.c.run == run)
        if task is not None:
            query = query.where(table.c.task == task)
        return [self._read_speed(*tuple(row)) for row in self.fetch_rows(query.order_by(table.c.at, table.c.id))]

    def count_speeds(self, run: str) -> int:
        """How many measurements a run has."""
        return self.count_rows(schema.measurement, run)

    def list_measured_runs(self) -> list[str]:
        """The runs that have any measurement."""
        return [row[0] for row in self.fetch_rows(select(schema.measurement.c.run).distinct())]

    def read_profiles(self, run: str, task: str | None = None, programs: Iterable[str] | None = None) -> list[Profile]:
        """Of a whole run, or of these programs (Candidate.id) of a task, in the order in which they were made."""
        table = schema.profile
        columns = (table.c.sample, table.c.candidate, table.c.device, table.c.kind, table.c.media, text.c.body)
        query = select(*columns, table.c.task).join(text, text.c.hash == table.c.body).where(table.c.run == run)
        if task is not None:
            query = query.where(func.coalesce(table.c.task, "").in_((task, "")))
        if programs is not None:
            query = query.where(table.c.candidate.in_(list(programs)))
        rows = self.fetch_rows(query.order_by(table.c.at, table.c.id))
        return [
            Profile(row.sample, row.candidate, row.device, row.kind, row.media, row.body, row.task or "")
            for row in rows
        ]

    def _read_speed(self, task: str, sample: str | None, seconds: float | None, body: str) -> StoredSpeed:
        try:
            return StoredSpeed(task, sample, read_report(json.loads(body)), seconds)
        except (RecordError, ValueError) as error:
            damage = f"a measurement that cannot be read ({error})"
            raise damage_error(self.path, damage, "a measurement as this program wrote it") from None


def speed_rows(run: str, speed: StoredSpeed) -> list[Row]:
    """A measurement as rows; its time stands in columns too, for questions of others to the database."""
    measured = speed.report.measurement
    body = text_row(dumps(write_report(speed.report)))
    place = {"task": speed.task, "sample": speed.sample, "shape": dumps(measured.sizes)}
    names = ("program", "device", "protocol", "grade", "reason")
    against = measured.ratio.partner if measured.ratio is not None else measured.sought_partner or None
    values = {**place, **{name: str(getattr(measured, name)) for name in names}, "against": against}
    values["unit"] = name_unit(measured.objective) or measured.objective.name
    values |= {**_read_ends(speed.report), "body": body[1]["hash"]}
    named = {"run": run, "id": content_hash(dumps(values))}
    return [body, (schema.measurement, {**named, **values, "seconds": speed.seconds, "at": time.time()})]


def profile_rows(run: str, profile: Profile) -> list[Row]:
    """A profile as rows."""
    body = text_row(profile.body)
    values = {name: getattr(profile, name) for name in ("sample", "candidate", "device", "kind", "media", "task")}
    values["body"] = body[1]["hash"]
    named = {"run": run, "id": content_hash(dumps(values))}
    return [body, (schema.profile, {**named, **values, "at": time.time()})]


def _read_ends(report: SpeedReport) -> dict[str, Any]:
    """The time and its interval's ends, as the database gives them back, so that equal figures have one name."""
    period = report.measurement.time
    if period is None:
        return dict.fromkeys(("value", "lower", "upper"))
    return {"value": float(period.value), "lower": float(period.low), "upper": float(period.high)}
