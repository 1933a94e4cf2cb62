"""Runs whose models reason, plan and call tools through both SDKs, against servers that check what they are sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models.common import FakeTime
from models.servers import AnthropicServer, OpenAIServer
from models.tool_servers import THINKING, Call, Step, ToolTalk, toolless
from tiny_run import InProcess
from tool_run import RIGHT, TASKS, WRONG, write_answer

from opsmith.agents.reply import CUT_SHORT
from opsmith.learn.loop import improve
from opsmith.models.table import get_model
from opsmith.report.closing import closing_lines
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.schema import tool_call

SETTINGS = Settings(samples=1, temperatures=(0.7,), agents="single", seed=1, concurrency=1, max_rounds=1)
OVER_BOTH = pytest.mark.parametrize(("name", "kind"), [("openai/m", OpenAIServer), ("anthropic/m", AnthropicServer)])
TOOLS = {"tools": "all", "tool_calls": 4, "max_tokens": 4096}
PLANNED = f"plan: |\n  impl: |\n    {WRONG}\n```\n{WRONG}\n```\n{write_answer(RIGHT)}"


def run(kind: type, answer: Callable[[dict[str, Any]], Any], store: Store, name: str, **changes: Any) -> RunResult:
    with kind(answer) as server:
        settings = SETTINGS.replace(model=name, base_url=server.url, **changes)
        model = get_model(settings, retry=FakeTime().retry(attempts=1))
        result = improve(TASKS, model, settings, store, judge=InProcess())
        assert isinstance(result, RunResult)
        return result


@OVER_BOTH
def test_a_run_reasons_and_plans_and_its_thoughts_are_counted_once(tmp_path: Path, name: str, kind: type) -> None:
    talk = ToolTalk([Step(text=PLANNED, thought="hm")])
    changes = {"think": True, "reasoning": "high", "max_tokens": 4096}
    with kind(talk) as server, Store.open(tmp_path) as store:
        settings = SETTINGS.replace(model=name, base_url=server.url, **changes)
        model = get_model(settings, retry=FakeTime().retry(attempts=1))
        result = improve(TASKS, model, settings, store, judge=InProcess())
        [sample] = store.list_samples(result.run)
        detail = store.find_sample(result.run, sample.id)
    body = server.requests[0]
    assert "`plan`" in str(body["messages"] if kind is OpenAIServer else body["system"])
    assert "reasoning_effort" in body or body["thinking"] == {"type": "adaptive"}
    assert (result.solved, talk.problems) == (1, [])
    assert (result.usage.output_tokens, result.usage.reasoning_tokens) == (40, THINKING)
    assert any("40 output (25 of them reasoning) in 1 request" in line for line in closing_lines(result))
    assert detail.candidates[-1].verdict.warnings == (), "a plan was asked for: nothing was tried"
    assert (detail.candidates[-1].source or "").strip() == RIGHT


CALLED = [
    ("in turn", [Step((Call("check", {"program": WRONG}), Call("try", {"program": WRONG})), "Let me.", "hm")], 2),
    ("wrongly", [Step((Call("check", {"program": WRONG, "sizes": 5}), Call("sing"))), Step((Call("try", "x"),))], 3),
    ("broken", [Step((Call("check", '{"program": "x'), Call("check", None, 5)))], 2),
]


@OVER_BOTH
@pytest.mark.parametrize(("what", "steps", "calls"), CALLED, ids=[what for what, _, _ in CALLED])
def test_a_sample_is_a_conversation_over_either_protocol(
    tmp_path: Path, name: str, kind: type, what: str, steps: list[Step], calls: int
) -> None:
    talk = ToolTalk([*steps, write_answer(RIGHT)])
    with Store.open(tmp_path) as store:
        result = run(kind, talk, store, name, **TOOLS, reasoning="low")
        used = store.count_rows(tool_call, result.run)
    assert talk.problems == []
    assert (result.solved, used) == (1, calls)


@OVER_BOTH
def test_a_server_without_tools_has_the_same_conversation_by_text(tmp_path: Path, name: str, kind: type) -> None:
    asks = f"```tool\nname: check\narguments:\n  program: {WRONG}\n```"
    talk = toolless(ToolTalk([asks, write_answer(RIGHT)]), "the model does not support tools")
    with Store.open(tmp_path) as store:
        result = run(kind, talk, store, name, **TOOLS)
        used = store.count_rows(tool_call, result.run)
    assert (result.solved, used) == (1, 1)


@OVER_BOTH
def test_a_server_that_calls_for_ever_ends_with_the_program_that_it_called_with(
    tmp_path: Path, name: str, kind: type
) -> None:
    talk = ToolTalk([Step((Call("try", {"program": RIGHT}),), thought="hm")])
    with Store.open(tmp_path) as store:
        result = run(kind, talk, store, name, **TOOLS)
    assert talk.problems == []
    assert result.solved == 1


def cut(body: dict[str, Any]) -> dict[str, Any]:
    """A reply that its limit of tokens cut, in either protocol; the program came before that for seeds that end so."""
    text = "Let me think!"
    stated = {"prompt_tokens": 9, "completion_tokens": 1024, "input_tokens": 9, "output_tokens": 1024}
    choice = {"message": {"content": text}, "finish_reason": "length"}
    content = [{"type": "text", "text": text}]
    return {"model": "m", "choices": [choice], "content": content, "stop_reason": "max_tokens", "usage": stated}


@OVER_BOTH
def test_a_reply_that_was_cut_is_refused_with_words_of_its_own_and_counted(
    tmp_path: Path, name: str, kind: type
) -> None:
    with Store.open(tmp_path) as store:
        result = run(kind, cut, store, name, samples=3)
        [first, *_] = store.list_samples(result.run)
        verdict = store.find_sample(result.run, first.id).candidates[-1].verdict
    assert (verdict.stage.name, verdict.errors[0].where) == ("FORMAT", CUT_SHORT)
    assert verdict.errors[0].given.endswith("no program; it ran out of tokens after 1024")
    assert (result.cut_short, result.as_json()["cut_short"]) == (3, 3)
    assert any("3 of 3 samples ran out of tokens before a program" in line for line in closing_lines(result))


def test_what_ended_by_itself_without_a_program_is_not_called_cut(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        result = run(OpenAIServer, lambda body: "I cannot.", store, "openai/m")
    assert (result.cut_short, "cut_short" in result.as_json()) == (0, False)
