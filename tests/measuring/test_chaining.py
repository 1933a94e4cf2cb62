"""Ratios to torch: chained of two measurements, claimed by the rule of all others, and missing with a reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from opsmith.measuring.chaining import chain_report
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.measuring.torch_partners import EAGER, TorchFigure, TorchRequest, measure_torch, read_answers
from opsmith.records import TIME
from opsmith.running.commands import CommandFailure, CommandResult
from opsmith.suites import load_tasks

PROGRAM = SpeedMeasurement(
    program="p" * 64,
    problem="q" * 64,
    shape_set="small",
    sizes={"M": 8},
    device="cpu",
    protocol="pairs/1",
    flags="",
    grade=MeasuringGrade.FULL,
    objective=TIME,
    time=Interval(100.0, 99.0, 101.0),
    ratio=SpeedRatio("plain", Interval(4.0, 3.9, 4.1), Interval(4.0, 3.6, 4.4), Claim.FASTER),
)
ALONE = replace(PROGRAM, ratio=None)
TORCH = TorchFigure(Interval(200.0, 198.0, 202.0), Interval(0.5, 0.49, 0.51))  # twice as fast as the plain program


def chain(measurement: SpeedMeasurement, figure: TorchFigure) -> SpeedMeasurement:
    return chain_report(SpeedReport(measurement, None), EAGER, figure).measurement


def test_a_chained_ratio_is_the_product_and_less_certain_than_either() -> None:
    ratio = chain(PROGRAM, TORCH).ratio
    assert ratio is not None
    assert ratio.partner == EAGER
    assert ratio.precise.value == pytest.approx(2.0)
    assert ratio.precise.low < 2.0 * 3.9 / 4.0
    assert ratio.trusted is not None
    assert ratio.trusted.low < ratio.precise.low
    assert ratio.claim is Claim.FASTER


def test_faster_than_the_plain_program_is_not_faster_than_torch() -> None:
    slower = TorchFigure(Interval(20.0, 19.0, 21.0), Interval(0.05, 0.049, 0.051))
    ratio = chain(PROGRAM, slower).ratio
    assert ratio is not None
    assert ratio.claim is Claim.SLOWER


def test_the_plain_program_itself_has_the_ratio_that_was_measured() -> None:
    ratio = chain(ALONE, TorchFigure(Interval(200.0, 198.0, 202.0), Interval(2.0, 1.9, 2.1))).ratio
    assert ratio is not None
    assert (ratio.precise.low, ratio.precise.high) == (pytest.approx(1.9), pytest.approx(2.1))
    assert ratio.claim is Claim.FASTER


def test_a_screen_claims_nothing_of_torch() -> None:
    screened = replace(PROGRAM, grade=MeasuringGrade.SCREEN, ratio=SpeedRatio("plain", Interval(4.0, 3.9, 4.1)))
    ratio = chain(screened, TORCH).ratio
    assert ratio is not None
    assert (ratio.claim, ratio.trusted) == (None, None)


def test_without_a_figure_of_torch_the_time_stays_and_the_reason_is_said() -> None:
    chained = chain(PROGRAM, TorchFigure(reason="no C++ compiler"))
    assert (chained.time, chained.ratio, chained.reason) == (PROGRAM.time, None, "no C++ compiler")
    assert chained.sought_partner == EAGER


def test_a_contradicted_clock_is_not_believed_through_torch_either() -> None:
    refused = replace(PROGRAM, time=None, ratio=None, reason="the clocks contradict", sought_partner="plain")
    chained = chain(refused, TORCH)
    assert (chained.ratio, chained.reason, chained.sought_partner) == (None, "the clocks contradict", EAGER)


def test_a_task_without_a_program_of_its_own_has_no_ratio_to_torch() -> None:
    (task,) = load_tasks(("kernels/softmax",), "c")
    comparison = measure_torch(TorchRequest(replace(task, impl=None), {"small": {}}, (EAGER,)))["small"]
    assert "no program of its own" in comparison.figures[EAGER].reason


# -- what the process of torch leaves

REQUEST = TorchRequest(load_tasks(("kernels/softmax",), "c")[0], {"small": {}}, (EAGER,), MeasuringGrade.SCREEN)


def read_answer(data: bytes | None, **result: str) -> TorchFigure:
    files = {"0-0.json": data} if data is not None else {}
    answers = read_answers(REQUEST, {}, CommandResult(files, b"", result.pop("messages", ""), (0,), **result))
    return answers["small"].figures[EAGER]


def test_times_become_a_figure() -> None:
    times = {"plain": [10.0, 10.0, 10.0], "eager": [20.0, 20.0, 20.0]}
    figure = read_answer(json.dumps({"times": times, "reasons": {}}).encode())
    assert figure.time is not None
    assert figure.to_plain is not None
    assert (figure.time.value, figure.to_plain.value) == (pytest.approx(20.0), pytest.approx(2.0))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "no time"),
        (b"[]", "no time"),
        (b'{"times": {"plain": 3}}', "no time"),
        (b'{"times": {"plain": [1.0, 1.0], "eager": [1.0, 0.0]}, "reasons": {}}', "positive"),
        (b'{"times": {"plain": [1.0, 1.0], "eager": [1.0]}, "reasons": {}}', "pairs"),
        (b'{"times": {"plain": [1.0]}, "reasons": {"eager": "it fails"}}', "it fails"),
        (b'{"times": {}, "reasons": {}}', "plain"),
        (b'{"problem": "the reference fails"}', "the reference fails"),
        (None, "no answer"),
    ],
)
def test_an_answer_that_is_none_is_a_reason(data: bytes | None, words: str) -> None:
    figure = read_answer(data)
    assert figure.time is None
    assert words in figure.reason


def test_a_broken_limit_is_the_reason() -> None:
    assert "200 s" in read_answer(None, limit="200 s").reason


def test_without_isolation_torch_is_not_timed() -> None:
    comparison = read_answers(REQUEST, {}, CommandFailure("no isolation"))["small"]
    assert comparison.figures[EAGER].reason == "no isolation"
