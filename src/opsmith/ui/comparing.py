"""The values of pages that show two things side by side: samples, or runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from opsmith.errors import UsageError
from opsmith.report.beside import compare_samples
from opsmith.report.curves import draw_picture
from opsmith.report.many_runs import BY, SHOWN, TAG, compare_runs, draw_course, draw_courses, gather_runs, turn_pair
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
    many = gather_runs(views)
    tables = compare_runs(site.store, many, query.get("show") or "", query.get("by") or "", group)
    is_chosen = any(query.get(name) for name in choice)
    drawn = [draw_course(many, shown, by, group)] if is_chosen or len(runs) > 2 else draw_courses(many)
    return values | {
        "many": many,
        "options": {"show": list(SHOWN), "by": list(BY), "group": ["", TAG, *many.differing]},
        "tables": turn_pair(many, tables),
        "warnings": sorted({view.warning for view in views if view.warning}),
        "unfinished": [view for view in views if not view.finished],
        "figures": list(map(draw_picture, drawn)),
    }
