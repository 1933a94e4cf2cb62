"""`--store URL` on every command that reads or writes runs, against a real PostgreSQL server. No output has a password."""

import sys
import time
from pathlib import Path

import psycopg
import pytest
from clocks import lasts_at_most
from models.servers import OpenAIServer, refused
from postgres import PASSWORD
from starlette.testclient import TestClient
from test_run_command import answer
from typer.main import get_command

from opsmith.cli.app import build_app
from opsmith.errors import StoreError
from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.guard import Access

pytestmark = pytest.mark.usefixtures("warm_runs")

pytest.importorskip("openai", reason="the providers extra is not installed")

EXPERIMENT = """\
title = "One arm"
shows = "nothing"
analysis = "methods"
tasks = ["{tasks}"]
[settings]
samples = 6
temperatures = [0.5]
max_rounds = 1
[[model]]
name = "openai/any"
[[arm]]
name = "one"
agents = "single"
"""


@pytest.fixture
def call(opsmith, postgres, monkeypatch):
    """`call("show", run)` on an empty database, named by the environment; `call.url` is its URL."""
    url = postgres.new_database()
    monkeypatch.setenv("OPSMITH_STORE", url)

    def called(*arguments):
        done = opsmith(*arguments)
        assert PASSWORD not in done.out + done.err
        return done

    called.url = url
    return called


@pytest.fixture
def server():
    with OpenAIServer(answer) as served:
        yield served


@pytest.fixture
def run(call, server, tasks):
    """The id of a run of both tiny tasks."""
    told = call(
        *("run", "--model", "openai/any", "--base-url", server.url, "--tasks", tasks, "--samples", 8),
        *("--temperature", 0.5, "--json"),
    )
    assert told.code == 0, told.err
    return told.lines[-1]["run"]


def test_a_run_and_all_that_is_made_of_it_need_no_file_of_a_store(call, run, tasks):
    assert run in call("runs").out
    assert "copy x" in call("show", run).out
    sample = next(
        line.split()[0] for line in call("show", run, "sum_0", "--samples").out.splitlines() if "passed" in line
    )
    assert "--- verdict ---\npassed" in call("show", run, sample).out
    assert "examples:" in call("prompt", tasks / "sum_0.yaml", "--from", run).out
    assert "which are one run" in call("compare", run, run).err
    assert call("report", run, "--format", "md", "--out", "elsewhere").out == f"elsewhere/reports/{run}.md\n"
    assert "it is finished" in call("pause", run).err
    assert not list(Path().rglob("*.sqlite*"))
    assert Path(f"runs/reports/{run}.html").is_file(), "the report of the run itself, where --out is by default"
    texts = [path.read_text(encoding="utf-8") for path in Path().rglob("*.*") if path.is_file()]
    assert not any(PASSWORD in text for text in texts)


def test_the_same_command_goes_on_where_the_run_is(call, run, server, tasks):
    before = server.count
    again = call(
        *("run", "--model", "openai/any", "--base-url", server.url, "--tasks", tasks, "--samples", 8),
        *("--temperature", 0.5, "--json", "--store", call.url),
    )
    assert (again.code, again.lines[-1]["run"], server.count) == (0, run, before)


def test_a_wish_to_pause_is_told_whether_some_process_works_on_the_run(call, tasks):
    with OpenAIServer(refused("no such key", status=401)) as server:
        stopped = call("run", "--model", "openai/any", "--base-url", server.url, "--tasks", tasks, "--samples", 2)
    assert stopped.code == 3
    with Store.open(call.url) as store:
        (run,) = [one.info.id for one in store.list_runs()]
        assert "no process works on it now; it will wait when it goes on" in call("pause", run).err
        assert store.is_paused(run)
        with store.lock(run):
            assert f"run {run} goes on" in call("resume", run).err
        assert not store.is_paused(run)


def test_the_pages_show_what_another_process_writes(call, run):
    with Store.open(call.url) as store:
        made, _ = make_app(store, Access())
        with TestClient(made, base_url="http://localhost") as browser:
            assert run in browser.get("/").text
            assert "sum_0" in browser.get(f"/runs/{run}").text
            before = store.version()
            with Store.open(call.url) as other:
                other.put([]).result()
                other.put([_wish(run)]).result()
            end = time.monotonic() + 60
            while store.version() == before and time.monotonic() < end:
                time.sleep(0.05)
            assert store.version() != before
            assert PASSWORD not in browser.get("/").text


def _wish(run):
    from opsmith.store.rows import control_row

    return control_row(run, "pause")


def test_an_experiment_keeps_its_runs_there_and_its_results_in_a_folder(call, server, tasks):
    Path("one.toml").write_text(EXPERIMENT.format(tasks=tasks))
    done = call("experiment", "one.toml", "--base-url", server.url, "--results", "made")
    assert done.code == 0, done.err
    assert {path.suffix for path in Path("made").iterdir()} >= {".md", ".json", ".csv"}
    with Store.open(call.url) as store:
        assert len(store.list_runs()) == 1


def test_every_command_that_has_a_folder_of_runs_has_a_store(opsmith):
    commands = get_command(build_app()).commands
    with_runs = {name for name, command in commands.items() if {"out", "folder"} & {p.name for p in command.params}}
    with_store = {name for name, command in commands.items() if "url" in {p.name for p in command.params}}
    assert with_runs - {"init"} == with_store
    assert {"run", "experiment", "runs", "show", "report", "export", "ui", "pause", "resume"} <= with_store


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("postgresql://a:{}@127.0.0.1:9/x", 4, "the database server is away; start it"),
        ("postgresql://a:{}@no.invalid/x", 4, "check the host name of --store"),
        ("postgresql://a:{}@h:port/x", 2, "--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("mysql://a:{}@h/x", 2, "--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("postgresql://a:{}@h", 2, "--store: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("runs", 2, "try, for a folder: --out DIR"),
    ],
)
def test_a_wrong_address_is_one_message_soon_and_without_the_password(opsmith, url, code, words):
    with lasts_at_most(20.0, time.monotonic):
        done = opsmith("runs", "--store", url.format(PASSWORD))
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert PASSWORD not in done.err


def test_a_wrong_password_and_a_missing_database_say_so(opsmith, postgres):
    good = postgres.new_database()
    assert "check the user and the password" in opsmith("runs", "--store", good.replace(PASSWORD, "wrong")).err
    assert "createdb" in opsmith("runs", "--store", f"{good}_missing").err


def test_a_missing_driver_is_said_with_the_command_that_installs_it(opsmith, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    done = opsmith("runs", "--store", "postgresql://a@127.0.0.1:9/x")
    assert done.code == 2
    assert "pip install" in done.err
    assert "[postgres]'" in done.err


def test_a_user_who_may_only_read_reads_and_changes_nothing(call, run, opsmith):
    reader = f"reader_{call.url.rpartition('/')[2]}"
    with psycopg.connect(call.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {reader} LOGIN PASSWORD '{PASSWORD}'")
        connection.execute(f"GRANT USAGE ON SCHEMA opsmith TO {reader}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA opsmith TO {reader}")
    url = call.url.replace("//opsmith:", f"//{reader}:")
    assert run in opsmith("runs", "--store", url).out
    assert opsmith("report", run, "--store", url, "--format", "md").code == 0
    with Store.open(url) as store, pytest.raises(StoreError, match="permission denied"):
        store.put([_wish(run)]).result(timeout=60)
