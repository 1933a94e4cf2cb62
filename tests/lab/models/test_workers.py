"""A worker process that dies costs its answer some time, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from opsmith.errors import ProviderError
from opsmith_lab.models.workers import Workers

ECHO = """\
import os, sys
for line in sys.stdin:
    if "die" in line:
        os._exit(1)
    print(line, end="", flush=True)
"""


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "echoing_worker.py").write_text(ECHO)
    monkeypatch.syspath_prepend(tmp_path)
    return ["echoing_worker"]


def test_a_question_whose_worker_was_killed_is_asked_again(echo: list[str]) -> None:
    async def go() -> None:
        workers = Workers("echo", echo, 1)
        try:
            assert await workers.ask_worker({"n": 1}) == {"n": 1}
            os.kill(workers._all[0].pid, signal.SIGKILL)
            assert await workers.ask_worker({"n": 2}) == {"n": 2}
            assert len(workers._all) == 2
        finally:
            await workers.close()

    asyncio.run(go())


def test_a_question_that_kills_every_worker_is_given_up(echo: list[str]) -> None:
    async def go() -> None:
        workers = Workers("echo", echo, 1)
        try:
            with pytest.raises(ProviderError, match="a worker process died"):
                await workers.ask_worker({"text": "die"})
            assert await workers.ask_worker({"n": 1}) == {"n": 1}
        finally:
            await workers.close()

    asyncio.run(go())
