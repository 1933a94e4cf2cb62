"""The core works where the laboratory's folder is not: what is left to do without it, and what says that it is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from models.servers import OpenAIServer

import opsmith
from opsmith.suites import load_tasks

WITHOUT = """
import sys

class WithoutLaboratory:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opsmith_lab":
            raise ModuleNotFoundError(f"No module named {name!r}", name="opsmith_lab")

sys.meta_path.insert(0, WithoutLaboratory())
"""
RECORD = """
import sys
import opsmith
from opsmith.models.replay import record
from opsmith.models.table import get_model

class Recorded:
    def __init__(self, model):
        self.model, self.pairs = model, []
        self.name, self.context_window, self.is_language_model = model.name, model.context_window, True
        self.close = model.close

    async def complete(self, request):
        self.pairs.append((request, await self.model.complete(request)))
        return self.pairs[-1][1]

settings = opsmith.Settings(
    model="openai/any", base_url=sys.argv[1], samples=1, temperatures=(0.7,), max_rounds=1, workers=1
)
model = Recorded(get_model(settings))
opsmith.improve(["bmm_0"], model, settings)
record("bmm.jsonl", model.pairs, model=model.name, is_language_model=True)
"""
CLI = "import sys; from opsmith.cli import main; main()"
ONE = [
    "--tasks",
    "bmm_0",
    "--samples",
    "1",
    "--temperature",
    "0.7",
    "--max-rounds",
    "1",
    "--workers",
    "1",
    "--out",
    "runs",
]
(TASK,) = load_tasks(("bmm_0",))
REPLY = f"impl: |\n{''.join(f'  {line}' for line in (TASK.impl or '').splitlines(keepends=True))}"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the core alone, and nothing of the laboratory on any path of its processes."""
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(Path(opsmith.__file__).parent, folder / "opsmith", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return folder


@pytest.fixture
def run(core: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run("verify", "bmm_0")` in an empty folder; `code`: another program than the command line."""

    def call(*words: object, code: str = CLI) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-c", code, *map(str, words)]
        environment = _make_environment(core)
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return call


def _make_environment(core: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(core), "OPENAI_API_KEY": ""}


def test_it_judges_lists_and_forecasts(run, core: Path) -> None:
    where = run(code="import opsmith; print(opsmith.__file__); import opsmith_lab")
    assert where.stdout.startswith(str(core))
    assert "No module named 'opsmith_lab'" in where.stderr
    assert "bmm_0: passed" in run("verify", "bmm_0").stdout
    assert "1 fine" in run("check", "bmm_0").stdout
    assert "bench" in run("--help").stdout
    assert "embedded" in run("models").stdout
    forecast = json.loads(run("run", "--model", "openai/gpt-4o", "--dry-run", "--json", *ONE).stdout)
    assert forecast["run"]["first"]["requests"] == 1


def test_a_server_and_a_replay_are_asked_and_what_came_is_reported(run, core: Path, tmp_path: Path) -> None:
    with OpenAIServer(REPLY) as server:
        done = run("run", "--model", "openai/any", "--base-url", server.url, "--json", *ONE)
        assert run(server.url, code=RECORD).returncode == 0
    assert json.loads(done.stdout)["solved"] == 1, done.stderr
    (made,) = json.loads(run("runs", "--json").stdout)
    assert run("report", made["run"], "-o", "report.html").returncode == 0
    assert "bmm_0" in (tmp_path / "report.html").read_text("utf-8")
    replayed = run("run", "--model", "replay:bmm.jsonl", "--json", *ONE[:-1], "other")
    assert json.loads(replayed.stdout)["solved"] == 1, replayed.stderr
    ui = subprocess.Popen(
        [sys.executable, "-P", "-c", CLI, "ui", "runs", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=_make_environment(core),
    )
    try:
        assert ui.stderr is not None
        address = ui.stderr.readline().split()[0]
        assert made["run"] in urllib.request.urlopen(address, timeout=60).read().decode()
    finally:
        ui.terminate()
        ui.wait()


def test_an_agent_on_the_command_line_and_a_language_of_commands(run, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    agent.write_text(f"#!{sys.executable}\nprint({REPLY!r})\n")
    agent.chmod(0o700)
    done = run("run", "--model", f"command:{agent}", "--json", *ONE)
    assert json.loads(done.stdout)["solved"] == 1, done.stderr
    assert run("init", "my-chip", "--command").returncode == 0
    judged = run("verify", "my-chip/problems/row_sum.yaml", "--target", "my-chip/language.toml")
    assert "row_sum: passed" in judged.stdout, judged.stderr


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (("run", "--model", "embedded", *ONE), "model 'embedded'"),
        (("run", "--model", "openai/any", "--base-url", "http://127.0.0.1:9/v1", "--plan", "static", *ONE), "--plan"),
        (("bench", "verify", "bmm_0"), "opsmith bench"),
        (("experiment", "fig2"), "opsmith experiment"),
    ],
)
def test_what_needs_the_laboratory_says_so(run, words: tuple[str, ...], who: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr == (
        f"opsmith: {who}: given an installation without the package opsmith_lab; expected it beside this one; "
        "try: install the distribution that has it\n"
    )
