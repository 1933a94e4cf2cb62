"""What the pages know: the store and what is kept of it, the parts of live pages, and what they may change."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from opsmith.learn.attend import store_wish
from opsmith.report.curves import DrawnFigure
from opsmith.report.document import draw_pictures
from opsmith.report.failures import FailureReader
from opsmith.report.optimised import summarise_gain, view_optimisation
from opsmith.report.pages import anchor_name
from opsmith.report.run_deletion import refuse_needed_run
from opsmith.report.views import RunView, run_view
from opsmith.results.optimisation import read_optimisation
from opsmith.results.refusals import RefusalGrouping
from opsmith.results.settings_apart import OneSetting, find_single
from opsmith.store import Store
from opsmith.store.notes import NO_REMARKS, Remarks
from opsmith.store.pages import run_ids
from opsmith.store.queries import RunSummary
from opsmith.store.rows import Wish
from opsmith.ui.cache import ValueCache
from opsmith.ui.curve import chart_run
from opsmith.ui.feed import Fragments
from opsmith.ui.guard import Access
from opsmith.ui.render import render_fragments, render_template
from opsmith.ui.snapshot import RunSnapshot, RunState, SnapshotReader

ALL = ""  # the subject of the list of runs
WARM_S = 2.0  # after which no further run is read before somebody asks
RUN_PARTS = {
    name: f"_{name}.html"
    for name in ("state", "remarks", "progress", "curve", "gains", "problems", "tasks", "last", "plans", "rounds")
}  # the parts of a run's page that change while it goes on


def name_event(task: str) -> str:
    """The event that brings the plan of a task to its page; a task's id may hold anything."""
    return anchor_name("plan", task)


@dataclass(frozen=True)
class Results:
    """What the report says of a run, as far as it has come."""

    view: RunView
    figures: tuple[DrawnFigure, ...]


@dataclass(frozen=True)
class RunLine:
    summary: RunSummary
    state: RunState
    gain: str | None  # of its optimisation rounds, in a few words; None: it has none
    remarks: Remarks = NO_REMARKS
    single: OneSetting | None = None  # in which alone it differs from an earlier run

    @property
    def id(self) -> str:
        return self.summary.info.id


class Site:
    """Thread-safe."""

    def __init__(self, store: Store, access: Access) -> None:
        self.store = store
        self.access = access
        self.reader = SnapshotReader(store)
        self._gains: dict[str, tuple[int, str]] = {}  # of finished runs, with the measurements that they had
        self._snapshots = ValueCache(self.reader.read_snapshot, self._read_version)
        self._lines = ValueCache(self._make_lines, lambda _: (self.store.version(), self._list_held()))
        self._results = ValueCache(self._make_results, self._read_version)
        self._ended: dict[str, dict[int, RefusalGrouping]] = {}  # by run: of its rounds that have ended
        self._failures = ValueCache(self._read_failures, self._read_version)

    def find_run(self, name: str) -> str:
        """The id of the run that is called so. Raises UsageError."""
        return self.store.find_run(name)

    def read_snapshot(self, run: str) -> RunSnapshot:
        """Its numbers may be a moment old, its state is not."""
        state, wish = self.reader.read_state(run)
        snapshot = self._snapshots.get_value(run)
        if (state is RunState.FINISHED) != (snapshot.state is RunState.FINISHED):
            self._snapshots.forget_value(run)
            snapshot = self._snapshots.get_value(run)
        return replace(snapshot, state=state, wish_paused=wish)

    def list_lines(self) -> list[RunLine]:
        """Newest first. Numbers may be a moment old, what people say of a run is not."""
        remarks = self.store.list_remarks()
        return [replace(line, remarks=remarks.get(line.id, NO_REMARKS)) for line in self._lines.get_value(ALL)]

    def read_results(self, run: str) -> Results:
        return self._results.get_value(run)

    def read_failures(self, run: str) -> FailureReader:
        """What the views of why things fail are made of; what it counts may be a moment old."""
        return self._failures.get_value(run)

    def render_parts(self, subject: str) -> Fragments:
        """The parts of a run's page, or of the list of runs, as they are now."""
        if subject == ALL:
            lines = [line for line in self.list_lines() if not line.remarks.is_archived]
            return Fragments(render_fragments({"runs": "_runs.html"}, lines=lines))
        snapshot = self.read_snapshot(subject)
        values = {"snapshot": snapshot, "access": self.access, "remarks": self.store.read_remarks(subject)}
        values["optimised"] = view_optimisation(read_optimisation(self.store, subject))
        html_by_name = render_fragments(RUN_PARTS, **values, charts=chart_run(snapshot))
        for planned in snapshot.plans:
            html_by_name[name_event(planned.task)] = render_template("_plan.html", planned=planned, run=snapshot)
        return Fragments(html_by_name, last=snapshot.state is RunState.FINISHED)

    def note_wish(self, name: str, wish: Wish) -> str:
        """Tell whoever works on a run to pause or to go on; the run's id. Raises UsageError when it is finished."""
        run = self.find_run(name)
        store_wish(self.store, run, wish)
        return run

    def delete_run(self, name: str) -> None:
        """Take a run out of the store. Raises UsageError or StoreError when something stands in the way."""
        run = self.find_run(name)
        refuse_needed_run(self.store, run)
        self.store.delete_run(run)
        self.forget_run(run)

    def forget_run(self, run: str) -> None:
        """A run that begins anew may have the id of one that was deleted."""
        self.reader.forget_run(run)
        self._gains.pop(run, None)
        self._snapshots.forget_value(run)
        self._results.forget_value(run)
        self._lines.forget_value(ALL)

    def warm_up(self) -> None:
        """Read the newest runs, so that no page waits for it; a large run takes a second."""
        until = time.monotonic() + WARM_S
        for run, _ in run_ids(self.store):
            if time.monotonic() > until:
                return
            self.read_snapshot(run)

    def _make_lines(self, _: str) -> list[RunLine]:
        summaries = [self.reader.read_summary(run) for run, _ in run_ids(self.store)]
        gains = {run: self._read_gain(run) for run in self.store.list_optimised_runs()}
        singles = find_single(summary.info for summary in reversed(summaries))
        return [
            RunLine(summary, self.reader.read_state(run)[0], gains.get(run), single=singles.get(run))
            for summary in summaries
            if (run := summary.info.id)
        ]

    def _read_gain(self, run: str) -> str:
        """That of a finished run is read again only when more was measured of it."""
        measured = self.store.count_speeds(run)
        if run in self._gains and self._gains[run][0] == measured:
            return self._gains[run][1]
        result = read_optimisation(self.store, run)
        gain = summarise_gain(result) if result is not None else ""
        if self.reader.read_summary(run).finished:
            self._gains[run] = measured, gain
        return gain

    def _make_results(self, run: str) -> Results:
        view = run_view(self.store, run)
        return Results(view, draw_pictures(view))

    def _read_failures(self, run: str) -> FailureReader:
        return FailureReader(self.store, run, self._ended.setdefault(run, {}))

    def _list_held(self) -> tuple[str, ...]:
        """The runs that a process works on: what no row of the store tells."""
        return tuple(run for run, _ in run_ids(self.store) if self.store.is_held(run))

    def _read_version(self, run: str) -> tuple[int, bool]:
        return self.store.version(), self.store.is_held(run)
