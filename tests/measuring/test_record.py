"""The record of a measurement cannot hold a contradiction, and its JSON form reads back as it was."""

import json
from dataclasses import replace
from typing import Any

import pytest

from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import (
    MeasuringGrade,
    RecordError,
    SpeedMeasurement,
    SpeedRatio,
    read_measurement,
    withhold_ratio,
    write_measurement,
)
from opsmith.records import CYCLES, TIME

CLOCK = Interval(1.5, 1.4, 1.6)
FASTER = SpeedRatio("plain", CLOCK, CLOCK, Claim.FASTER)
FULL = SpeedMeasurement(
    program="c0ffee",
    problem="9a9a",
    shape_set="odd",
    sizes={"M": 127, "N": 509},
    device="fdb5",
    protocol="pairs/1",
    flags="-O3 -march=x86-64-v4",
    grade=MeasuringGrade.FULL,
    objective=TIME,
    time=Interval(1000.0, 990.0, 1010.0),
    ratio=FASTER,
    pairs=100,
    processes=5,
)
WITHOUT_RATIO = withhold_ratio(FULL, "plain", "the clocks contradict each other")
UNMEASURED = replace(FULL, time=None, ratio=None, reason="the program crashed")
SCREEN = replace(FULL, grade=MeasuringGrade.SCREEN, ratio=SpeedRatio("plain", CLOCK), pairs=20, processes=1)


@pytest.mark.parametrize("measurement", [FULL, WITHOUT_RATIO, UNMEASURED, SCREEN, replace(FULL, objective=CYCLES)])
def test_the_json_form_reads_back_as_it_was(measurement: SpeedMeasurement) -> None:
    assert read_measurement(json.loads(json.dumps(write_measurement(measurement)))) == measurement


@pytest.mark.parametrize(
    ("start", "changes", "words"),
    [
        (FULL, {"time": None, "ratio": None}, "expected one where a figure is missing"),
        (FULL, {"reason": "noise"}, "and only there"),
        (UNMEASURED, {"ratio": FASTER}, "a ratio beside a missing figure"),
        (WITHOUT_RATIO, {"ratio": FASTER}, "a ratio beside a missing figure"),
        (FULL, {"program": "plain"}, "to itself"),
        (FULL, {"grade": MeasuringGrade.SCREEN}, "expected full grade for a claim"),
        (FULL, {"pairs": -1}, "-1 pairs"),
    ],
)
def test_a_contradiction_is_refused(start: SpeedMeasurement, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(start, **changes)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (lambda: SpeedRatio("", CLOCK), "no partner"),
        (lambda: SpeedRatio("plain", CLOCK, None, Claim.FASTER), "trusted clock was not asked"),
        (lambda: SpeedRatio("plain", CLOCK, CLOCK, Claim.REFUSED), "expected no ratio"),
    ],
)
def test_a_ratio_says_to_whom_and_by_which_clock(ratio: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ratio()


@pytest.mark.parametrize(
    "changes",
    [{"version": 2}, {"version": None}, {"unit": "hours"}, {"time": {"value": 1.0}}, {"time": 3}, {"colour": "red"}],
)
def test_another_form_is_refused_with_one_message(changes: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match="measurement: "):
        read_measurement({**write_measurement(FULL), **changes})
