"""How pass@k grows with the number of samples (figure 9)."""

from __future__ import annotations

from opsmith.models.roles import shorten_model
from opsmith.report.figure_style import COLUMNS
from opsmith_lab.evaluation.analysis import Analysis, Grid, Row, format_estimate, format_paper
from opsmith_lab.evaluation.bars import OVER_SAMPLES, make_namer
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study


def analyse_samples(study: Study) -> Analysis:
    """pass@k of every arm and model for k = 1, 2, 4 ... and the number of samples of the task with the fewest."""
    tasks = study.tasks_by_group[ALL]
    counts = (n for run in study.observed for n, _ in run.count_samples(tasks, best=True))
    ks = _list_powers(min(counts, default=0))
    rows = [_make_row(study, series, arm, k, last=k == ks[-1]) for series, arm in study.cells for k in ks]
    finding = _write_headline(study, rows)
    notes = ("pass@k is the unbiased estimate of the paper's equation (1) at each task's best temperature",)
    return Analysis(
        finding,
        rows,
        (_tabulate_rows(rows),),
        {"": _draw_figure(study, rows, finding)},
        notes,
    )


def _list_powers(largest: int) -> list[int]:
    """1, 2, 4 ... and the most itself.

    >>> _list_powers(12)
    [1, 2, 4, 8, 12]
    """
    powers = [2**i for i in range(largest.bit_length())]
    return sorted({*(k for k in powers if k <= largest), *([largest] if largest else [])})


def _make_row(study: Study, series: str, arm: str, k: int, last: bool) -> Row:
    """The paper's pass@n stands beside the last k, its pass@1 beside the first."""
    estimate = study.estimate_pass_at(k, series, arm, study.tasks_by_group[ALL])
    paper = (
        study.find_paper("pass@1", arm, series) if k == 1 else study.find_paper("pass@n", arm, series) if last else ()
    )
    return Row(series, arm, "pass@k", str(k), estimate, paper)


def _tabulate_rows(rows: list[Row]) -> Grid:
    lines = [
        (shorten_model(row.model), row.arm, row.of, format_estimate(row.estimate), format_paper(row.paper))
        for row in rows
    ]
    return Grid("pass@k", ("model", "arm", "k", "pass@k", "paper"), lines)


def _draw_figure(study: Study, rows: list[Row], finding: str) -> Chart:
    name = make_namer(study)
    points = [{"x": int(row.of), **row.scale_ends(), "series": name(row)} for row in rows if row.estimate]
    marks = [
        {"x": int(row.of), "y": value, "like": name(row), "series": f"paper: {name(row)}, {shorten_model(paper.model)}"}
        for row in rows
        for value, paper in row.paper
    ]
    options = {"x": "x", "y": "y", "low": "low", "high": "high", "series": "series", "log_x": True}
    words = {"title": finding, "x_title": "k, samples of each task", "y_title": "pass@k", "width": COLUMNS}
    limits = {"y_domain": [0.0, 1.0], "empty": "no task has a sample yet"}
    return Chart("lines", points, {**options, **words, **limits, "paper": marks}, (OVER_SAMPLES,))


def _write_headline(study: Study, rows: list[Row]) -> str:
    """Each arm's first and last value."""
    name = make_namer(study)
    shares: dict[str, list[Row]] = {}
    for row in rows:
        if row.estimate:
            shares.setdefault(name(row), []).append(row)
    if not shares:
        return "no task has a sample yet"
    last = next(iter(shares.values()))[-1].of
    spans = (
        f"{arm} {own[0].estimate.value:.3f} to {own[-1].estimate.value:.3f}"
        for arm, own in shares.items()
        if own[0].estimate and own[-1].estimate
    )
    return f"pass@1 to pass@{last}: {', '.join(spans)}"
