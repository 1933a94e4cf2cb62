"""How pass@k grows with the number of samples (figure 9)."""

from __future__ import annotations

from typing import Any

from opsmith.evaluation.analysis import Analysis, Grid, Row, format_estimate, format_paper, shorten_model
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import line_chart


def analyse_samples(study: Study) -> Analysis:
    """pass@k of every arm and model for k = 1, 2, 4 ... and the number of samples of the task with the fewest."""
    ks = _list_powers(_count_fewest(study))
    cells = [
        (series, arm) for series in study.series_names for arm in study.arm_names if study.select_runs(series, arm)
    ]
    rows = [_make_row(study, series, arm, k, last=k == ks[-1]) for series, arm in cells for k in ks]
    last = [row for row in rows if row.of == str(ks[-1]) and row.estimate] if ks else []
    headline = "; ".join(f"{shorten_model(row.model)}, {row.arm}: pass@{row.of} {row.estimate}" for row in last)
    notes = ("pass@k is the unbiased estimate of the paper's equation (1) at each task's best temperature",)
    return Analysis(
        headline or "no task has a sample yet",
        tuple(rows),
        (_tabulate_rows(rows),),
        {"": _draw_figure(study, rows)},
        notes,
    )


def _count_fewest(study: Study) -> int:
    tasks = study.tasks_by_group[ALL]
    return min((n for run in study.observed for n, _ in run.count_samples(tasks, best=True)), default=0)


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
    return Grid("pass@k", ("model", "arm", "k", "pass@k", "paper"), tuple(lines))


def _draw_figure(study: Study, rows: list[Row]) -> dict[str, Any]:
    has_one_series = len(study.series_names) == 1
    points = [
        {
            "k": int(row.of),
            "y": row.estimate.value,
            "low": row.estimate.low,
            "high": row.estimate.high,
            "who": row.arm if has_one_series else f"{shorten_model(row.model)}, {row.arm}",
        }
        for row in rows
        if row.estimate
    ]
    return line_chart(
        points,
        x="k",
        y="y",
        low="low",
        high="high",
        series="who",
        log_x=True,
        title=study.experiment.title,
        x_title="samples per task (k)",
        y_title="Pass@k",
        width=540,
        y_domain=(0.0, 1.0),
    )
