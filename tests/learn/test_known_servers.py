"""A reader on a loopback server that solves a task only where a program of its group was shown, through both SDKs: it
gains by what is known and by what is submitted, and not in the control; killed and started again it is sent the same."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import yaml
from killed_run import run_until_done
from models.servers import AnthropicServer, OpenAIServer
from tiny_run import TASKS, InProcess

from opsmith.agents.prompt import read_prompt
from opsmith.learn.events import Event, SampleJudged
from opsmith.learn.known import PERSON, find_submitted, submit_program
from opsmith.learn.loop import improve
from opsmith.models import Message
from opsmith.models.table import get_model
from opsmith.records import KnownProgram, strip_number
from opsmith.results.result import RunResult, result_of
from opsmith.settings import Settings
from opsmith.store import Store

PROGRAMS = {
    "sum_0": "x y + z +",
    "sum_1": "x y + z + u +",
    "sum_2": "x y + z + u + v +",
    "mul_0": "copy x a b\na b *",
    "mul_1": "copy x a b\na y * z + b *",
}
SETTINGS = Settings(samples=2, temperatures=(1.0,), concurrency=1, seed=1, agents="single", levels=1)
SERVERS = {"openai": OpenAIServer, "anthropic": AnthropicServer}
NAMES = {yaml.dump(yaml.safe_load(task.text)): task.id for task in TASKS}


def answer_if_shown(body: dict[str, Any]) -> str:
    turns = [Message("user", turn["content"]) for turn in body["messages"] if turn["role"] == "user"]
    parts = read_prompt(turns)
    names = [NAMES[yaml.dump(yaml.safe_load(text))] for text in (parts.task, *(text for text, _ in parts.examples))]
    groups = {strip_number(name) for name in names[1:]}
    program = PROGRAMS.get(names[0], "x") if strip_number(names[0]) in groups else "x"
    return "impl: |\n  " + program.replace("\n", "\n  ") + "\n"


def run_asked(path: Path, url: str, family: str, known: Path, watch: Any = None, **changes: Any) -> RunResult:
    settings = SETTINGS.replace(model=f"{family}/m", base_url=url, known=str(known), **changes)
    with Store.open(path) as store:
        model = get_model(settings)
        return improve(TASKS, model, settings, store, judge=InProcess(), on_event=watch)


@pytest.fixture(params=SERVERS)
def family(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "no-key")
    return str(request.param)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/sum_0.txt").write_text(PROGRAMS["sum_0"])
    return tmp_path / "old"


def test_it_gains_as_planted_by_what_is_known_and_not_in_the_control(tmp_path: Path, family: str, known: Path) -> None:
    with SERVERS[family](answer_if_shown) as server:
        shown, control = (
            run_asked(tmp_path / "a.sqlite", server.url, family, known, show_known=is_shown)
            for is_shown in (True, False)
        )
    assert {name for name, task in shown.per_task.items() if task.solved} == {"sum_1", "sum_2"}
    assert control.solved == 0
    assert control.per_task.keys() == shown.per_task.keys() == {task.id for task in TASKS} - {"sum_0"}


def submit_once(path: Path) -> None:
    with Store.open(path) as store:
        run = store.list_runs()[0].info.id
        if len(store.read_known(run)) == 1:
            program = KnownProgram(find_submitted(store, run, "mul_0"), PROGRAMS["mul_0"], PERSON, "mul_0.txt")
            assert asyncio.run(submit_program(store, run, program, InProcess())).passed


def act_at(number: int, act: Callable[[], object]) -> Callable[[Event], None]:
    """Does it when so many samples were judged in this session."""
    seen: list[Event] = []

    def watch(event: Event) -> None:
        seen.extend([event] if isinstance(event, SampleJudged) else [])
        if len(seen) == number and isinstance(event, SampleJudged):
            act()

    return watch


def submit_beside(path: Path) -> None:
    """From a thread of its own: this one has a loop that goes."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(submit_once, path).result()


def count_killed(run: Callable[..., RunResult], path: Path) -> int:
    """How many sessions were killed, each at its fourth verdict, until one ended."""

    def die() -> None:
        if path.exists():
            submit_beside(path)
        os.kill(os.getpid(), signal.SIGKILL)

    return run_until_done(lambda: run(path, watch=act_at(4, die)))[0]


def test_killed_and_started_again_it_is_sent_the_same_with_what_was_submitted(
    tmp_path: Path, family: str, known: Path
) -> None:
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    with SERVERS[family](answer_if_shown) as server:
        run = partial(run_asked, url=server.url, family=family, known=known)
        result = run(whole, watch=act_at(4, partial(submit_beside, whole)))
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:  # it has no threads, so that it may fork
            assert alone.submit(count_killed, run, killed).result() >= 2
    solved = {name for name, task in result.per_task.items() if task.solved}
    assert solved == {"sum_1", "sum_2", "mul_1"}, "by the program of its group that somebody submitted"
    with Store.open(whole) as store, Store.open(killed) as other:
        assert store.read_contents(result.run) == other.read_contents(result.run)
        assert [(row.task, row.state, row.round) for row in result_of(other, result.run).known] == [
            ("sum_0", "shown", 0),
            ("mul_0", "shown", 1),
        ]
