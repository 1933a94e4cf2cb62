"""A finished tiny run with measurements of its kept programs that were never made: for tests of how they are shown."""

from pathlib import Path

from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import (
    MeasuringGrade,
    RooflineShare,
    SpeedMeasurement,
    SpeedRatio,
    SpeedReport,
)
from opsmith.records import TIME, Candidate
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows

REASON = "a wrong output while it was timed: <b>y</b>"
FULL, SCREEN = MeasuringGrade.FULL, MeasuringGrade.SCREEN


def write_run(path: Path) -> str:
    """The run's id."""
    with Store.open(path) as store:
        result = improve(TASKS, TinyModel(), SETTINGS.replace(seed=1, samples=6), store, judge=InProcess())
        for number, kept in enumerate(store.read_experiences(result.run)):
            program = Candidate(kept.experience.source).id
            for report in list_reports(program, is_first=number == 0):
                store.put(speed_rows(result.run, StoredSpeed(kept.experience.task.id, kept.sample, report))).result()
    return result.run


def list_reports(program: str, is_first: bool) -> list[SpeedReport]:
    """Two claims and a refusal of the first program; of others a claim of no difference, and a screen."""
    if is_first:
        withheld = make_measurement(program, "huge", None, None, FULL, None, REASON)
        return [make_report(program, "small", 12.5, 4.0), make_report(program, "large", 900.0, 9.0),
                SpeedReport(withheld, None)]  # fmt: skip
    return [
        make_report(program, "small", 10.0, 1.0, claim=Claim.NO_DIFFERENCE),
        make_report(program, "large", 700.0, 8.0, SCREEN, None),
    ]


def make_report(
    program: str,
    shape_set: str,
    microseconds: float,
    ratio: float,
    grade: MeasuringGrade = FULL,
    claim: Claim | None = Claim.FASTER,
) -> SpeedReport:
    share = RooflineShare(spread(0.25), None, spread(12.0))
    return SpeedReport(make_measurement(program, shape_set, microseconds, ratio, grade, claim), share)


def make_measurement(
    program: str,
    shape_set: str,
    microseconds: float | None,
    ratio: float | None,
    grade: MeasuringGrade,
    claim: Claim | None,
    reason: str = "",
) -> SpeedMeasurement:
    trusted = spread(ratio, 0.1) if ratio is not None and claim is not None else None
    return SpeedMeasurement(
        program=program,
        problem="p",
        shape_set=shape_set,
        sizes={"M": 512, "N": 77},
        device="d" * 64,
        protocol="pairs/1",
        flags="a compiler, some flags",
        grade=grade,
        objective=TIME,
        time=None if microseconds is None else spread(1e3 * microseconds),
        ratio=None if ratio is None else SpeedRatio("plain", spread(ratio), trusted, claim),
        reason=reason,
        sought_partner="plain" if reason else "",
        pairs=100,
        processes=5,
        device_name="a processor",
    )


def spread(value: float, share: float = 0.02) -> Interval:
    return Interval(value, value / (1 + share), value * (1 + share))
