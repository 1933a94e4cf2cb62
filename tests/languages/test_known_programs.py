"""Programs that people have, in languages with a compiler and of commands: judged there, shown, not counted, not asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from models.servers import OpenAIServer
from targets.native.programs import needs_compiler

from languages.model_servers import write_reply
from opsmith import Settings, improve
from opsmith.agents.prompt import read_prompt
from opsmith.models import Message
from opsmith.models.table import get_model
from opsmith.running import sandbox
from opsmith.scaffold.project import COMMAND, write_project
from opsmith.store import Store
from opsmith.suites import load_tasks

confined = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())


@pytest.mark.parametrize("language", [pytest.param("c", marks=needs_compiler), pytest.param("command", marks=confined)])
def test_the_right_one_is_shown_from_round_0_and_the_wrong_one_s_task_is_asked_for(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no-key")
    if language == "c":
        target, suffix, tasks = "c", ".c", load_tasks(("row_sum", "softmax"), "c")
    else:
        write_project(tmp_path / "chip", kind=COMMAND)
        target, suffix = str(tmp_path / "chip" / "language.toml"), ".vex"
        tasks = load_tasks(
            [str(tmp_path / "chip" / "problems" / f"{name}.yaml") for name in ("row_sum", "rms_norm")], target
        )
    right, wrong = tasks
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / f"{right.id}{suffix}").write_text(right.impl or "")
    spoiled = (wrong.impl or "").replace("+=", "-=").replace("vdiv", "vmul")
    (tmp_path / "old" / f"{wrong.id}{suffix}").write_text(spoiled)
    asked: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> str:
        asked.append(body)
        return write_reply("no program")

    with OpenAIServer(answer) as server, Store.open(tmp_path / "runs") as store:
        settings = Settings(model="openai/m", base_url=server.url, samples=1, temperatures=(1.0,), max_rounds=1, seed=1, known=str(tmp_path / "old"))  # fmt: skip
        result = improve(tasks, get_model(settings), settings, store)
    (body,) = asked
    turns = [Message(turn["role"], turn["content"]) for turn in body["messages"]]
    shown = {program.strip() for _, program in read_prompt(turns).examples}
    assert (right.impl or "").strip() in shown
    assert spoiled.strip() not in shown
    assert f"problem: {wrong.id}" in read_prompt(turns).task
    assert {row.task: row.state for row in result.known} == {right.id: "shown", wrong.id: "refused"}
    assert (result.solved, list(result.per_task)) == (0, [wrong.id])
