"""Processes that run code of others are given the variables of a list: no key, no password, nothing of unknown use."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from judging.harmful import RIGHT, needs_isolation, saying

from opsmith.environment import select_variables, worker_environment
from opsmith.judging.pool import Pool
from opsmith.running.sandbox import Sandbox
from opsmith_lab.models.workers import Workers

CANARY = "canary-0123456789"
SECRETS = {
    "OPENAI_API_KEY": CANARY,
    "GH_PAT": CANARY,
    "MYSQL_PWD": CANARY,
    "SLACK_WEBHOOK": f"https://hooks.example/{CANARY}",
    "PGPASSFILE": f"/home/{CANARY}",
    "KUBECONFIG": CANARY,
    "SSH_AUTH_SOCK": CANARY,
    "my_own": CANARY,
    "OPSMITH_STORE": f"postgresql://me:{CANARY}@db.example/runs",
    "OPSMITH_UI_TOKEN": CANARY,
    "HTTPS_PROXY": f"http://me:{CANARY}@proxy.example:3128",
    "PYTHON_TOKEN": CANARY,
    "TORCH_MIRROR": f"https://me:{CANARY}@mirror.example",
}
NEEDED = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "TMPDIR": "/tmp",
    "TZ": "Asia/Tokyo",
    "LANG": "C.UTF-8",
    "LC_NUMERIC": "de_DE",
    "LD_LIBRARY_PATH": "/opt/lib",
    "PYTHONHASHSEED": "7",
    "OMP_PLACES": "cores",
    "MKL_CBWR": "COMPATIBLE",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
}
READING = """
import os
found = str(dict(os.environ))
for process in ("self", os.getppid(), 1):
    try:
        found += open(f"/proc/{process}/environ").read()
    except OSError as error:
        found += type(error).__name__
"""


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (SECRETS | {"SOMEWHERE": "else"}).items():
        monkeypatch.setenv(name, value)


def test_only_what_is_needed_is_passed_on() -> None:
    assert select_variables(SECRETS | NEEDED | {"EDITOR": "vi", "AN_ADDRESS": "https://example.org"}) == NEEDED


def test_who_needs_more_names_it() -> None:
    named = {"OPSMITH_WORKER_ENV": "CUDA_HOME, MY_TOOLS", "CUDA_HOME": "/cuda", "MY_TOOLS": "/tools", "MY_OTHER": "1"}
    assert select_variables(named) == {"CUDA_HOME": "/cuda", "MY_TOOLS": "/tools"}


def test_workers_find_what_the_caller_imports() -> None:
    assert worker_environment()["PYTHONPATH"].split(os.pathsep) == sys.path


@needs_isolation
def test_an_author_s_code_sees_nothing_of_it() -> None:
    with Pool(1) as pool:
        message = pool.verify(saying(READING), RIGHT).message
    assert "PYTHONPATH" in message
    assert message.count("PermissionError") == 3, message
    assert CANARY not in message
    assert "SOMEWHERE" not in message


def test_where_nothing_isolates_it_its_own_process_holds_none_of_it() -> None:
    code = READING.replace('("self", os.getppid(), 1)', '("self", os.getppid())')
    with Pool(1, trust_tasks=True, sandbox=Sandbox(isolate=False)) as pool:
        message = pool.verify(saying(code), RIGHT).message
    assert "PYTHONPATH" in message
    assert CANARY not in message


def test_the_processes_of_a_computing_model_hold_none_of_it() -> None:
    """They read tasks of others, in targets that the tasks name."""
    code = "import os, sys; print(__import__('json').dumps(dict(os.environ)), flush=True); sys.stdin.read()"

    async def environment() -> dict[str, str]:
        workers = Workers("m", [], 1)
        workers._command = [sys.executable, "-c", code]
        try:
            return await workers.ask_worker({})
        finally:
            await workers.close()

    found = asyncio.run(environment())
    assert "PYTHONPATH" in found
    assert CANARY not in str(found)
