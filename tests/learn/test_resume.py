"""A run that is killed at any moment and started again ends as one that was never killed."""

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import tiny_run
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.learn.loop import improve, improve_async
from opsmith.store import Store

PAUSE = 0.02  # s, for each reply: long enough to be killed in between


def start(path: Path) -> subprocess.Popen[str]:
    """The run as a process of its own, once its first round has begun."""
    command = [sys.executable, tiny_run.__file__, str(path), str(PAUSE)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


def undisturbed(tmp_path: Path) -> frozenset[tuple[str, str]]:
    with Store.open(tmp_path / "whole.sqlite") as store:
        result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess())
        return store.read_contents(result.run)


def finished(path: Path) -> frozenset[tuple[str, str]]:
    with Store.open(path) as store:
        result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess())
        assert result.finished
        return store.read_contents(result.run)


@pytest.mark.parametrize("seed", [0, 1])
def test_killed_at_random_moments_and_started_again_it_is_the_same_run(tmp_path: Path, seed: int) -> None:
    path, rng, kills = tmp_path / "killed.sqlite", random.Random(seed), 0
    for _ in range(4):
        process = start(path)
        time.sleep(rng.uniform(0.0, 0.6))
        kills += process.poll() is None
        process.kill()
        process.communicate()
    assert kills >= 2
    assert finished(path) == undisturbed(tmp_path)
    asked = Counter((tmp_path / "killed.sqlite.asked").read_text().split())
    assert sum(asked.values()) - len(asked) <= kills * SETTINGS.provider.concurrency, (
        "only what was in flight is asked again"
    )


def test_ctrl_c_ends_in_good_order_and_the_run_goes_on_later(tmp_path: Path) -> None:
    path = tmp_path / "interrupted.sqlite"
    process = start(path)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=100)
    assert (process.returncode, output.splitlines()[-1]) == (0, "interrupted")
    assert finished(path) == undisturbed(tmp_path)


def test_a_second_ctrl_c_exits_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "PAUSE", 1000.0)
    process = start(tmp_path / "twice.sqlite")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "the first one waits for the requests in flight"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode == 130


def test_a_guardian_model_is_not_asked_again_about_what_it_answered(tmp_path: Path) -> None:
    settings = SETTINGS.replace(guardian="llm")
    model = TinyModel(PAUSE / 4)
    with Store.open(tmp_path / "a.sqlite") as store, Store.open(tmp_path / "b.sqlite") as other:
        for _ in range(4):
            work = improve_async(TASKS, model, settings, store, InProcess())
            with contextlib.suppress(TimeoutError):
                asyncio.run(asyncio.wait_for(work, 0.4))
        result = improve(TASKS, model, settings, store, judge=InProcess())
        seeds = Counter(request.seed for request in model.asked)
        assert sum(seeds.values()) - len(seeds) <= 4 * SETTINGS.provider.concurrency
        whole = improve(TASKS, TinyModel(), settings, other, judge=InProcess())
        assert store.read_contents(result.run) == other.read_contents(whole.run)
