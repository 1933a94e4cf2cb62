"""`kill -9` at any moment, then the same command again: nothing that was received is asked for twice, or lost."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from models.servers import OpenAIServer

from opsmith.store import Store

SEED = 0
WRONG = "impl: |\n  return E0\n"
RIGHT = "impl: |\n  E1 = step.Bufferize(a=1).apply(E0)\n  E2 = step.Map(fn=fn_gate).apply(E1)\n  E3, E4 = step.Copy().apply(E2)\n  E5 = step.Map(fn=fn_top1).apply(E3)\n  return E5, E4\n"
CONCURRENCY = 4


def command(out: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "opsmith", "run", "--out", str(out), "--json", *options]


def kill_at_random_moments(arguments: list[str], kills: int, longest: float, seed: int = SEED) -> int:
    """How many of the attempts were alive to be killed."""
    rng, alive = random.Random(seed), 0
    for _ in range(kills):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, longest))
        alive += process.poll() is None
        process.kill()
        process.wait()
    return alive


def finish(arguments: list[str]) -> dict:
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(out: Path, run: str) -> frozenset[tuple[str, str]]:
    with Store.open(out) as store:
        return store.contents(run)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return request.config.getoption("--kills")


def test_a_killed_run_asks_a_server_again_only_for_what_was_in_flight(tmp_path: Path, kills: int) -> None:
    asked: list[int] = []

    def answer(body: dict) -> str:
        time.sleep(0.02)
        asked.append(body["seed"])
        return RIGHT if body["seed"] % 7 == 0 else WRONG

    with OpenAIServer(answer) as server:
        arguments = command(tmp_path / "out", "--model", "openai/served", "--base-url", server.url)
        arguments += ["--tasks", "index_0,attn_0", "--samples", "60", "--temperature", "1.0", "--max-rounds", "2"]
        arguments += ["--concurrency", str(CONCURRENCY)]
        alive = kill_at_random_moments(arguments, kills, longest=4.0)
        result = finish(arguments)
    print(f"{alive} of {kills} alive when killed; {len(asked)} requests, {len(set(asked))} different")
    assert alive >= 1
    assert result["usage"]["requests"] == len(set(asked))
    assert len(asked) - len(set(asked)) <= alive * CONCURRENCY
    assert result["per_task"]["index_0"]["solved"]


def test_a_killed_embedded_run_ends_with_the_store_of_an_uninterrupted_one(tmp_path: Path, kills: int) -> None:
    options = ["--tasks", "index_0,rope_0,norm_1", "--samples", "16", "--temperature", "1.0", "--max-rounds", "3"]
    whole = finish(command(tmp_path / "whole", *options))
    alive = kill_at_random_moments(command(tmp_path / "killed", *options), kills, longest=6.0)
    resumed = finish(command(tmp_path / "killed", *options))
    print(f"{alive} of {kills} alive when killed")
    assert alive >= 1
    assert resumed["run"] == whole["run"]
    assert contents(tmp_path / "killed", resumed["run"]) == contents(tmp_path / "whole", whole["run"])
