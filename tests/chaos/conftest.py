"""What the chaos tests share: `commands`, which start `opsmith` as a user does, and one run that nobody disturbed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.books import Contents, contents
from chaos.faulty_server import FaultyOpenAI
from chaos.processes import Commands

SAMPLES = 80


@dataclass(frozen=True)
class Undisturbed:
    """A run of `SAMPLES` requests against a server that does not fail: what every disturbed one has to end with."""

    server: FaultyOpenAI
    options: tuple[object, ...]  # of the command, all that decide the run
    run: str
    contents: Contents
    keys: frozenset[str]  # of its requests


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    with Commands(tmp_path) as started:
        yield started


@pytest.fixture(scope="session")
def _undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    folder = tmp_path_factory.mktemp("undisturbed")
    with FaultyOpenAI() as server, Commands(folder) as started:
        options = ("--model", "openai/served", "--base-url", server.url, "--tasks", "index_0", "--samples", SAMPLES)
        options += ("--temperature", "1.0", "--max-rounds", "1", "--concurrency", "4")
        run = started.finish("whole", *options)["run"]
        assert len(server.sent) == SAMPLES
        yield Undisturbed(server, options, run, contents(folder / "whole", run), frozenset(server.sent))


@pytest.fixture
def whole(_undisturbed: Undisturbed) -> Iterator[Undisturbed]:
    """That run, its server at hand and its books empty; the same server, so that the same command is the same run."""
    _undisturbed.server.reset()
    yield _undisturbed
    _undisturbed.server.come_back()
