"""A key that is given to a run is nowhere but in its requests, whatever the server does with it."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from models.common import ask
from models.servers import Fault, OpenAIServer
from starlette.testclient import TestClient
from tiny_target import register
from typer.testing import CliRunner

from opsmith.cli.app import build_app
from opsmith.errors import ProviderError
from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.guard import Access

from .canary import KEY, begin, leaks, start
from .echo import BATCHES, SERVERS, Echo, echoing

ENVIRONMENT = {"openai": {"OPENAI_API_KEY": KEY}, "anthropic": {"ANTHROPIC_API_KEY": KEY}}
LONGEST_S = 300  # of one run, on a machine that does much else
DEBUG = {"OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"}  # the SDKs' own logs, which show requests


@dataclass(frozen=True)
class Case:
    """One run against one kind of server."""

    server: str
    kind: str
    code: int
    faults: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    in_file: bool = False  # the key is in .env, not in the environment
    samples: int = 3


CASES = {
    "echoed in replies": Case("openai", "reply", 0),
    "in .env, echoed to the guardian": Case("anthropic", "reply", 0, ("text",), ("--guardian", "llm"), in_file=True),
    "refused": Case("openai", "401", 3),
    "server error": Case("anthropic", "500", 3, samples=1),  # fewer failures than close the gate for a minute
    "redirected": Case("openai", "redirect", 3),
    "redirected by the other": Case("anthropic", "redirect", 3),
    "in a batch": Case("openai", "batch", 0, options=("--batch",)),
}


@dataclass(frozen=True)
class Played:
    folder: Path
    code: int
    keys_received: tuple[str, ...]

    @property
    def printed(self) -> str:
        return (self.folder / "printed.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[OpenAIServer]:
    """Where redirects lead."""
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, elsewhere: OpenAIServer) -> Callable[[str], Played]:
    """`played(name)`: that case, run once."""

    @cache
    def play(name: str) -> Played:
        case, folder = CASES[name], begin(tmp_path_factory.mktemp("canary") / "run")
        echo = Echo(case.kind, elsewhere=elsewhere.url)
        with _server(case, echo) as server, _run(folder, case, server.url) as process:
            try:
                return Played(folder, process.wait(LONGEST_S), tuple(echo.seen))
            finally:
                process.kill()

    return play


def _server(case: Case, echo: Echo):
    if case.kind != "batch":
        return echoing(SERVERS[case.server], echo, case.faults)
    answers = iter([Fault(400, {"error": {"message": f"no key {KEY}", "code": KEY}})])
    server = BATCHES[case.server](lambda body: next(answers, None) or echo.text(KEY))
    server.looks = 0  # it is over when it is first looked at
    return server


def _run(folder: Path, case: Case, url: str):
    command = ["run", "--model", f"{case.server}/m", "--base-url", url, "--tasks", "./sum_0.yaml", "--out", "out"]
    command += [
        "--samples",
        str(case.samples),
        "--temperature",
        "0.5",
        "--max-rounds",
        "1",
        "--concurrency",
        "1",
        *case.options,
    ]
    given = ENVIRONMENT[case.server]
    if case.in_file:
        (folder / ".env").write_text("".join(f"{name}={key}\n" for name, key in given.items()), encoding="utf-8")
    return start(folder, *command, **(DEBUG if case.in_file else DEBUG | given))


@pytest.mark.parametrize("name", CASES)
def test_the_key_is_in_no_file_and_no_output_of_a_run(played: Callable[[str], Played], name: str) -> None:
    found = played(name)
    assert found.code == CASES[name].code, found.printed
    assert CASES[name].kind == "batch" or set(found.keys_received) == {KEY}, "the server never got the key"
    assert "[key]" in found.printed or (found.folder / "out" / "opsmith.sqlite").is_file()
    assert leaks(found.folder) == []


def test_no_redirect_takes_the_key_or_the_prompt_along(
    played: Callable[[str], Played], elsewhere: OpenAIServer
) -> None:
    assert "no redirect is followed" in played("redirected").printed
    assert "no redirect is followed" in played("redirected by the other").printed
    assert elsewhere.count == 0


@pytest.mark.parametrize("name", ["echoed in replies", "in .env, echoed to the guardian", "in a batch"])
def test_a_reply_is_stored_without_the_key_and_counts_all_the_same(played: Callable[[str], Played], name: str) -> None:
    with Store.open(played(name).folder / "out") as store:
        (run,) = [one.info.id for one in store.list_runs()]
        replies = [
            call.reply.texts[0] for row in store.list_samples(run) for call in store.find_sample(run, row.id).calls
        ]
        assert len(store.read_experiences(run)) == 1
    assert replies
    assert all("Your key is [key], its half is [key]." in reply for reply in replies)


@pytest.mark.parametrize("name", ["echoed in replies", "in .env, echoed to the guardian"])
def test_the_key_is_in_nothing_that_is_made_of_a_run(
    played: Callable[[str], Played], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports, exports, what commands print, the live pages: made where no key is known, so that nothing is blotted."""
    folder, texts = played(name).folder, []
    monkeypatch.chdir(folder)
    register()
    (folder / ".env").unlink(missing_ok=True)
    with Store.open("out") as store:
        (run,) = [one.info.id for one in store.list_runs()]
        sample = next(iter(store.list_samples(run))).id
    kinds = [word for kind in ("html", "md", "csv", "parquet", "svg") for word in ("--format", kind)]
    for arguments in (
        ["report", run, *kinds, "-o", "reports", "--out", "out"],
        ["export", run, "--dataset", "data", "--all", "--out", "out"],
        ["show", run, "--out", "out"],
        ["show", run, "sum_0", "--out", "out"],
        ["show", run, sample, "--prompt", "--out", "out"],
        ["prompt", "sum_0.yaml", "--from", run, "--out", "out"],
        ["models"],
    ):
        (folder / "reports").mkdir(exist_ok=True)
        done = CliRunner().invoke(build_app(), arguments)
        assert done.exit_code == 0, done.output
        texts.append(done.output)
    texts += _pages(folder / "out", run, sample)
    assert sum("[key]" in text for text in texts) >= 2
    assert leaks(folder, *texts) == []


def _pages(out: Path, run: str, sample: str) -> list[str]:
    """The live pages, as a browser on this machine gets them."""
    with Store.open(out) as store:
        made, _ = make_app(store, Access())
        with TestClient(made, base_url="http://localhost") as browser:
            paths = ["", "/samples", f"/samples/{sample}", "/tasks/sum_0", "/attempts/sum_0", "/results?now=1"]
            answers = [browser.get("/"), *(browser.get(f"/runs/{run}{path}") for path in paths)]
    assert [answer.status_code for answer in answers] == [200] * len(answers)
    return [answer.text for answer in answers]


def test_a_damaged_store_is_told_without_the_key(played: Callable[[str], Played], tmp_path: Path) -> None:
    """A task with an argument that no task has, named like the key."""
    folder = begin(tmp_path / "broken")
    (folder / "out").mkdir()
    with sqlite3.connect(played("echoed in replies").folder / "out" / "opsmith.sqlite") as source:
        source.backup(target := sqlite3.connect(folder / "out" / "opsmith.sqlite"))
    source.close()
    target.execute("UPDATE text SET body = ? WHERE hash IN (SELECT body FROM task)", (json.dumps({KEY: 1}),))
    (run,) = target.execute("SELECT id FROM run").fetchone()
    target.commit()
    target.close()
    assert start(folder, "show", run, "--out", "out", OPENAI_API_KEY=KEY).wait(LONGEST_S) == 4
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    assert "it is damaged: given rows that cannot be read" in printed
    assert "unexpected keyword argument '[key]'" in printed
    (folder / "out" / "opsmith.sqlite").unlink()
    assert leaks(folder) == []


MISTAKEN = """
import os
import sys
from opsmith.cli import app

def mistaken(arguments, prog_name):
    raise KeyError(os.environ["OPENAI_API_KEY"])

app.build_app = lambda name: mistaken
app.run_command(sys.argv[1:])
"""


def test_a_mistake_of_ours_shows_its_traceback_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    done = subprocess.run([sys.executable, "-c", MISTAKEN, "mistaken"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "KeyError: '[key]'" in done.stderr
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_password_of_a_proxy_is_in_no_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable, f"http://me:{KEY.replace('/', '_')}@127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level("DEBUG")
    with pytest.raises(ProviderError) as caught:
        ask("openai/m", "http://model.invalid/v1")
    assert leaks(tmp_path, str(caught.value), caplog.text) == []
    assert KEY.replace("/", "_") not in str(caught.value) + caplog.text
