"""Cycles of right programs stand beside their partner's; what cannot be counted is a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.errors import UsageError, VerifierError
from opsmith.judging.verifier import verify
from opsmith.measuring.cycles import CycleRequest, measure_cycles
from opsmith.measuring.record import MeasuringGrade, TimeUnit
from opsmith.records import Task

register()
SUM = tiny_task("sum_0", "x y + z +")


def count_words(task: Task, source: str) -> Mapping[str, Any]:
    return TINY.estimate_cost(task, source)


def refuse_counting(task: Task, source: str) -> Mapping[str, Any]:
    raise UsageError(f"target {task.target!r} has no cost model")


def lose_worker(task: Task, source: str) -> Mapping[str, Any]:
    raise VerifierError("no worker process can be started")


def request(source: str, partner: str | None) -> CycleRequest:
    return CycleRequest(SUM, source, None if partner is None else ("plain", partner), MeasuringGrade.SCREEN)


def test_cycles_are_one_point_with_a_ratio_to_the_partner_s() -> None:
    measured = measure_cycles(verify, count_words, request("x y + z +", "z x y + +")).measurement
    assert measured.unit is TimeUnit.CYCLES
    assert measured.device == f"emulated:{TINY.verifier}"
    assert measured.time is not None
    assert (measured.time.low, measured.time.value, measured.time.high) == (50.0, 50.0, 50.0)
    assert measured.ratio is not None
    assert (measured.ratio.precise.value, measured.ratio.claim) == (1.0, None)
    assert measure_cycles(verify, count_words, request("x y + z +", None)).measurement.ratio is None


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
    measured = measure_cycles(verify, count, request(source, partner)).measurement
    assert (measured.time is not None) == has_time
    assert measured.reason.startswith(words)
    assert measured.sought_partner == ("plain" if partner else "")
