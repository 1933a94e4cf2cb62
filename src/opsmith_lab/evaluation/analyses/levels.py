"""What the adaptive granularity m costs and brings: tokens and performance as ratios (figure 8)."""

from __future__ import annotations

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    count_solved,
    format_estimate,
    format_number,
    format_paper,
    map_measures,
    select_estimates,
)
from opsmith_lab.evaluation.bars import OVER, OVER_SAMPLES, make_namer, make_share_row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study


def analyse_levels(study: Study) -> Analysis:
    """pass@n and tokens by arm, each as a ratio to the arm `relative_to`."""
    rows = [row for cell in study.cells for row in _make_rows(study, *cell)]
    base = study.experiment.relative_to
    notes = (
        f"performance: pass@n of {base} over that of the arm; tokens: those of the arm over those of {base}, so "
        f"that above 1 speaks for {base} in both",
        "the paper does not say which tokens its ratio counts; both ways of counting stand in the table",
    )
    ratios = (f"pass@n of {base} / arm", OVER_SAMPLES, f"tokens of arm / {base}", f"billed tokens of arm / {base}")
    columns = ("model", "arm", "pass@n", "input tokens, mean over tasks", "billed input tokens", *ratios, "paper")
    grid = Grid("By granularity", columns, [_format_row(study, rows, *cell) for cell in study.cells])
    finding = _write_headline(study, rows)
    return Analysis(finding, rows, (grid,), {"": _draw_figure(study, rows, finding)}, notes)


def _make_rows(study: Study, series: str, arm: str) -> list[Row]:
    base = study.experiment.relative_to
    better, over_samples = study.divide_solved(series, base, arm)
    return [
        make_share_row(study, "pass@n", series, arm),
        Row(series, arm, "performance ratio", ALL, better, study.find_paper("performance ratio", arm, series)),
        *([] if arm == base else [Row(series, arm, f"performance ratio, {OVER_SAMPLES}", ALL, over_samples)]),
    ]


def _format_row(study: Study, rows: list[Row], series: str, arm: str) -> tuple[str, ...]:
    own = map_measures(rows, series, arm)
    base = study.experiment.relative_to
    paper = [f"performance {format_paper(own['performance ratio'].paper)}"] if own["performance ratio"].paper else []
    tokens = study.find_paper("token ratio", arm, series)
    paper += [f"tokens {format_paper(tokens)}"] if tokens else []
    counts = _count_necessary(study, series, arm), _count_billed(study, series, arm)
    against = _count_necessary(study, series, base), _count_billed(study, series, base)
    ratios = [
        format_number(own_tokens / base_tokens, ".2f") if own_tokens and base_tokens else "-"
        for own_tokens, base_tokens in zip(counts, against, strict=True)
    ]
    values = (
        format_estimate(own["pass@n"].estimate),
        *map(format_number, counts),
        format_estimate(own["performance ratio"].estimate),
        str(beside.estimate or "-") if (beside := own.get(f"performance ratio, {OVER_SAMPLES}")) else "1",
    )
    return (shorten_model(series), arm, *values, *ratios, "; ".join(paper))


def _count_necessary(study: Study, series: str, arm: str) -> float | None:
    """As the paper's learning curves count: see `curves`; at the end of the run."""
    return study.average_number(series, arm, lambda o: o.result.input_tokens)


def _count_billed(study: Study, series: str, arm: str) -> float | None:
    return study.average_number(series, arm, lambda o: float(o.usage.input_tokens))


def _write_headline(study: Study, rows: list[Row]) -> str:
    """Tasks solved and input tokens of each arm, in its order."""
    name = make_namer(study)
    own = select_estimates(rows, "pass@n")
    counts = ", ".join(f"{name(row)} {count_solved(estimate)}" for row, estimate in own)
    tokens = ", ".join(format_number(_count_necessary(study, row.model, row.arm)) for row, _ in own)
    return f"tasks solved of {len(study.tasks)}: {counts}; input tokens of one prompt: {tokens}"


def _draw_figure(study: Study, rows: list[Row], finding: str) -> Chart:
    size = len(study.tasks)
    points = [
        {
            "x": _count_necessary(study, row.model, row.arm),
            **row.scale_ends(size),
            "label": row.arm,
            "series": shorten_model(row.model),
        }
        for row, _ in select_estimates(rows, "pass@n")
    ]
    options = {"x": "x", "y": "y", "low": "low", "high": "high", "series": "series", "label": "label"}
    words = {
        "title": finding,
        "x_title": "input tokens of one prompt, mean over tasks",
        "y_title": f"tasks solved of {size}",
    }
    return Chart("lines", points, {**options, **words, "is_joined": False}, (OVER["pass@n"],))
