"""What does each page show? The values of its template, from the site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsmith.errors import UsageError
from opsmith.records import Outcome, Stage
from opsmith.report.attempts import sample_view, task_view
from opsmith.report.views import TaskRow
from opsmith.store.attempts import attempts
from opsmith.store.pages import Kind, page_of
from opsmith.ui.asked import filter_query, read_filter, read_place, write_place
from opsmith.ui.board import State, TaskCell
from opsmith.ui.render import run_url
from opsmith.ui.site import Site

PROGRAMS = 12  # of a task, that its page lists
COMPARED = 100  # of a task, that are compared for isomorphism


def run_page(site: Site, run: str) -> dict[str, Any]:
    board = site.board(run)
    live = board.state is not State.FINISHED
    return {"board": board, "access": site.access, "live": run_url(run) if live else None}


def samples_page(site: Site, run: str, query: Mapping[str, str]) -> dict[str, Any]:
    """The list of samples that a query asks for. Raises UsageError when it cannot be read."""
    wanted, board = read_filter(query), site.board(run)
    after, before = read_place(query.get("after")), read_place(query.get("before"))
    page = page_of(site.store, run, wanted, board.counts, after=after, before=before)
    asked = filter_query(wanted)

    def neighbour(**place: Any) -> str | None:
        [(name, value)] = place.items()
        return None if value is None else run_url(run, "samples", **asked, **{name: write_place(value)})

    return {
        "run": run,
        "info": board.summary.info,
        "page": page,
        "asked": asked,
        "choices": _choices(board.counts, asked),
        "total": None if wanted.begins else sum(n for kind, n in board.counts.items() if wanted.lets(kind)),
        "earlier": neighbour(before=page.before),
        "later": neighbour(after=page.after),
        "first": run_url(run, "samples", **asked) if page.before else None,
    }


def task_page(site: Site, run: str, task: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such task."""
    board = site.board(run)
    cell = _cell(site, run, task)
    return {
        "run": run,
        "info": board.summary.info,
        "task": next(item for item in site.boards.tasks(run) if item.id == task),
        "cell": cell,
        "rounds": _by_round(board.counts, task),
        "stages": _by_stage(board.counts, task),
        "attempts": attempts(site.store, run, task, PROGRAMS),
        "program": _program(site, run, cell),
    }


def sample_page(site: Site, run: str, name: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such sample."""
    info = site.board(run).summary.info
    return {"run": info, "info": info, "sample": sample_view(site.store, run, name)}


def attempts_page(site: Site, run: str, task: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such task."""
    cell = _cell(site, run, task)
    kept = None if cell.given else cell.solution
    row = TaskRow(
        id=cell.id,
        group=cell.group,
        state="given" if cell.given else "solved" if kept else "unsolved",
        round=kept.round if kept else None,
        rate=kept.rate if kept else 0.0,
        right=cell.right,
        judged=cell.judged,
        input_tokens=None,
        contaminated=kept is not None and kept.contaminated,
        cells=(),
    )
    view = task_view(site.store, run, row, programs=COMPARED)
    info = site.board(run).summary.info
    return {"run": info, "info": info, "task": view}


def results_page(site: Site, run: str, now: bool) -> dict[str, Any]:
    """`now`: wait for the numbers, which takes seconds for a large run; otherwise the page asks for them."""
    return {"id": run, "info": site.board(run).summary.info, "results": site.results(run) if now else None}


def _cell(site: Site, run: str, task: str) -> TaskCell:
    cells = site.board(run).cells
    found = next((cell for cell in cells if cell.id == task), None)
    if found is None:
        known = ", ".join(cell.id for cell in cells)
        raise UsageError(f"task {task!r}: run {run} has no such task; known: {known}")
    return found


def _choices(counts: Mapping[Kind, int], asked: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """For each filter the values that occur and the one that is set, as (value, what is shown)."""
    stages = [stage.name for stage in Stage if any(kind.stage is stage for kind in counts)]
    outcomes = {(kind.outcome or Outcome.UNJUDGED).value for kind in counts}
    found = {
        "task": _same({kind.task for kind in counts}),
        "round": _same(map(str, sorted({kind.round for kind in counts}))),
        "temperature": [(repr(value), f"{value:g}") for value in sorted({kind.temperature for kind in counts})],
        "stage": _same(stages),
        "outcome": _same(outcomes),
        "agent": _same({kind.agent for kind in counts if kind.agent}),
    }
    for name, values in found.items():
        if asked[name] is not None and str(asked[name]) not in {value for value, _ in values}:
            values.append((str(asked[name]), str(asked[name])))
    return found


def _same(values: Any) -> list[tuple[str, str]]:
    listed = sorted(values) if isinstance(values, set) else list(values)
    return [(value, value) for value in listed]


def _by_round(counts: Mapping[Kind, int], task: str) -> list[tuple[int, float, int, int, int]]:
    """(round, temperature, right, judged, without a verdict) of a task's samples."""
    found: dict[tuple[int, float], list[int]] = {}
    for kind, samples in counts.items():
        if kind.task == task:
            row = found.setdefault((kind.round, kind.temperature), [0, 0, 0])
            row[0] += samples if kind.outcome is Outcome.PASSED else 0
            row[1] += samples if kind.outcome is not None else 0
            row[2] += samples if kind.outcome is None else 0
    return [(*place, *row) for place, row in sorted(found.items())]  # type: ignore[misc]


def _by_stage(counts: Mapping[Kind, int], task: str) -> list[tuple[Stage, Outcome, int]]:
    """How many samples ended where, in the order of checking."""
    found: dict[tuple[Stage, Outcome], int] = {}
    for kind, samples in counts.items():
        if kind.task == task and kind.stage is not None and kind.outcome is not None:
            found[kind.stage, kind.outcome] = found.get((kind.stage, kind.outcome), 0) + samples
    return [(*key, found[key]) for key in sorted(found, key=lambda key: (key[0].value, key[1].value))]


def _program(site: Site, run: str, cell: TaskCell) -> str | None:
    """The program that was kept for a task."""
    if cell.solution is None:
        return None
    kept = site.store.experiences(run)
    return next((item.experience.source for item in kept if item.experience.task.digest == cell.solution.digest), None)
