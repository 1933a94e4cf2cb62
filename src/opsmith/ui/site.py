"""What do the pages know? The store and what is kept of it, the parts of live pages, and the wish to pause."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from opsmith.learn.pause import tell
from opsmith.report.document import Picture, pictures
from opsmith.report.views import RunView, run_view
from opsmith.store import Store
from opsmith.store.pages import run_ids
from opsmith.store.queries import RunSummary
from opsmith.store.rows import Wish
from opsmith.ui.board import Board, Boards, State
from opsmith.ui.feed import Fragments
from opsmith.ui.guard import Access
from opsmith.ui.kept import Kept
from opsmith.ui.render import fragments

ALL = ""  # the subject of the list of runs
WARM_S = 2.0  # after which no further run is read before somebody asks
RUN_PARTS = {
    name: f"_{name}.html" for name in ("state", "progress", "problems", "tasks", "last", "rounds")
}  # the parts of a run's page that change while it goes on


@dataclass(frozen=True)
class Results:
    """What the report says of a run, as far as it has come."""

    view: RunView
    figures: tuple[Picture, ...]


@dataclass(frozen=True)
class RunLine:
    summary: RunSummary
    state: State


class Site:
    """Thread-safe."""

    def __init__(self, store: Store, access: Access) -> None:
        self.store = store
        self.access = access
        self.boards = Boards(store)
        self._board = Kept(self.boards.board, self._version)
        self._lines = Kept(self._make_lines, lambda _: (self.store.version(), self._held()))
        self._results = Kept(self._make_results, self._version)

    def run(self, name: str) -> str:
        """The id of the run that is called so. Raises UsageError."""
        return self.store.find_run(name)

    def board(self, run: str) -> Board:
        """Its numbers may be a moment old, its state is not."""
        state, wish = self.boards.state(run)
        found = self._board.get(run)
        if (state is State.FINISHED) != (found.state is State.FINISHED):
            self._board.forget(run)
            found = self._board.get(run)
        return replace(found, state=state, wish_paused=wish)

    def lines(self) -> list[RunLine]:
        """Newest first."""
        return self._lines.get(ALL)

    def results(self, run: str) -> Results:
        return self._results.get(run)

    def parts(self, subject: str) -> Fragments:
        """The parts of a run's page, or of the list of runs, as they are now."""
        if subject == ALL:
            return Fragments(fragments({"runs": "_runs.html"}, lines=self.lines()))
        board = self.board(subject)
        return Fragments(fragments(RUN_PARTS, board=board, access=self.access), last=board.state is State.FINISHED)

    def wish(self, name: str, wish: Wish) -> str:
        """Tell whoever works on a run to pause or to go on; the run's id. Raises UsageError when it is finished."""
        run = self.run(name)
        tell(self.store, run, wish)
        return run

    def warm(self) -> None:
        """Read the newest runs, so that no page waits for it; a large run takes a second."""
        until = time.monotonic() + WARM_S
        for run, _ in run_ids(self.store):
            if time.monotonic() > until:
                return
            self.board(run)

    def _make_lines(self, _: str) -> list[RunLine]:
        summaries = [self.boards.summary(run) for run, _ in run_ids(self.store)]
        return [RunLine(summary, self.boards.state(summary.info.id)[0]) for summary in summaries]

    def _make_results(self, run: str) -> Results:
        view = run_view(self.store, run)
        return Results(view, pictures([view]))

    def _held(self) -> tuple[str, ...]:
        """The runs that a process works on: what no row of the store tells."""
        return tuple(run for run, _ in run_ids(self.store) if self.store.is_held(run))

    def _version(self, run: str) -> tuple[int, bool]:
        return self.store.version(), self.store.is_held(run)
