"""Baselines: a regression is what is surely slower beyond the noise, and what cannot be compared says why."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opsmith.errors import OpsmithError
from opsmith.measuring.baseline import compare_baseline, read_baseline, write_baseline
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, RecordError, SpeedMeasurement, SpeedRatio
from opsmith.records import CYCLES, TIME

OLD = SpeedMeasurement(
    program="old",
    problem="9a9a",
    shape_set="odd",
    sizes={"M": 127, "N": 509},
    device="fdb5",
    protocol="pairs/1",
    flags="-O3",
    grade=MeasuringGrade.FULL,
    objective=TIME,
    time=Interval(1000.0, 990.0, 1010.0),
)
FAST = SpeedRatio("plain", Interval(2.0, 1.98, 2.02))


def make_time(ns: float) -> Interval:
    return Interval(ns, 0.99 * ns, 1.01 * ns)


@pytest.mark.parametrize(
    ("ns", "is_regression"), [(900.0, False), (1000.0, False), (1030.0, False), (1040.0, False), (1060.0, True)]
)
def test_a_regression_is_slower_beyond_the_noise(ns: float, is_regression: bool) -> None:
    (change,) = compare_baseline([replace(OLD, program="new", flags="-O2", time=make_time(ns))], [OLD])
    assert change.ratio is not None
    assert change.ratio.value == pytest.approx(1000 / ns)
    assert change.compared == "time"
    assert change.is_regression is is_regression


def test_a_slower_machine_is_no_regression_where_a_partner_was_measured() -> None:
    before, now = replace(OLD, ratio=FAST), replace(OLD, program="new", time=make_time(3000.0), ratio=FAST)
    (change,) = compare_baseline([now], [before])
    assert (change.compared, change.is_regression) == ("plain", False)
    slower = replace(now, ratio=replace(FAST, precise=Interval(1.5, 1.48, 1.52)))
    (change,) = compare_baseline([slower], [before])
    assert change.ratio is not None
    assert change.ratio.value == pytest.approx(0.75)
    assert change.is_regression


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": "other"},
        {"sizes": {"M": 1, "N": 509}},
        {"device": "other"},
        {"protocol": "pairs/2"},
        {"grade": MeasuringGrade.SCREEN},
        {"objective": CYCLES},
    ],
)
def test_unlike_measurements_are_not_compared(changes: dict[str, Any]) -> None:
    (change,) = compare_baseline([replace(OLD, time=make_time(9000.0), **changes)], [OLD])
    assert (change.before, change.ratio, change.is_regression) == (None, None, False)
    assert "the baseline has nothing" in change.reason


def test_a_missing_figure_is_said_and_is_no_regression() -> None:
    crashed = replace(OLD, time=None, reason="the program crashed")
    for now, before, words in ((crashed, OLD, "now: the program crashed"), (OLD, crashed, "before: the program")):
        (change,) = compare_baseline([now], [before])
        assert change.reason.startswith(words)
        assert not change.is_regression


def test_a_baseline_reads_back_as_it_was(tmp_path: Path) -> None:
    rows = [OLD, replace(OLD, shape_set="large", sizes={"M": 1}, ratio=FAST)]
    write_baseline(tmp_path / "baseline.json", rows)
    assert read_baseline(tmp_path / "baseline.json") == rows
    assert [path.name for path in tmp_path.iterdir()] == ["baseline.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 1}',
        '{"version": 7, "measurements": []}',
        '{"version": 1, "measurements": [7]}',
        "[" * 9999,
    ],
)
def test_what_is_no_baseline_ends_in_one_message(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(RecordError) as refusal:
        read_baseline(path)
    assert "\n" not in str(refusal.value)
    path.unlink()
    with pytest.raises(OpsmithError, match="cannot be read"):
        read_baseline(path)
