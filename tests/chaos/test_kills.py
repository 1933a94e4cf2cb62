"""`kill -9` of a run at any moment, then the same command again: nothing that was received is asked for twice, or lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.books import contents
from chaos.faults import QUICK
from chaos.faulty_server import FaultyOpenAI
from chaos.plan import Plan, Uniform
from chaos.processes import Commands

CONCURRENCY = 4


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    return int(request.config.getoption("--kills"))


def test_a_killed_run_asks_a_server_again_only_for_what_was_in_flight(
    tmp_path: Path, commands: Commands, kills: int
) -> None:
    slowly = Plan(seed=1, share=0.05, kinds=QUICK, latency=Uniform(0.02, 0.12))
    with FaultyOpenAI() as server:
        options = ["--model", "openai/served", "--base-url", server.url, "--tasks", "index_0,attn_0"]
        options += ["--samples", "60", "--temperature", "1.0", "--max-rounds", "2", "--concurrency", str(CONCURRENCY)]
        whole = commands.finish("whole", *options)
        server.reset(slowly)
        alive = commands.killed("killed", *options, times=kills, seed=0, longest=1.5)
        result = commands.finish("killed", *options)
        sent = server.sent
    again = sum(sent.values()) - len(sent)
    print(f"{alive} of {kills} alive when killed; {len(sent)} requests, {again} sent whole once more")
    assert alive >= kills - 1
    assert result["usage"]["requests"] == len(sent) == 180
    assert again <= alive * CONCURRENCY
    assert result["per_task"]["index_0"]["solved"]
    assert contents(tmp_path / "killed", result["run"]) == contents(tmp_path / "whole", whole["run"])


def test_a_killed_embedded_run_ends_with_the_store_of_an_uninterrupted_one(
    tmp_path: Path, commands: Commands, kills: int
) -> None:
    options = ["--tasks", "index_0", "--samples", "12", "--temperature", "1.0", "--max-rounds", "1"]
    whole = commands.finish("whole", *options)
    alive = commands.killed("killed", *options, times=kills - 1, seed=1, longest=2.0)
    result = commands.finish("killed", *options)
    print(f"{alive} of {kills - 1} alive when killed")
    assert alive >= 1
    assert result["run"] == whole["run"]
    assert contents(tmp_path / "killed", result["run"]) == contents(tmp_path / "whole", whole["run"])
