"""`kill -9` of a run whose model calls tools, in the midst of its conversations: no call is lost, none is run twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from models.servers import OpenAIServer
from models.tool_servers import Call, Step, ToolTalk

from chaos.books import contents
from chaos.processes import Commands
from opsmith.store import Store
from opsmith.store.schema import tool_call
from opsmith.suites import load_tasks

CONCURRENCY, SAMPLES, TURNS = 4, 12, 4
TASK = "index_0"
PAUSE_S = 0.15  # for each request: a round takes about two seconds


def test_a_run_with_tools_that_is_killed_asks_and_calls_again_only_what_was_in_flight(
    tmp_path: Path, commands: Commands, request: pytest.FixtureRequest
) -> None:
    kills = int(request.config.getoption("--kills"))
    [task] = load_tasks([TASK])
    assert task.impl is not None
    wrong = {"program": "return E0"}
    answer = "impl: |\n  " + task.impl.strip().replace("\n", "\n  ") + "\n"
    steps = [Step((Call("check", wrong), Call("language", {"topic": "Map"}))), Step((Call("try", wrong),))]
    talk = ToolTalk([*steps, Step((Call("try", {"program": task.impl}),)), answer])

    def answer_slowly(body: dict[str, Any]) -> Any:
        time.sleep(PAUSE_S)
        return talk(body)

    with OpenAIServer(answer_slowly) as server:
        options = ["--model", "openai/served", "--base-url", server.url, "--tasks", TASK, "--tools", "all"]
        options += ["--samples", str(SAMPLES), "--temperature", "1.0", "--max-rounds", "1"]
        options += ["--concurrency", str(CONCURRENCY)]
        whole = commands.finish("whole", *options)
        server.requests.clear()
        alive = commands.killed("killed", *options, times=kills, seed=2, longest=1.5)
        result = commands.finish("killed", *options)
        sent = Counter(json.dumps(body["seed"]) for body in server.requests)
    again = sum(sent.values()) - len(sent)
    print(f"{alive} of {kills} alive when killed; {len(sent)} requests, {again} sent once more")
    assert talk.problems == []
    assert alive >= 1
    assert result["usage"]["requests"] == len(sent) == SAMPLES * TURNS
    assert again <= alive * CONCURRENCY
    assert contents(tmp_path / "killed", result["run"]) == contents(tmp_path / "whole", whole["run"])
    with Store.open(tmp_path / "killed") as store:
        assert store.count_rows(tool_call, result["run"]) == SAMPLES * 4
