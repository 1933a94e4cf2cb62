"""A run in MLflow, with the real package and its SQLite store."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tracked_run
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from mlflow import MlflowClient
from mlflow.entities import Run

from opsmith.bridges.trackers import track_run
from opsmith.learn.events import Event, RoundEnded, Warned
from opsmith.learn.loop import improve
from opsmith.results.result import RunResult
from opsmith.store import Store


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow store without runs: making its tables takes seconds."""
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    logged(f"sqlite:///{path}")
    return path


@pytest.fixture(autouse=True)
def server(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where MLflow is told to log, for this process and its children."""
    uri = f"sqlite:///{shutil.copy(tables, tmp_path)}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)  # artifacts go to ./mlruns
    return uri


def logged(uri: str) -> list[Run]:
    client = MlflowClient(uri)
    return client.search_runs([item.experiment_id for item in client.search_experiments()])


def steps(uri: str, run: Run, name: str) -> list[tuple[int, float]]:
    return [(item.step, item.value) for item in MlflowClient(uri).get_metric_history(run.info.run_id, name)]


def tracked(path: Path, events: list[Event] | None = None, **more: Any) -> RunResult:
    told = [] if events is None else events
    with Store.open(path) as store, track_run("mlflow", store, told.append) as on_event:
        return improve(TASKS, more.get("model") or TinyModel(), SETTINGS, store, judge=InProcess(), on_event=on_event)


def test_a_run_is_there_with_settings_rounds_result_and_files(server: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>all of it</p>")
    with Store.open(tmp_path / "s.sqlite") as store, track_run("mlflow", store, lambda event: None) as on_event:
        result = improve(TASKS, TinyModel(price=0.5), SETTINGS, store, judge=InProcess(), on_event=on_event)
        on_event.files = (tmp_path / "report.html",)
        usage = store.sum_usage(result.run)
    (run,) = logged(server)
    data = run.data
    assert (run.info.run_name, run.info.status) == (result.run, "FINISHED")
    assert (data.params["samples"], data.params["temperatures"], data.params["model_name"]) == (
        "12",
        "[0.4, 1.0]",
        "tiny-sampler",
    )
    assert data.tags["opsmith.is_language_model"] == "false"
    assert (data.tags["opsmith.run"], data.tags["opsmith.verifier"]) == (result.run, "tiny-1")
    cumulative = [(item.round, float(item.cumulative)) for item in result.rounds]
    assert steps(server, run, "solved") == cumulative
    assert len(cumulative) > 1
    last = {"input_tokens": usage.input_tokens, "requests": usage.requests, "cost_usd": usage.cost_usd, "unjudged": 0}
    last |= {"pass_at_1": result.overall.pass_at_1, "pass_at_n": result.overall.pass_at_n}
    last |= {f"pass_at_n/{group}": score.pass_at_n for group, score in result.groups.items()}
    assert {name: data.metrics[name] for name in last} == pytest.approx(last)
    client = MlflowClient(server)
    assert {item.path for item in client.list_artifacts(run.info.run_id)} == {"report.html", "result.json"}
    kept = Path(client.download_artifacts(run.info.run_id, "result.json")).read_text()
    assert json.loads(kept) == result.as_json()


def test_a_cost_that_is_not_known_is_left_out(server: str, tmp_path: Path) -> None:
    tracked(tmp_path / "s.sqlite", model=TinyModel(price=None))
    (run,) = logged(server)
    assert "cost_usd" not in run.data.metrics
    assert run.data.metrics["input_tokens"] > 0


def test_a_run_that_was_killed_goes_on_in_the_same_mlflow_run(server: str, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with subprocess.Popen([sys.executable, tracked_run.__file__, str(path), "0.1"]) as process:
        while not any("solved" in run.data.metrics for run in logged(server)) and process.poll() is None:
            time.sleep(0.05)
        process.kill()
    assert process.returncode == -signal.SIGKILL, "it was killed after its first round"
    (left,) = logged(server)
    assert left.info.status == "RUNNING"
    result = tracked(path)
    (run,) = logged(server)
    assert (run.info.run_id, run.info.status) == (left.info.run_id, "FINISHED")
    assert steps(server, run, "solved") == [(item.round, item.cumulative) for item in result.rounds]


def test_a_finished_run_is_logged_from_its_store_and_only_once(server: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess())
    for _ in range(2):
        tracked(tmp_path / "s.sqlite")
    (run,) = logged(server)
    assert run.info.status == "FINISHED"
    assert steps(server, run, "new") == [(item.round, len(item.newly_solved)) for item in result.rounds]
    assert steps(server, run, "pass_at_n") == [(result.rounds[-1].round, result.overall.pass_at_n)]


def test_the_same_settings_in_another_store_are_another_mlflow_run(server: str, tmp_path: Path) -> None:
    names = {tracked(tmp_path / name).run for name in ("a.sqlite", "b.sqlite")}
    assert len(names) == 1
    assert {run.data.tags["opsmith.run"] for run in logged(server)} == names
    assert len(logged(server)) == 2


def test_a_run_that_fails_or_stops_is_marked_so(server: str, tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        if isinstance(event, RoundEnded):
            raise OSError("the terminal is gone")

    with Store.open(tmp_path / "s.sqlite") as store:
        with pytest.raises(OSError, match="terminal"), track_run("mlflow", store, fail) as on_event:
            improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), on_event=on_event)
        assert [run.info.status for run in logged(server)] == ["FAILED"]
        capped = SETTINGS.replace(max_cost=20.0)
        with track_run("mlflow", store, lambda event: None) as on_event:
            result = improve(TASKS, TinyModel(price=1.0), capped, store, judge=InProcess(), on_event=on_event)
    assert result.end == "max cost"
    assert [(run.info.status, run.data.tags["opsmith.end"]) for run in logged(server)] == [("KILLED", "max cost")]


@pytest.mark.parametrize("uri", ["nowhere://me:secret@host", "sqlite:///a_file/mlflow.db"])
def test_a_server_that_does_not_work_is_said_once_and_stops_nothing(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_file").touch()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    events: list[Event] = []
    result = tracked(tmp_path / "s.sqlite", events)
    assert result.finished
    (said,) = [event.message for event in events if isinstance(event, Warned)]
    assert said.startswith("--track mlflow: ")
    assert "secret" not in said


def test_from_the_command_line(server: str, tmp_path: Path) -> None:
    command = [
        Path(sys.executable).parent / "opsmith",
        "run",
        "--track",
        "mlflow",
        "--json",
        "--out",
        tmp_path / "runs",
    ]
    command += ["--tasks", "bmm_0,bmm_1", "--samples", "2", "--temperature", "1.0", "--max-rounds", "1"]
    env = os.environ | {"MLFLOW_EXPERIMENT_NAME": "library"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    result = json.loads(done.stdout)
    assert "warning" not in done.stderr
    (run,) = logged(server)
    assert run.data.metrics["solved"] == result["solved"]
    assert run.data.params["tasks"] == '["bmm_0", "bmm_1"]'
    names = {item.path for item in MlflowClient(server).list_artifacts(run.info.run_id)}
    assert names == {"result.json", Path(result["report"]).name}
    experiment = MlflowClient(server).get_experiment(run.info.experiment_id)
    assert experiment.name == "library"
