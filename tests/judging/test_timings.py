"""Times of verdicts: what is measured on a task, and what is said over several."""

import pytest
from tiny_target import Tiny

from opsmith.judging.timings import measure_timings, summarise_timings, time_action
from opsmith.records import Scrutiny, Task

TASK = Task("sum", "tiny_target:TINY", "inputs: {x: [1, 2, 3], y: [4, 5, 6]}\nwant: [5, 7, 9]\n")


def test_a_tasks_times() -> None:
    candidates = ["x y +", "x y -", "x y +", "x y", "copy"]
    row = measure_timings(TASK, "copy x a b\na y +\n", candidates, Scrutiny("7"))
    assert row["trials"] == 3
    assert row["large"] is None
    assert 0 < row["check"] < 1
    assert row["parse"] is None, "the text is no Python"
    assert row["base"]["reference"] is None
    assert 0 < row["base"]["trial"] < 1
    assert 0 < row["candidate"] < 1
    assert [refusal["stage"] for refusal in row["refusals"]] == ["TYPE", "PARSE"]
    batch = row["batch"]
    assert (batch["samples"], batch["distinct"], batch["flagged"]) == (5, 4, 0)
    assert batch["stages"] == {"passed": 2, "MATCH": 1, "TYPE": 1, "PARSE": 1}
    assert min(batch["base"], batch["alone"]) > 0
    assert row["memory_mib"] > 10
    assert measure_timings(TASK, "x y +", [], Scrutiny("7"))["batch"] is None


def test_a_text_of_python_is_timed_beside_pythons_own_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "comment", "#")
    assert 0 < measure_timings(TASK, "x", [], Scrutiny("7"))["parse"] < 1


def test_an_action_is_timed_as_often_as_asked() -> None:
    calls: list[int] = []
    assert all(seconds >= 0 for seconds in time_action(lambda: calls.append(1), 3))
    assert len(calls) == 3


def make_row(factor: float, reference: float | None, batch: bool) -> dict[str, object]:
    refusals = [
        {"stage": "TYPE", "check": 3.0 * factor, "parse": 1.0},
        {"stage": "PARSE", "check": 5.0 * factor, "parse": None},
        {"stage": "RUN", "check": 99.0, "parse": 1.0},
    ]
    return {
        "base": {"trial": factor, "reference": reference},
        "large": {"trial": 6.0 * factor, "reference": 2.0} if batch else None,
        "candidate": 2.0 * factor,
        "check": 8.0 * factor,
        "parse": 2.0,
        "refusals": refusals,
        "batch": {"samples": 10, "base": 2.0 * factor, "flagged": 3} if batch else None,
        "memory_mib": 100.0 * factor,
    }


def test_a_summary_has_medians_and_the_worst() -> None:
    summary = summarise_timings(
        {"a": make_row(1.0, 0.5, True), "b": make_row(2.0, None, False), "c": make_row(4.0, 1.0, True)}
    )
    assert summary == {
        "tasks": 3,
        "trial_ms": {"median": 2000.0, "worst": 4000.0},
        "base_over_reference": {"median": 3.0, "worst": 4.0},
        "large_over_reference": {"median": 7.5, "worst": 12.0},
        "candidate_ms": {"median": 4000.0, "worst": 8000.0},
        "check_over_parse": {"median": 8.0, "worst": 16.0},
        "refusal_ms": {"median": 8000.0, "worst": 20000.0},
        "refusal_over_parse": {"median": 6.0, "worst": 12.0},
        "refusals": 6,
        "candidates_per_second": {"median": 3.125, "worst": 1.25},
        "candidates_per_second_of_all": 2.0,
        "flagged": 6,
        "samples": 20,
        "memory_mib": 400.0,
    }
    alone = summarise_timings({"b": make_row(2.0, None, False)})
    assert (alone["candidates_per_second"], alone["candidates_per_second_of_all"]) == (None, None)
    assert alone["base_over_reference"] is None
