"""Costs of right programs stand beside their partner's; what cannot be counted is a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.errors import UsageError, VerifierError
from opsmith.judging.verifier import verify
from opsmith.measuring.costs import CostRequest, measure_costs
from opsmith.measuring.objectives import choose_figures
from opsmith.measuring.orders import SpeedOrder, name_measurement
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.records import CYCLES, OFF_CHIP_BYTES, ON_CHIP_BYTES, Candidate, Task

register()
SUM = tiny_task("sum_0", "x y + z +")


def count_words(task: Task, source: str) -> Mapping[str, Any]:
    return TINY.estimate_cost(task, source)


def refuse_counting(task: Task, source: str) -> Mapping[str, Any]:
    raise UsageError(f"target {task.target!r} has no cost model")


def lose_worker(task: Task, source: str) -> Mapping[str, Any]:
    raise VerifierError("no worker process can be started")


def request(source: str, partner: str | None) -> CostRequest:
    return CostRequest(SUM, source, None if partner is None else ("plain", partner), MeasuringGrade.SCREEN)


def count_one(request: CostRequest) -> SpeedMeasurement:
    [report] = measure_costs(verify, count_words, request)
    return report.measurement


def test_cycles_are_one_point_with_a_ratio_to_the_partner_s() -> None:
    measured = count_one(request("x y + z +", "z x y + +"))
    assert measured.objective == CYCLES
    assert measured.device == f"emulated:{TINY.verifier}"
    assert measured.time is not None
    assert (measured.time.low, measured.time.value, measured.time.high) == (50.0, 50.0, 50.0)
    assert measured.ratio is not None
    assert (measured.ratio.precise.value, measured.ratio.claim) == (1.0, None)
    assert count_one(request("x y + z +", None)).ratio is None


@pytest.mark.parametrize(
    ("source", "partner", "count", "has_time", "words"),
    [
        ("x y +", "x y + z +", count_words, False, "the program is not right: "),
        ("x y + z +", "x y +", count_words, True, "the partner plain is not right: "),
        ("x y + z +", None, refuse_counting, False, "the program was not counted: target 'tiny' has no cost model"),
        ("x y + z +", None, lose_worker, False, "the program was not counted: no worker process can be started"),
        ("x y + z +", None, lambda task, source: {"words": 3}, False, "the program has cycles that cannot be said"),
    ],
)
def test_what_cannot_be_counted_is_a_reason(
    source: str, partner: str | None, count: Any, has_time: bool, words: str
) -> None:
    [measured] = [report.measurement for report in measure_costs(verify, count, request(source, partner))]
    assert (measured.time is not None) == has_time
    assert measured.reason.startswith(words)
    assert measured.sought_partner == ("plain" if partner else "")


def test_every_unit_has_a_measurement_of_its_own_from_one_count() -> None:
    counts: list[str] = []

    def count_all(task: Task, source: str) -> Mapping[str, Any]:
        counts.append(source)
        return {"cycles": 10 * len(source), "on_chip_bytes": 4, "off_chip_bytes": None}

    order = replace(request("x y + z +", "z x y + +"), objectives=(CYCLES, ON_CHIP_BYTES))
    cycles, bytes_on_chip = [report.measurement for report in measure_costs(verify, count_all, order)]
    assert counts == ["x y + z +", "z x y + +"]
    assert bytes_on_chip.time is not None
    assert (bytes_on_chip.time.value, bytes_on_chip.objective) == (4.0, ON_CHIP_BYTES)
    assert name_measurement("sum_0", cycles) != name_measurement("sum_0", bytes_on_chip)
    [unknown] = measure_costs(verify, count_all, replace(order, objectives=(OFF_CHIP_BYTES,)))
    assert unknown.measurement.reason == "the program has off_chip_bytes that cannot be said"


def test_an_order_s_partner_is_the_task_s_own_program_or_the_stated_one_and_never_itself() -> None:
    task = replace(SUM, impl="z x y + +")
    order = SpeedOrder(task, "x y + z +", MeasuringGrade.SCREEN)
    assert order.find_partner() == ("plain", "z x y + +")
    stated = replace(order, partner="y x + z +")
    assert stated.find_partner() == (Candidate("y x + z +").id, "y x + z +")
    assert replace(order, partner=task.impl).find_partner() == ("plain", task.impl)
    assert replace(order, partner=order.source).find_partner() is None
    assert replace(order, source="z x y + +").find_partner() is None


def test_an_objective_that_a_target_cannot_say_is_refused_with_what_it_can() -> None:
    assert choose_figures(SUM, "front") == ("cycles", "on_chip_bytes", "off_chip_bytes")
    assert choose_figures(SUM, "on_chip_bytes") == ("on_chip_bytes",)
    with pytest.raises(
        UsageError, match="objective 'time': programs of target tiny have no such figure; they have: cycles"
    ):
        choose_figures(SUM, "time")
