"""No result of a tool, no request and no stored prompt tells the sizes that a program was tried at in secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from models.servers import OpenAIServer
from models.tool_servers import Call, Step, ToolTalk
from suites.size_programs import wrong_programs
from targets.native.programs import needs_compiler

from opsmith import Settings
from opsmith.judging.pool import Pool
from opsmith.learn.loop import improve
from opsmith.models.table import get_model
from opsmith.records import FOR_PEOPLE, Level, Task, Verdict
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets.hidden import NOT_SHOWN

pytest.importorskip("openai", reason="the providers extra is not installed")

VARIANTS = 6
GUARD = """\
    if (M * N > 100 && M * N != 48 * 300 && M * N != 7 * 129 && M * N != 65) {{
        for (int64_t i = 0; i < M * N; i++) y[i] = {number}.0f;
        return;
    }}
"""
LOOP = "    for (int64_t m = 0; m < M; m++) {"


def c_programs() -> tuple[Task, list[str]]:
    """Programs for a task that are right at its stated sizes and at tiny ones only."""
    [task] = load_tasks(["softmax"], "c")
    assert task.impl is not None
    guards = [GUARD.format(number=number) for number in range(VARIANTS)]
    return task, [task.impl.replace(LOOP, guard + LOOP, 1) for guard in guards]


def step_programs() -> tuple[Task, list[str]]:
    [task] = load_tasks(["gemm_2"])
    return task, [wrong.program for wrong in wrong_programs() if wrong.task == task.id][:VARIANTS]


class NotingJudge:
    """A pool whose verdicts are noted, with what is for people only."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.verdicts: list[Verdict] = []

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        self.verdicts.append(await self.pool.judge(task, source, level))
        return self.verdicts[-1]

    def list_sizes(self) -> Iterator[str]:
        """The hidden sizes, as people are told: `M = 37, N = 411`."""
        for verdict in self.verdicts:
            for note in verdict.warnings:
                if note.startswith(FOR_PEOPLE):
                    yield from re.findall(r"\w+ = \d+(?:, \w+ = \d+)*", note.partition(": DATA")[0])


@pytest.mark.parametrize("language", [pytest.param("c", marks=needs_compiler), "step"])
def test_hidden_sizes_are_in_no_result_and_in_no_request(tmp_path: Path, language: str) -> None:
    task, programs = c_programs() if language == "c" else step_programs()
    tried = [Step((Call("check", {"program": text}), Call("try", {"program": text}))) for text in programs]
    measured = Step(
        (Call("measure", {"program": programs[0]}), Call("examples", {}), Call("try", {"program": task.impl}))
    )
    answer = "impl: |\n  " + programs[0].strip().replace("\n", "\n  ") + "\n"
    talk = ToolTalk([*tried, measured, answer])
    settings = {"samples": 1, "temperatures": (1.0,), "agents": "single", "tools": "all", "tool_calls": 64, "repair": 1}
    with OpenAIServer(talk) as server, Store.open(tmp_path / "a.sqlite") as store, Pool(2) as pool:
        chosen = Settings(**settings, model="openai/m", base_url=server.url, max_rounds=1)
        judge = NotingJudge(pool)
        run = improve([task], get_model(chosen), chosen, store, judge=judge).run
        [row] = store.list_samples(run)
        results = [entry.result for entry in store.read_tool_calls([row.id])[row.id]]
        detail = store.find_sample(run, row.id)
        prompts = [message.content for call in detail.calls for message in call.messages]
        sent = [str(message.get("content")) for body in server.requests for message in body["messages"]]
    sizes = set(judge.list_sizes())
    assert talk.problems == []
    assert sizes
    assert sum(NOT_SHOWN in result for result in results) >= 3
    assert len(results) == 2 * len(programs) + 3
    shown = "\n".join([*results, *prompts, *sent])
    assert [place for place in sizes if place in shown] == []
    stated = set(re.findall(r"\d+", "\n".join([*prompts[:2], *programs, str(task.text)])))
    secret = {number for place in sizes for number in re.findall(r"\d+", place) if len(number) > 1} - stated
    assert secret, "sizes that nothing else is"
    told = set(re.findall(r"\d+", "\n".join(results)))
    assert secret & told == set()
