"""The values of pages that show two things side by side: samples, or runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from opsmith.errors import UsageError
from opsmith.report.beside import compare_samples
from opsmith.report.by_target import align_problems, describe_task
from opsmith.report.comparison import RUN_FIGURES, format_signed
from opsmith.report.curves import draw_picture
from opsmith.report.many_runs import (
    BY,
    SHOWN,
    TAG,
    draw_course,
    draw_courses,
    read_many,
    tabulate_course,
    tabulate_groups,
    tabulate_runs,
)
from opsmith.report.paired import compare_views
from opsmith.report.views import RunView
from opsmith.ui.site import Site

MOST = 50  # runs of a page


def explain_choice(runs: int, samples: int) -> str:
    """Why nothing can be compared, where so many were ticked."""
    if samples:
        return f"Compared are two samples; ticked: {samples}. Go back, tick two, and try again."
    return f"Compared are two to {MOST} runs; ticked: {runs}. Go back, tick some, and try again."


def fill_samples(site: Site, names: tuple[str, str]) -> dict[str, Any]:
    """Two samples, each `RUN/SAMPLE`; the second without a run is one of the first's. Raises UsageError."""
    (run, _, sample), (other_run, _, other_sample) = (name.strip().rpartition("/") for name in names)
    if not (run and sample and other_sample):
        raise UsageError(f"samples {', '.join(map(repr, names))}: expected RUN/SAMPLE; try: a sample of a run's list")
    beside = compare_samples(site.store, (run, sample), (other_run or run, other_sample))
    return {"beside": beside}


def find_runs(site: Site, names: Sequence[str]) -> list[str]:
    """Their ids. Raises UsageError for a run that does not exist, or is there twice."""
    runs = [site.find_run(name) for name in names]
    if twice := [run for run in runs if runs.count(run) > 1]:
        raise UsageError(f"run {twice[0]}: given twice; expected different runs; try: tick another one")
    return runs


def fill_many(site: Site, query: QueryParams, now: bool) -> dict[str, Any]:
    """Runs in one table and one figure, as the query says: `run` several times, `show`, `by`, `group`. Raises
    UsageError."""
    runs = find_runs(site, query.getlist("run"))
    shown, by, group = query.get("show") or "solved", query.get("by") or "round", query.get("group") or ""
    if shown not in SHOWN or by not in BY:
        raise UsageError(
            f"show {shown!r}, by {by!r}: expected {', '.join(SHOWN)} by {', '.join(BY)}; try: the list of runs"
        )
    choice = {"show": shown, "by": by, "group": group}
    address = f"/compare?{urlencode({'run': runs, **choice}, doseq=True)}"
    values: dict[str, Any] = {"runs": runs, "choice": choice, "address": address, "many": None}
    if not now:
        return values
    views = [site.read_results(run).view for run in runs]
    many = read_many(site.store, views)
    return values | {
        "many": many,
        "options": {"show": list(SHOWN), "by": list(BY), "group": ["", TAG, *many.differing]},
        "tables": {
            "Runs": tabulate_runs(many),
            **({"Groups": tabulate_groups(many, group)} if group else {}),
        },
        "course": {"Course": tabulate_course(many, shown, by, group)},
        "warnings": sorted({view.warning for view in views if view.warning}),
        "figures": [draw_picture(draw_course(many, shown, by, group))],
        "problems": align_problems(site.store, views),
        "describe": describe_task,
    }


def fill_runs(site: Site, names: tuple[str, str], now: bool) -> dict[str, Any]:
    """Two runs by their ids; `now`: wait for the numbers, otherwise the page asks for them. Raises UsageError."""
    runs = find_runs(site, names)
    values: dict[str, Any] = {"runs": runs, "comparison": None}
    if not now:
        return values
    comparison = compare_views(site.store, *(site.read_results(run).view for run in runs))
    views = (comparison.first, comparison.second)
    sides = [
        {"view": view, "remarks": site.store.read_remarks(view.id), "facts": facts}
        for view, facts in zip(views, _list_facts(views), strict=True)
    ]
    return values | {
        "comparison": comparison,
        "sides": sides,
        "signed": format_signed,
        "describe": describe_task,
        "figures": [draw_picture(figure) for figure in draw_courses(read_many(site.store, views))],
    }


def _list_facts(views: tuple[RunView, RunView]) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, bool]]]:
    """Of each run (name, figure, whether the other's differs)."""
    describe_by_name = {"language": lambda view: view.target, "seed": lambda view: str(view.seed), **RUN_FIGURES}
    columns = [[(name, describe(view)) for name, describe in describe_by_name.items()] for view in views]
    pairs = list(zip(*columns, strict=True))
    first, second = ([(*pair[side], pair[0] != pair[1]) for pair in pairs] for side in (0, 1))
    return first, second
