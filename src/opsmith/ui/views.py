"""The values of each page's template, from the site."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from opsmith.errors import UsageError
from opsmith.records import Outcome, Stage
from opsmith.report.attempts import (
    draw_improvement,
    find_improvement,
    find_task,
    read_task_speeds,
    sample_view,
    task_view,
)
from opsmith.report.optimised import tabulate_steps, view_optimisation
from opsmith.report.run_deletion import describe_run_contents, refuse_needed_run
from opsmith.report.views import TaskRow
from opsmith.results.bests import find_best
from opsmith.results.optimisation import read_optimisation
from opsmith.store.attempts import list_attempts
from opsmith.store.deletion import referring_runs
from opsmith.store.notes import has_tags
from opsmith.store.pages import SampleKind, page_of
from opsmith.ui.curve import chart_run
from opsmith.ui.query import read_filter, read_place, write_filter, write_place
from opsmith.ui.reasons import read_attempt_reasons, read_reasons
from opsmith.ui.render import make_url
from opsmith.ui.site import ALL, Site, name_event
from opsmith.ui.snapshot import RunSnapshot, RunState, TaskCell

PROGRAMS = 12  # of a task, that its page lists
EARLIER = 20  # notes of a run, that were replaced
COMPARED = 100  # of a task, that are compared for isomorphism
AT_ONCE = 5_000  # samples of a run up to which a page says why things fail without asking for it afterwards


def fill_runs(site: Site, tags: Sequence[str]) -> dict[str, Any]:
    """The list of runs; `tags`: those that each must have. A list that is narrowed is not live."""
    lines, tags = site.list_lines(), sorted({tag.strip() for tag in tags if tag.strip()})
    return {
        "lines": [line for line in lines if has_tags(line.remarks, tags)],
        "asked": tags,
        "tags": sorted(Counter(tag for line in lines for tag in line.remarks.all_tags).items()),
        "live": None if tags else ALL,
        "path": site.store.path,
    }


def fill_deletion(site: Site, run: str) -> dict[str, Any]:
    """What goes with a run, or the runs that need it. Raises StoreError while somebody works on it."""
    users = referring_runs(site.store, run)
    if not users:
        refuse_needed_run(site.store, run)
    info = site.read_snapshot(run).summary.info
    contents = describe_run_contents(site.store, run)
    return {"run": run, "info": info, "contents": contents, "users": users, "access": site.access}


def fill_run(site: Site, run: str) -> dict[str, Any]:
    snapshot = site.read_snapshot(run)
    live = snapshot.state is not RunState.FINISHED
    notes = site.store.list_notes(run)
    return {
        "snapshot": snapshot,
        "charts": chart_run(snapshot),
        "optimised": view_optimisation(read_optimisation(site.store, run)),
        "access": site.access,
        "remarks": site.store.read_remarks(run),
        "earlier_notes": [note for note in notes[1 : EARLIER + 1] if note.text],
        "live": make_url(run) if live else None,
        "why": site.read_failures(run).view_failures() if _is_small(snapshot) else None,
    }


def fill_samples(site: Site, run: str, query: Mapping[str, str]) -> dict[str, Any]:
    """The list of samples that a query asks for. Raises UsageError when it cannot be read."""
    sample_filter, snapshot = read_filter(query), site.read_snapshot(run)
    after, before = read_place(query.get("after")), read_place(query.get("before"))
    page = page_of(site.store, run, sample_filter, snapshot.counts, after=after, before=before)
    query_values = write_filter(sample_filter)

    def link_neighbour(**place: Any) -> str | None:
        [(name, value)] = place.items()
        return None if value is None else make_url(run, "samples", **query_values, **{name: write_place(value)})

    return {
        "run": run,
        "info": snapshot.summary.info,
        "page": page,
        "reasons": read_reasons(site.store, page.lines),
        "asked": query_values,
        "choices": _list_choices(snapshot.counts, query_values),
        "total": None
        if sample_filter.begins or sample_filter.words
        else sum(n for kind, n in snapshot.counts.items() if sample_filter.lets_pass(kind)),
        "back": before is not None,
        "earlier": link_neighbour(before=page.before),
        "later": link_neighbour(after=page.after),
        "first": make_url(run, "samples", **query_values) if page.before else None,
    }


def fill_task(site: Site, run: str, task: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such task."""
    snapshot = site.read_snapshot(run)
    cell, planned = _find_cell(site, run, task), next((tree for tree in snapshot.plans if tree.has_task(task)), None)
    is_live = planned is not None and snapshot.state is not RunState.FINISHED
    speeds, picture = read_task_speeds(site.store, run, task)
    improved = find_improvement(read_optimisation(site.store, run), task)
    attempts = list_attempts(site.store, run, task, PROGRAMS)
    return {
        "run": run,
        "info": snapshot.summary.info,
        "task": find_task(site.store, run, task),
        "planned": planned,
        "plan_event": name_event(planned.task) if planned is not None else "",
        "live": make_url(run) if is_live else None,
        "cell": cell,
        "rounds": _count_by_round(snapshot.functional, task),
        "stages": _count_by_stage(snapshot.functional, task),
        "attempts": attempts,
        "reasons": read_attempt_reasons(site.store, attempts),
        "best": find_best(site.store, run, cell.solution.digest) if cell.solution is not None else None,
        "why": site.read_failures(run).view_failures(task) if _is_small(snapshot) else None,
        "speeds": speeds,
        "picture": picture,
        "steps": tabulate_steps([improved]) if improved is not None else None,
        "steps_picture": draw_improvement(improved),
    }


def fill_sample(site: Site, run: str, name: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such sample."""
    info = site.read_snapshot(run).summary.info
    return {"run": info, "info": info, "sample": sample_view(site.store, run, name)}


def fill_attempts(site: Site, run: str, task: str) -> dict[str, Any]:
    """Raises UsageError when the run has no such task."""
    cell = _find_cell(site, run, task)
    solution = None if cell.was_given else cell.solution
    row = TaskRow(
        id=cell.id,
        group=cell.group,
        state=cell.given_as if cell.was_given else "solved" if solution else "unsolved",
        round=solution.round if solution else None,
        rate=solution.rate if solution else 0.0,
        right=cell.right,
        judged=cell.judged_count,
        input_tokens=None,
        contaminated=solution is not None and solution.contaminated,
        cells=(),
    )
    view = task_view(site.store, run, row, programs=COMPARED)
    info = site.read_snapshot(run).summary.info
    return {"run": info, "info": info, "task": view}


def fill_results(site: Site, run: str, now: bool) -> dict[str, Any]:
    """`now`: wait for the numbers, which takes seconds for a large run; otherwise the page asks for them."""
    return {"id": run, "info": site.read_snapshot(run).summary.info, "results": site.read_results(run) if now else None}


def fill_failures(site: Site, run: str, now: bool, task: str | None = None) -> dict[str, Any]:
    """Of a run, or of a task of it. `now`: wait for the groups, which takes some seconds for a large run; otherwise the
    page asks for them."""
    why = site.read_failures(run).view_failures(task) if now else None
    return {"id": run, "task_id": task, "info": site.read_snapshot(run).summary.info, "why": why}


def _is_small(snapshot: RunSnapshot) -> bool:
    return snapshot.counts.total() <= AT_ONCE


def _find_cell(site: Site, run: str, task: str) -> TaskCell:
    snapshot = site.read_snapshot(run)
    cells = snapshot.task_cells
    cell = next((cell for cell in (*cells, *snapshot.nodes) if cell.id == task), None)
    if cell is None:
        names = ", ".join(cell.id for cell in cells)
        raise UsageError(f"task {task!r}: run {run} has no such task; known: {names}")
    return cell


def _list_choices(
    counts: Mapping[SampleKind, int], query_values: Mapping[str, Any]
) -> dict[str, list[tuple[str, str]]]:
    """For each filter the values that occur and the one that is set, as (value, what is shown)."""
    stages = [stage.name for stage in sorted({kind.stage for kind in counts if kind.stage is not None})]
    outcomes = {(kind.outcome or Outcome.UNJUDGED).value for kind in counts}
    choices = {
        "task": _pair_values({kind.task for kind in counts}),
        "round": _pair_values(map(str, sorted({kind.round for kind in counts}))),
        "temperature": [(repr(value), f"{value:g}") for value in sorted({kind.temperature for kind in counts})],
        "stage": _pair_values(stages),
        "outcome": _pair_values(outcomes),
        "agent": _pair_values({kind.agent for kind in counts if kind.agent}),
    }
    for name, values in choices.items():
        if query_values[name] is not None and str(query_values[name]) not in {value for value, _ in values}:
            values.append((str(query_values[name]), str(query_values[name])))
    return choices


def _pair_values(values: Any) -> list[tuple[str, str]]:
    listed = sorted(values) if isinstance(values, set) else list(values)
    return [(value, value) for value in listed]


def _count_by_round(counts: Mapping[SampleKind, int], task: str) -> list[tuple[int, float, int, int, int]]:
    """(round, temperature, right, judged, without a verdict) of a task's samples."""
    rows: dict[tuple[int, float], list[int]] = {}
    for kind, samples in counts.items():
        if kind.task == task:
            row = rows.setdefault((kind.round, kind.temperature), [0, 0, 0])
            row[0] += samples if kind.outcome is Outcome.PASSED else 0
            row[1] += samples if kind.outcome is not None else 0
            row[2] += samples if kind.outcome is None else 0
    return [(*place, *row) for place, row in sorted(rows.items())]  # type: ignore[misc]


def _count_by_stage(counts: Mapping[SampleKind, int], task: str) -> list[tuple[Stage, Outcome, int]]:
    """How many samples ended where, in the order of checking."""
    counts_by_end: dict[tuple[Stage, Outcome], int] = {}
    for kind, samples in counts.items():
        if kind.task == task and kind.stage is not None and kind.outcome is not None:
            counts_by_end[kind.stage, kind.outcome] = counts_by_end.get((kind.stage, kind.outcome), 0) + samples
    return [
        (*key, counts_by_end[key])
        for key in sorted(counts_by_end, key=lambda key: (key[0].rank, key[0].name, key[1].value))
    ]
