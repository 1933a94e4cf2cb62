"""What is said of repeated measurements of a known ratio."""

from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio
from opsmith.records import TIME
from opsmith_lab.bench.speed import SLOWDOWNS, summarise_accuracy


def make_measurement(ratio: Interval | None) -> SpeedMeasurement:
    return SpeedMeasurement(
        program="program",
        problem="9a9a",
        shape_set="odd",
        sizes={"M": 127},
        device="fdb5",
        protocol="pairs/1",
        flags="-O3",
        grade=MeasuringGrade.FULL,
        objective=TIME,
        time=Interval(9.0, 8.0, 10.0),
        ratio=SpeedRatio("slower", ratio) if ratio is not None else None,
        reason="" if ratio is not None else "the clocks contradict each other",
        sought_partner="" if ratio is not None else "slower",
    )


def test_intervals_missing_figures_and_the_worst_error_are_counted() -> None:
    ratios = [Interval(1.2, 1.1, 1.3), Interval(1.26, 1.25, 1.27), None]
    accuracy = summarise_accuracy(2, 1.2, [make_measurement(ratio) for ratio in ratios])
    assert (accuracy.times, accuracy.within, accuracy.unsaid) == (3, 1, 1)
    assert accuracy.largest_error == 0.05
    assert accuracy.largest_width == round(0.2 / 1.2, 4)


def test_without_a_figure_there_is_no_error() -> None:
    accuracy = summarise_accuracy(0, 1.0, [make_measurement(None)])
    assert (accuracy.within, accuracy.unsaid, accuracy.largest_error) == (0, 1, None)
    assert 1.0 in SLOWDOWNS
