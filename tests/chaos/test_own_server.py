"""A server of one's own, as small ones are: one request at a time, slowly, with a window of 8,192 tokens and counts that
are not ours. The run ends, and after `kill -9` it goes on with the same prompts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from models.serial_server import SerialServer

from chaos.books import contents
from chaos.processes import Commands, wait_until
from opsmith.agents.prompt import indent_lines
from opsmith.store import Store
from opsmith.suites import load_tasks

WINDOW = 8_192
SHARE = 0.05  # of the generations, for nobody
TASKS = {f"task:\n{indent_lines(task.prompt_text)}": task for task in load_tasks(())}


def answer(body: dict[str, Any]) -> str:
    """A program, right for one of four seeds."""
    prompt, rng = body["messages"][-1]["content"], random.Random(body["seed"])
    [task] = [task for text, task in TASKS.items() if prompt.endswith(text)]
    right = task.impl is not None and rng.random() < 0.25
    source = task.impl if right and task.impl is not None else f"# {body['seed']}\nreturn E0"
    return f"impl: |\n{indent_lines(source)}"


def read_prompts(where: Path, run: str) -> dict[str, tuple[str, ...]]:
    """By sample, what was asked."""
    with Store.open(where) as store:
        details = [store.find_sample(run, row.id) for row in store.list_samples(run)]
    return {detail.row.id: tuple(message.content for message in detail.calls[0].messages) for detail in details}


def test_a_run_at_a_slow_server_of_ones_own_ends_and_goes_on_after_a_kill(tmp_path: Path, commands: Commands) -> None:
    assert len(TASKS) == 26
    (tmp_path / "own.toml").write_text("max_tokens = 192\n")
    with SerialServer(answer, seconds=0.1, window=WINDOW) as server:
        options = ["own.toml", "--model", "openai/served", "--base-url", server.url, "--context-window", WINDOW]
        options += ["--samples", "3", "--temperature", "1.0", "--max-rounds", "3", "--agents", "single"]
        options += ["--request-timeout", "0.8", "--request-deadline", "30"]
        whole = commands.finish("whole", *options)
        books = [(server.generated, server.for_nobody, server.refused)]
        server.reset()
        command = commands.run("killed", *options)
        wait_until(lambda: server.generated > 100 or not command.alive)
        assert command.kill()
        result = commands.finish("killed", *options)
        books.append((server.generated, server.for_nobody, server.refused))
    for generated, for_nobody, refused in books:
        print(f"{generated} generations, {for_nobody} for nobody, {refused} refused")
        assert for_nobody <= SHARE * generated
        assert refused == 0
    with Store.open(tmp_path / "whole") as store:
        fits = [info.fit for info, _ in store.read_rounds(whole["run"])]
    assert [fit is not None and fit.factor > 1.5 for fit in fits] == [False, True, True]
    assert any(fit is not None and fit.left_out for fit in fits)
    assert result["solved"] == whole["solved"] > 0
    assert read_prompts(tmp_path / "killed", result["run"]) == read_prompts(tmp_path / "whole", whole["run"])
    assert contents(tmp_path / "killed", result["run"]) == contents(tmp_path / "whole", whole["run"])
