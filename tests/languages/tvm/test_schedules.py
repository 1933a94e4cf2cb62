"""The models `metaschedule` and `templates`: schedules that pass as programs do, told from prompts, equal by seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opsmith.agents.analysis import AnalystBrief, EarlierAttempt, request_analysis
from opsmith.agents.generation import GeneratorBrief, request_program
from opsmith.agents.reply import read_reply
from opsmith.agents.suggestion import read_suggestion_reply
from opsmith.judging.pool import Pool
from opsmith.models import Message
from opsmith.records import Suggestion
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.models.scheduling import METASCHEDULE, NO_SCHEDULE, TEMPLATES, ScheduleWriter
from opsmith_lab.tvm.scheduler import write_schedulable

TVM = get_target("tvm")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as shared:
        yield shared


def ask(writer: ScheduleWriter, messages: tuple[Message, ...], seed: int = 1) -> str:
    body = {"messages": [(each.role, each.content) for each in messages], "temperature": 0.7, "n": 1, "seed": seed}
    (text,) = writer.answer_request(body)["texts"]
    return text


def suggest(writer: ScheduleWriter, task, source: str, attempts: tuple[EarlierAttempt, ...] = ()) -> Suggestion:
    reply = ask(writer, request_analysis(TVM, AnalystBrief(task, "time", source, attempts=attempts)))
    suggestion = read_suggestion_reply(reply).suggestion
    assert suggestion is not None, reply
    return suggestion


@pytest.mark.parametrize("role", [METASCHEDULE, TEMPLATES])
@pytest.mark.parametrize("name", ["gemm_at", "softmax", "layer_norm"])
def test_a_suggested_schedule_passes_and_is_remembered(pool: Pool, role: str, name: str) -> None:
    (task,), writer = load_tasks([name], "tvm"), ScheduleWriter(TVM, role)
    first = suggest(writer, task, task.impl)
    assert first == suggest(writer, task, task.impl)
    messages = request_program(TVM, GeneratorBrief(task, "time", task.impl, first))
    program = read_reply(TVM, task, ask(writer, messages)).source
    assert "T.sblock('scheduled')" in program
    verdict = pool.verify(task, program)
    assert verdict.passed, verdict.message
    assert write_schedulable(program) == write_schedulable(task.impl)
    attempts = (EarlierAttempt(first, "right", 2.5),)
    second = suggest(writer, task, program, attempts)
    assert second.what != first.what
    assert "1 schedules of this program are known, the best one 2.50 times as fast" in second.why


def test_loops_that_depend_on_each_other_have_no_schedule() -> None:
    (task,), writer = load_tasks(["inclusive_scan"], "tvm"), ScheduleWriter(TVM, METASCHEDULE)
    assert ask(writer, request_program(TVM, GeneratorBrief(task, "time", task.impl))) == NO_SCHEDULE
