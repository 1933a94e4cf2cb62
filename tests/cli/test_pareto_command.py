"""`opsmith pareto`: the right programs of a run that no other beats, counted once and stored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opsmith.store import Store


@pytest.fixture
def sampled(opsmith: Callable[..., Any]) -> str:
    """A run of the search on one task."""
    arguments = ("--tasks", "index_1", "--model", "search", "--samples", 16, "--temperature", 0.7, "--max-rounds", 1)
    done = opsmith("run", *arguments, "--no-report", "--json")
    run: str = json.loads(done.out)["run"]
    return run


def test_the_front_of_a_run_is_counted_once_printed_and_drawn(
    opsmith: Callable[..., Any], sampled: str, tmp_path: Path
) -> None:
    first = opsmith("pareto", sampled, "--json", "--figure", "fronts.svg")
    assert first.code == 0, first.err
    answer = json.loads(first.out)
    [front] = answer["tasks"]
    assert answer["figures"] == ["cycles", "on_chip_bytes", "off_chip_bytes"]
    assert (front["task"], front["below_own"], front["hypervolume"]) == ("index_1", [], 0.125)
    [point] = front["front"]
    assert point["figures"] == front["own"] == {"cycles": 77.0, "on_chip_bytes": 1009.0, "off_chip_bytes": 363.0}
    assert front["programs"] > 1
    assert "index_1" in (tmp_path / "fronts.svg").read_text("utf-8")
    with Store.open("runs") as store:
        stored = len(store.read_speeds(sampled))
        assert opsmith("pareto", sampled, "--json").out == first.out
        assert len(store.read_speeds(sampled)) == stored == 3 * (front["programs"] + 1)
    shown = opsmith("pareto", sampled, "--objectives", "cycles,on_chip_bytes").out
    assert "fewer cycles than the task's own program: 0 tasks" in shown
    assert "cycles: least (own)" in shown
    assert "77 (77)" in shown
    assert "the own program alone has 0.2500" in shown
    refused = opsmith("pareto", sampled, "--objectives", "time")
    assert refused.code == 2
    assert (
        "objective 'time': programs of target step have no such figure; they have: cycles, on_chip_bytes, off_chip_bytes"
        in refused.err
    )
