"""The values of pages that show two things side by side: samples, or runs."""

from __future__ import annotations

from typing import Any

from opsmith.errors import UsageError
from opsmith.report.beside import compare_samples
from opsmith.report.by_target import describe_task
from opsmith.report.comparison import RUN_FIGURES, format_signed
from opsmith.report.document import draw_pictures
from opsmith.report.paired import compare_views
from opsmith.report.views import RunView
from opsmith.ui.site import Site


def explain_choice(runs: int, samples: int) -> str:
    """Why nothing can be compared, where so many were ticked."""
    what = "samples" if samples else "runs"
    return f"Compared are two {what}; ticked: {samples or runs}. Go back, tick two, and try again."


def fill_samples(site: Site, names: tuple[str, str]) -> dict[str, Any]:
    """Two samples, each `RUN/SAMPLE`; the second without a run is one of the first's. Raises UsageError."""
    (run, _, sample), (other_run, _, other_sample) = (name.strip().rpartition("/") for name in names)
    if not (run and sample and other_sample):
        raise UsageError(f"samples {', '.join(map(repr, names))}: expected RUN/SAMPLE; try: a sample of a run's list")
    beside = compare_samples(site.store, (run, sample), (other_run or run, other_sample))
    return {"beside": beside}


def fill_runs(site: Site, names: tuple[str, str], now: bool) -> dict[str, Any]:
    """Two runs by their ids; `now`: wait for the numbers, otherwise the page asks for them. Raises UsageError."""
    runs = site.find_run(names[0]), site.find_run(names[1])
    if runs[0] == runs[1]:
        raise UsageError(f"run {runs[0]}: given twice; expected two runs; try: tick another one")
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
        "figures": draw_pictures(views),
    }


def _list_facts(views: tuple[RunView, RunView]) -> tuple[list[tuple[str, str, bool]], list[tuple[str, str, bool]]]:
    """Of each run (name, figure, whether the other's differs)."""
    describe_by_name = {"language": lambda view: view.target, "seed": lambda view: str(view.seed), **RUN_FIGURES}
    columns = [[(name, describe(view)) for name, describe in describe_by_name.items()] for view in views]
    pairs = list(zip(*columns, strict=True))
    first, second = ([(*pair[side], pair[0] != pair[1]) for pair in pairs] for side in (0, 1))
    return first, second
