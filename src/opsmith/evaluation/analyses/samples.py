"""How does pass@k grow with the number of samples? (Figure 9.)"""

from __future__ import annotations

from typing import Any

from opsmith.evaluation.found import Analysis, Grid, Row, measured, short, stated
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import line_chart


def samples(study: Study) -> Analysis:
    """pass@k of every arm and model for k = 1, 2, 4 ... and the number of samples of the task with the fewest."""
    ks = _ks(_fewest(study))
    cells = [(series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    rows = [_row(study, series, arm, k, last=k == ks[-1]) for series, arm in cells for k in ks]
    last = [row for row in rows if row.of == str(ks[-1]) and row.found] if ks else []
    headline = "; ".join(f"{short(row.model)}, {row.arm}: pass@{row.of} {row.found}" for row in last)
    notes = ("pass@k is the unbiased estimate of the paper's equation (1) at each task's best temperature",)
    return Analysis(
        headline or "no task has a sample yet", tuple(rows), (_grid(rows),), {"": _figure(study, rows)}, notes
    )


def _fewest(study: Study) -> int:
    tasks = study.groups[ALL]
    return min((n for item in study.observed for n, _ in item.counts(tasks, best=True)), default=0)


def _ks(most: int) -> list[int]:
    """1, 2, 4 ... and the most itself.

    >>> _ks(12)
    [1, 2, 4, 8, 12]
    """
    powers = [2**i for i in range(most.bit_length())]
    return sorted({*(k for k in powers if k <= most), *([most] if most else [])})


def _row(study: Study, series: str, arm: str, k: int, last: bool) -> Row:
    """The paper's pass@n stands beside the last k, its pass@1 beside the first."""
    found = study.pass_at(k, series, arm, study.groups[ALL])
    paper = study.paper("pass@1", arm, series) if k == 1 else study.paper("pass@n", arm, series) if last else ()
    return Row(series, arm, "pass@k", str(k), found, paper)


def _grid(rows: list[Row]) -> Grid:
    lines = [(short(row.model), row.arm, row.of, measured(row.found), stated(row.paper)) for row in rows]
    return Grid("pass@k", ("model", "arm", "k", "pass@k", "paper"), tuple(lines))


def _figure(study: Study, rows: list[Row]) -> dict[str, Any]:
    one = len(study.series) == 1
    points = [
        {
            "k": int(row.of),
            "y": row.found.value,
            "low": row.found.low,
            "high": row.found.high,
            "who": row.arm if one else f"{short(row.model)}, {row.arm}",
        }
        for row in rows
        if row.found
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
