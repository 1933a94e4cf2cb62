"""Whole runs with tools through both SDKs, against servers that refuse what the real ones refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from models.servers import AnthropicServer, OpenAIServer
from models.tool_servers import Call, Step, ToolTalk, toolless
from tool_run import RIGHT, SETTINGS, TASKS, WRONG, CountingJudge, write_answer

from opsmith.learn.loop import improve
from opsmith.models.table import get_model
from opsmith.records import Outcome
from opsmith.store import Store
from opsmith.store.requests import read_reply
from opsmith.store.schema import reply, tool_call

pytest.importorskip("openai", reason="the providers extra is not installed")
from sqlalchemy import select

BOTH = pytest.mark.parametrize(("name", "kind"), [("openai/m", OpenAIServer), ("anthropic/m", AnthropicServer)])
LONG = {"program": "x" * 2**20}
SCRIPTS = {
    "in turn": [
        Step((Call("check", {"program": WRONG}), Call("language", {"topic": "x"})), "Let me see.", "hm"),
        Step((Call("try", {"program": WRONG}),)),
        write_answer(RIGHT),
    ],
    "wrongly": [
        Step((Call("sing", {}), Call("", {}), Call("check", {"source": 1}), Call("try", {"program": ""}))),
        write_answer(RIGHT),
    ],
    "for ever": [Step((Call("check", {"program": RIGHT}), Call("check", {"program": RIGHT})))],
    "broken": [
        Step((Call("check", '{"program": '), Call("check", LONG, "a"), Call("check", [1], "a"), Call(7, None, 8))),
        write_answer(RIGHT),
    ],
    "at the end": [Step((Call("try", {"program": RIGHT}),)), "That is it."],
}
OUTCOMES = {
    "in turn": ["ok"] * 3,
    "wrongly": ["refused"] * 4,
    "for ever": ["ok"] * 4 + ["limit"] * 2,
    "broken": ["refused"] * 4,
    "at the end": ["ok"],
}


def run_sample(answer: Any, name: str, kind: type, where: Path) -> tuple[Any, list[str], list[dict[str, Any]], str]:
    """The stored sample, the outcomes of its calls, what the server was sent, and the run's usage."""
    with kind(answer) as server, Store.open(where) as store:
        settings = SETTINGS.replace(model=name, base_url=server.url)
        run = improve(TASKS, get_model(settings), settings, store, judge=CountingJudge())
        [row] = store.list_samples(run.run)
        entries = store.read_tool_calls([row.id]).get(row.id, [])
        replies = [read_reply(line) for line in store.fetch_rows(select(reply).where(reply.c.run == run.run))]
        called = sum(len(calls) for made in replies for calls in made.calls)
        assert store.count_rows(tool_call, run.run) == len(entries) == called, "each call has one row"
        assert run.usage.requests == len(replies) == server.count - server.refusals
        return row, [entry.outcome for entry in entries], server.requests, json.dumps(server.requests)


@BOTH
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_run_with_tools_ends_well_whatever_its_model_calls(
    tmp_path: Path, name: str, kind: type, script: str
) -> None:
    talk = ToolTalk(SCRIPTS[script])
    row, outcomes, requests, sent = run_sample(talk, name, counting(kind), tmp_path / "a.sqlite")
    assert talk.problems == []
    assert outcomes == OUTCOMES[script]
    assert row.outcome is Outcome.PASSED
    assert "x" * 2**16 not in sent, "what is too long to be read is not paid for again"
    is_told_to_answer = "tool_choice" in requests[-1]
    assert is_told_to_answer == (len(outcomes) >= SETTINGS.teamwork.tooling.tool_calls)


@pytest.mark.parametrize("script", ["in turn", "for ever"])
def test_a_server_without_tools_is_asked_by_text(tmp_path: Path, script: str) -> None:
    blocks = [block_of(step) for step in SCRIPTS[script]]
    answer = toolless(ToolTalk(blocks), "m does not support tools")
    row, outcomes, _, _ = run_sample(answer, "openai/m", counting(OpenAIServer), tmp_path / "a.sqlite")
    assert row.outcome is Outcome.PASSED
    assert outcomes[:3] == OUTCOMES[script][:3]


def block_of(step: Step | str) -> str:
    """A step as the text of a model that is not offered tools by its server."""
    if isinstance(step, str):
        return step
    return "".join(f"```tool\nname: {call.name}\narguments: {json.dumps(call.arguments)}\n```\n" for call in step.calls)


def counting(kind: type) -> type:
    """A server that counts what it refused."""

    class Counting(kind):  # type: ignore[misc]
        refusals = 0

        async def _fail(self, request: Any, fault: Any) -> Any:
            self.refusals += 1
            return await super()._fail(request, fault)

    return Counting
