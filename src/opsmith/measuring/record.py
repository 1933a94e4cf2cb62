"""The record of a measurement: how fast one program is at one shape set on one device, and against whom.

It cannot hold a contradiction: a figure has its unit and a reason where there is none, a ratio its partner, and a claim
is made only of the full grade. The store keeps the JSON form here, as files and answers hold it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.records import CYCLES, OFF_CHIP_BYTES, ON_CHIP_BYTES, TIME, Objective, to_json

VERSION = 1  # of the JSON form
PLAIN = "plain"  # the task's own program as a partner
_BY_UNIT = {"ns": TIME, **{known.name: known for known in (CYCLES, ON_CHIP_BYTES, OFF_CHIP_BYTES)}}  # a word stored


class MeasuringGrade(StrEnum):
    """How much was done for the figures."""

    SCREEN = "screen"  # a few pairs in one process: steers a search, is never published
    FULL = "full"  # many pairs in several processes, and both clocks


class RecordError(OpsmithError):
    """The JSON form of a measurement is not one that this version reads."""

    exit_code = 2


@dataclass(frozen=True)
class SpeedRatio:
    """Partner's time by the program's: above 1 the program is the faster one."""

    partner: str  # Candidate.id, or the name of a baseline: plain, eager, compile
    precise: Interval  # by the clock in the process
    trusted: Interval | None = None  # by the clock outside it; None: not asked
    claim: Claim | None = None  # None: no claim is made of it

    def __post_init__(self) -> None:
        if not self.partner:
            raise ValueError("SpeedRatio: no partner; expected the name of what it is to")
        if self.claim in (Claim.FASTER, Claim.IN_PROCESS) and self.trusted is None:
            raise ValueError(f"SpeedRatio to {self.partner}: {self.claim.value}, yet the trusted clock was not asked")
        if self.claim is Claim.REFUSED:
            raise ValueError(f"SpeedRatio to {self.partner}: refused; expected no ratio, and a reason")


@dataclass(frozen=True)
class SpeedMeasurement:
    """What was measured of one program; every figure is None where it cannot be said, and `reason` says why."""

    program: str  # Candidate.id, or the name of a baseline
    problem: str  # its digest
    shape_set: str
    sizes: Mapping[str, int]  # by symbol
    device: str  # Device.digest, or `emulated:` and the simulated language's version
    protocol: str  # name and version: figures of different ones are not compared
    flags: str  # of the build; "": nothing was built
    grade: MeasuringGrade
    objective: Objective  # what `time` is a figure of
    time: Interval | None  # of one call
    ratio: SpeedRatio | None = None  # None: against nobody, or it cannot be said
    reason: str = ""  # why there is no time, or no ratio to `sought_partner`
    sought_partner: str = ""  # whom it was to be compared with when there is no ratio
    pairs: int = 0  # behind the figures, all processes together
    processes: int = 0
    device_name: str = ""  # of the processor, for people; "": the device says it all
    drawing: float = 0.0  # seconds that inputs of timed calls took to be drawn, which is in no figure
    repeats: str = ""  # which of these inputs came again, in words; "": none

    def __post_init__(self) -> None:
        contradiction = self._find_contradiction()
        if contradiction:
            raise ValueError(f"SpeedMeasurement of {self.program[:8]} at {self.shape_set}: {contradiction}")

    def _find_contradiction(self) -> str:
        is_missing = self.time is None or bool(self.sought_partner)
        if is_missing != bool(self.reason):
            return f"reason {self.reason!r}; expected one where a figure is missing, and only there"
        if self.ratio is not None and (self.sought_partner or self.time is None):
            return "a ratio beside a missing figure"
        if self.ratio is not None and self.ratio.partner == self.program:
            return "a ratio to itself"
        if self.grade is MeasuringGrade.SCREEN and self.ratio is not None and self.ratio.claim is not None:
            return f"a screen claims {self.ratio.claim.value!r}; expected full grade for a claim"
        if self.pairs < 0 or self.processes < 0 or not 0 <= self.drawing < math.inf:
            return f"{self.pairs} pairs in {self.processes} processes, {self.drawing} s of drawing"
        return ""


@dataclass(frozen=True)
class RooflineShare:
    """What a measured time comes to."""

    share: Interval | None  # of the bound: 1 is as fast as the peaks allow; None: it cannot be said
    gflops: Interval | None  # 10^9 operations per second; None: there are none, or they cannot be counted
    gbytes: Interval  # 10^9 bytes per second
    reason: str = ""  # why there is no share


@dataclass(frozen=True)
class SpeedReport:
    """A measurement, and what it comes to beside what the device allows."""

    measurement: SpeedMeasurement
    share: RooflineShare | None  # None: there is no time, or its unit has no limit


def withhold_ratio(measurement: SpeedMeasurement, partner: str, reason: str) -> SpeedMeasurement:
    """The same without its ratio to `partner`, which cannot be said for this reason."""
    return replace(measurement, ratio=None, sought_partner=partner, reason=reason)


def write_measurement(measurement: SpeedMeasurement) -> dict[str, Any]:
    """Its JSON form."""
    values = to_json(measurement) | {"objective": name_unit(measurement.objective) or to_json(measurement.objective)}
    return {"version": VERSION, **{"unit" if name == "objective" else name: value for name, value in values.items()}}


def name_unit(objective: Objective) -> str:
    """The word that stores know an objective by; "": it is a target's own, which they hold as a whole."""
    return next((unit for unit, known in _BY_UNIT.items() if known == objective), "")


def read_measurement(data: Mapping[str, Any]) -> SpeedMeasurement:
    """The measurement of a JSON form. Raises RecordError."""
    version = data.get("version") if isinstance(data, Mapping) else None
    if version != VERSION:
        raise RecordError(f"measurement: given version {version!r}; expected {VERSION}")
    try:
        values = {name: value for name, value in data.items() if name not in ("version", "unit")}
        values["grade"], values["objective"] = MeasuringGrade(values["grade"]), _read_objective(data["unit"])
        values["time"], values["ratio"] = _read_interval(values["time"]), _read_ratio(values["ratio"])
        return SpeedMeasurement(**values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"measurement: {error}; expected what write_measurement gives") from None


def write_report(report: SpeedReport) -> dict[str, Any]:
    """A measurement's JSON form, and beside its figures `limit`: what they come to."""
    return write_measurement(report.measurement) | {"limit": to_json(report.share)}


def read_report(data: Mapping[str, Any]) -> SpeedReport:
    """The report of a JSON form. Raises RecordError."""
    is_mapping = isinstance(data, Mapping)
    measurement = read_measurement({name: data[name] for name in data if name != "limit"} if is_mapping else data)
    try:
        return SpeedReport(measurement, _read_share(data["limit"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"measurement: {error}; expected what write_report gives") from None


def _read_objective(data: str | Mapping[str, Any]) -> Objective:
    if isinstance(data, Mapping):
        return Objective(**data)
    if data not in _BY_UNIT:
        raise ValueError(f"unit {data!r}; expected one of {', '.join(_BY_UNIT)}, or an objective")
    return _BY_UNIT[data]


def _read_share(data: Mapping[str, Any] | None) -> RooflineShare | None:
    if data is None:
        return None
    share, gflops = _read_interval(data["share"]), _read_interval(data["gflops"])
    return RooflineShare(share, gflops, Interval(**data["gbytes"]), data["reason"])


def _read_interval(data: Mapping[str, float] | None) -> Interval | None:
    return None if data is None else Interval(**data)


def _read_ratio(data: Mapping[str, Any] | None) -> SpeedRatio | None:
    if data is None:
        return None
    precise, claim = Interval(**data["precise"]), data["claim"]
    return SpeedRatio(
        data["partner"], precise, _read_interval(data["trusted"]), None if claim is None else Claim(claim)
    )


def describe_partner(partner: str) -> str:
    """Whom a program is compared with, in words.

    >>> describe_partner("eager"), describe_partner("4d08c2be" * 8)
    ('eager', 'program 4d08c2be')
    """
    return f"program {partner[:8]}" if len(partner) == 64 else partner
