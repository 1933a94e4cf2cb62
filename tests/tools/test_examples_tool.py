"""Examples are what a run has learnt of other tasks; figures come from whoever can compute them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_target import TINY, register, tiny_task

from opsmith.judging.verifier import verify
from opsmith.records import Experience, Level, Task, Verdict
from opsmith.store import Store
from opsmith.store.rows import experience_rows
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.table import TOOLS, list_tools, run_tool

register()
TASK = tiny_task("sum_1", "x y + z + u +")
SECRET = "u z + y + x +"  # a program of the task itself


class InProcess:
    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        return verify(task, source)

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        return TINY.estimate_cost(task, source)


def call(name: str, arguments: dict[str, object], store: Store | None = None) -> ToolResult:
    context = ToolContext(TINY, TASK, InProcess(), store, "run" if store else None)
    return asyncio.run(run_tool(TOOLS[name], context, json.dumps(arguments)))


@pytest.fixture
def store(tmp_path: Path) -> Any:
    part, parent = replace(TASK, id="sum_1.first", text=TASK.text + "\n"), replace(TASK, text=TASK.text + "\n\n")
    solved = {
        "run": [
            Experience(tiny_task("sum_0", "x y + z +"), "x y + z +", 0.5, 0),
            Experience(tiny_task("max_0", "x y max"), "x y max", 0.5, 0),
            *(Experience(task, SECRET, 0.5, 0) for task in (TASK, part, parent, replace(TASK, id="the_same"))),
        ],
        "another": [Experience(tiny_task("mul_0", "x x *"), "held out", 0.5, 0)],
    }
    with Store.open(tmp_path / "a.sqlite") as opened:
        rows = [
            row for run, all_ in solved.items() for entry in all_ for row in experience_rows(run, entry, None, False)
        ]
        opened.put(rows).result()
        yield opened


def test_examples_are_of_other_tasks_of_the_run(store: Store) -> None:
    similar, by_name = call("examples", {"number": 1}, store), call("examples", {"task": "sum_0"}, store)
    assert similar.text.count("impl:") == by_name.text.count("impl:") == 1
    assert "Solved by now: max_0, sum_0" in similar.text
    assert "x y + z +" in by_name.text
    assert call("examples", {}).outcome is ToolOutcome.REFUSED


@pytest.mark.parametrize("name", ["sum_1", "sum_1.first", "the_same", "mul_0", "", "sum_1' OR 1=1"])
def test_examples_are_never_of_the_task_itself_its_parts_or_what_the_run_was_not_given(store: Store, name: str) -> None:
    text = call("examples", {"task": name, "number": 5}, store).text
    assert SECRET not in text
    assert "held out" not in text
    assert "mul_0" not in text.replace(f"called '{name}'", "")


def test_figures_are_offered_where_a_language_has_them_and_refused_in_words_where_nobody_computes_them() -> None:
    assert "cycles: 50" in call("cost", {"program": "x y + z +"}).text
    timed = call("measure", {"program": "x y + z +"})
    assert timed.outcome is ToolOutcome.REFUSED
    assert "Not measured" in timed.text
    assert [tool.name for tool in list_tools("all", TINY)] == ["language", "check", "try", "cost", "examples"]
    assert [tool.name for tool in list_tools("check", TINY)] == ["language", "check"]
    assert list_tools("none", TINY) == ()
