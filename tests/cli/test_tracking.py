"""`--track NAME`: a tracker hears of a run's progress, and cannot stop it. MLflow itself: `make bridges`."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.bridges import trackers
from opsmith.bridges.tracker import Status
from opsmith.bridges.trackers import TRACKERS, check_tracker, describe_error, track_run
from opsmith.errors import UsageError
from opsmith.learn.events import Event, RunEnded, Warned
from opsmith.learn.loop import improve
from opsmith.records import Level
from opsmith.results.result import RunResult
from opsmith.store import Store


class Listed:
    """A tracker that keeps what it is told and what it finds in the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.told: list[tuple[Status, int, tuple[Path, ...]]] = []
        self.failures: list[Exception] = []  # raised first, one at each call

    def update_run(self, run: str, status: Status, files: tuple[Path, ...]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.told.append((status, self.store.summarise_run(run).rounds, files))


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[Listed]:
    """The trackers that `--track json` makes; `json` stands for a package that is installed."""
    made: list[Listed] = []

    def make(store: Store) -> Listed:
        made.append(Listed(store))
        return made[-1]

    monkeypatch.setitem(TRACKERS, "json", make)
    return made


def tracked(path: Path, events: list[Event], **more: Any) -> RunResult:
    with Store.open(path) as store, track_run("json", store, events.append) as on_event:
        result = improve(TASKS, TinyModel(), SETTINGS, store, judge=InProcess(), on_event=on_event)
        on_event.files = more.get("files", ())
        return result


def test_a_tracker_sees_every_round_in_the_end_and_gets_the_files(tmp_path: Path, listed: list[Listed]) -> None:
    events: list[Event] = []
    result = tracked(tmp_path / "s.sqlite", events, files=(tmp_path / "report.html",))
    (tracker,) = listed
    assert tracker.told[-1] == (Status.FINISHED, len(result.rounds), (tmp_path / "report.html",))
    assert {status for status, _, _ in tracker.told[:-1]} <= {Status.RUNNING}
    assert isinstance(events[-1], RunEnded), "the display hears all, too"


def test_a_tracker_that_fails_is_mentioned_once_and_called_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Listed] = []

    def make(store: Store) -> Listed:
        made.append(Listed(store))
        made[0].failures = [OSError("http://me:secret@host is\naway"), OSError("still away")]
        return made[0]

    monkeypatch.setitem(TRACKERS, "json", make)
    events: list[Event] = []
    assert tracked(tmp_path / "s.sqlite", events).finished
    (warned,) = [event.message for event in events if isinstance(event, Warned)]
    assert warned.startswith("--track json: http://host is away; what is missing there comes ")


def test_a_tracker_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    class Hangs(Listed):
        def update_run(self, run: str, status: Status, files: tuple[Path, ...]) -> None:
            released.wait()

    monkeypatch.setitem(TRACKERS, "json", Hangs)
    monkeypatch.setattr(trackers, "WAIT_S", 0.2)
    events: list[Event] = []
    start = time.monotonic()
    assert tracked(tmp_path / "s.sqlite", events).finished
    released.set()
    assert time.monotonic() - start < 30
    (warned,) = [event.message for event in events if isinstance(event, Warned)]
    assert warned.startswith("--track json: no answer within 0.2 s; ")


def test_a_run_that_breaks_is_told_as_failed(tmp_path: Path, listed: list[Listed]) -> None:
    class Broken(InProcess):
        async def judge(self, task: Any, source: str, level: Level = Level.CHEAP) -> Any:
            raise ZeroDivisionError

    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(ZeroDivisionError),
        track_run("json", store, lambda event: None) as on_event,
    ):
        improve(TASKS, TinyModel(), SETTINGS, store, judge=Broken(), on_event=on_event)
    assert listed[0].told[-1][0] is Status.FAILED


@pytest.mark.parametrize(
    ("name", "words"),
    [("wandb", "--track: given 'wandb'; expected one of: mlflow"), ("nobody_has_this", "pip install 'opsmith[nobody_")],
)
def test_a_tracker_that_is_not_there_is_a_usage_error(name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRACKERS, "nobody_has_this", Listed)
    with pytest.raises(UsageError) as error:
        check_tracker(name)
    assert words in str(error.value)


def test_the_command_says_so_before_it_starts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "opsmith", "run", "--track", "nothing", "--out", str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "opsmith: --track: given 'nothing'; expected one of: mlflow\n")
    assert not (tmp_path / "runs").exists()


def test_an_error_is_shown_in_one_short_line_without_secrets() -> None:
    assert (
        describe_error(ValueError("a\x1b[31m b\nhttps://u:p@h/x " + "y" * 999))[:25] == "a\ufffd[31m b https://h/x yyyy"
    )
    assert len(describe_error(ValueError("y" * 999))) == trackers.MAX_MESSAGE
    assert describe_error(ValueError()) == "ValueError"


def test_no_other_system_is_imported_with_opsmith() -> None:
    code = """if True:
        import sys, opsmith, opsmith.api, opsmith.cli, opsmith.bridges.trackers, opsmith.learn.loop
        others = {"inspect_ai", "verifiers", "mlflow", "datasets", "opsmith_step26"}
        print(sorted(others & {name.partition(".")[0] for name in sys.modules}))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
