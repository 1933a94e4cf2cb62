"""The trackers by name, each brought up to date while the run goes on.

    with track_run("mlflow", store, on_event) as on_event:
        improve(tasks, model, settings, store, on_event=on_event)

A tracker is told a run's name and reads the rest from the store, so that what it missed comes later: it is called when
the run starts, after each round and at the end, in a thread of its own. Whatever fails there never touches the run: it
is said once, and tried again at the next occasion.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from opsmith.bridges.tracker import Status, Tracker
from opsmith.errors import UsageError
from opsmith.learn.events import Event, OnEvent, RoundEnded, RunEnded, RunStarted, Warned
from opsmith.records import printable
from opsmith.store import Store

WAIT_S = 30.0  # at the end, for a tracker that is still busy
MAX_MESSAGE = 300  # characters of a tracker's error that are shown


def _make_mlflow(store: Store) -> Tracker:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read on import: a run is told to its server alone
    module = import_module("opsmith.bridges.mlflow_tracker")
    logging.getLogger("mlflow").setLevel(logging.WARNING)  # its tables are made without a word
    tracker: Tracker = module.MlflowTracker(store)
    return tracker


TRACKERS: dict[str, Callable[[Store], Tracker]] = {"mlflow": _make_mlflow}  # by the name of the package that each needs


def check_tracker(name: str | None) -> None:
    """Raises UsageError for a tracker that does not exist, or whose package is missing; imports nothing."""
    if name is None:
        return
    if name not in TRACKERS:
        raise UsageError(f"--track: given {name!r}; expected one of: {', '.join(TRACKERS)}")
    if find_spec(name) is None:
        raise UsageError(f"--track {name}: the package {name} is not installed; try: pip install 'opsmith[{name}]'")


@contextlib.contextmanager
def track_run(name: str | None, store: Store, on_event: OnEvent) -> Iterator[Tracking]:
    """Tells `on_event` of every event, and the tracker of that name (None: there is none) of the run's progress."""
    check_tracker(name)
    listener = Tracking(None if name is None else TRACKERS[name], name or "", store, on_event)
    try:
        yield listener
    finally:
        listener.finish_tracking()


class Tracking:
    """Events on their way to two listeners; called with each."""

    def __init__(self, make: Callable[[Store], Tracker] | None, name: str, store: Store, on_event: OnEvent) -> None:
        self.files: tuple[Path, ...] = ()  # what was written about the run: set it before the context ends
        self._name, self._on_event = name, on_event
        self._run = ""
        self._status = Status.RUNNING
        self._asked: queue.SimpleQueue[Status | None] = queue.SimpleQueue()
        self._problem: str | None = None
        self._said = False
        self._thread: threading.Thread | None = None
        if make is not None:
            self._thread = threading.Thread(
                target=self._update_tracker, args=(make, store), name="opsmith.track", daemon=True
            )
            self._thread.start()

    def __call__(self, event: Event) -> None:
        self._on_event(event)
        if self._thread is None:
            return
        if isinstance(event, RunEnded):  # what it brings is told when the context ends, with the files
            self._run, self._status = event.result.run, Status.FINISHED if event.result.finished else Status.STOPPED
        elif isinstance(event, (RunStarted, RoundEnded)):
            self._run = event.run if isinstance(event, RunStarted) else self._run
            self._asked.put(Status.RUNNING)
        self._report_problem()

    def finish_tracking(self) -> None:
        """The last update, and a limited time for it."""
        if self._thread is None:
            return
        if self._run:
            self._asked.put(Status.FAILED if self._status is Status.RUNNING else self._status)
        self._asked.put(None)
        self._thread.join(WAIT_S)
        if self._thread.is_alive():
            self._problem = self._problem or f"no answer within {WAIT_S:g} s"
        self._report_problem()

    def _report_problem(self) -> None:
        if self._problem is not None and not self._said:
            self._said = True
            later = "what is missing there comes with a later round, or when the same command is given again"
            self._on_event(Warned(f"--track {self._name}: {self._problem}; {later}"))

    def _update_tracker(self, make: Callable[[Store], Tracker], store: Store) -> None:
        tracker: Tracker | None = None
        while (status := self._asked.get()) is not None:
            if not self._asked.empty() and status is Status.RUNNING:
                continue  # a later one shows all that this one would
            try:
                tracker = tracker or make(store)
                tracker.update_run(self._run, status, self.files)
            except Exception as error:  # anything: a server, a disk, a package
                self._problem = describe_error(error)


def describe_error(error: Exception) -> str:
    """An error in one line, without the user and password that an address in it may hold."""
    text = " ".join(str(error).split()) or type(error).__name__
    return printable(re.sub(r"//[^/@\s]*@", "//", text))[:MAX_MESSAGE]
