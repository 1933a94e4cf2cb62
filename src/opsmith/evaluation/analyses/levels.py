"""What does the adaptive granularity m cost and bring? Tokens and performance as ratios (figure 8)."""

from __future__ import annotations

from typing import Any

from opsmith.evaluation import measure
from opsmith.evaluation.found import Analysis, Grid, Row, measured, number, short, stated
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import line_chart


def levels(study: Study) -> Analysis:
    """pass@n and tokens by arm, each as a ratio to the arm `relative_to`."""
    cells = [(series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    rows = [row for series, arm in cells for row in _rows(study, series, arm)]
    base = study.experiment.relative_to
    notes = (
        f"performance: pass@n of {base} over that of the arm; tokens: those of the arm over those of {base}, so "
        f"that above 1 speaks for {base} in both",
        "the paper does not say which tokens its ratio counts; both ways of counting stand in the table",
    )
    grid = Grid("By granularity", _columns(base), tuple(_line(study, rows, *cell) for cell in cells))
    return Analysis(_headline(study, rows), tuple(rows), (grid,), {"": _figure(study, rows)}, notes)


def _columns(base: str) -> tuple[str, ...]:
    ratios = (f"pass@n of {base} / arm", f"tokens of arm / {base}", f"billed tokens of arm / {base}")
    return "model", "arm", "pass@n", "input tokens, mean over tasks", "billed input tokens", *ratios, "paper"


def _rows(study: Study, series: str, arm: str) -> list[Row]:
    tasks, base = study.groups[ALL], study.experiment.relative_to
    found = study.pass_at_n(series, arm, tasks)
    parts = [study.drawn(series, name, tasks, measure.solved) for name in (base, arm)]
    better = measure.ratio(*parts) if study.cell(series, base) else None
    return [
        Row(series, arm, "pass@n", ALL, found, study.paper("pass@n", arm, series)),
        Row(series, arm, "performance ratio", ALL, better, study.paper("performance ratio", arm, series)),
    ]


def _line(study: Study, rows: list[Row], series: str, arm: str) -> tuple[str, ...]:
    own = {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}
    base = study.experiment.relative_to
    paper = [f"performance {stated(own['performance ratio'].paper)}"] if own["performance ratio"].paper else []
    tokens = study.paper("token ratio", arm, series)
    paper += [f"tokens {stated(tokens)}"] if tokens else []
    counts = _necessary(study, series, arm), _billed(study, series, arm)
    against = _necessary(study, series, base), _billed(study, series, base)
    ratios = [number(one / two, ".2f") if one and two else "-" for one, two in zip(counts, against, strict=True)]
    values = measured(own["pass@n"].found), *map(number, counts), measured(own["performance ratio"].found)
    return (short(series), arm, *values, *ratios, "; ".join(paper))


def _necessary(study: Study, series: str, arm: str) -> float | None:
    """As the paper's learning curves count: see `curves`; at the end of the run."""
    return study.mean(series, arm, lambda o: o.result.input_tokens)


def _billed(study: Study, series: str, arm: str) -> float | None:
    return study.mean(series, arm, lambda o: float(o.usage.input_tokens))


def _headline(study: Study, rows: list[Row]) -> str:
    shares = "; ".join(f"{short(r.model)}, {r.arm}: {r.found}" for r in rows if r.measure == "pass@n" and r.found)
    return f"pass@n: {shares}"


def _figure(study: Study, rows: list[Row]) -> dict[str, Any]:
    points = [
        {
            "x": _necessary(study, row.model, row.arm),
            "y": row.found.value,
            "low": row.found.low,
            "high": row.found.high,
            "label": row.arm,
            "who": short(row.model),
        }
        for row in rows
        if row.measure == "pass@n" and row.found
    ]
    return line_chart(
        points,
        x="x",
        y="y",
        low="low",
        high="high",
        series="who",
        label="label",
        title=study.experiment.title,
        x_title="input tokens, mean over tasks",
        y_title="Pass@n",
        width=540,
    )
