"""How good each arm is as a whole, and how much better than one of them (figure 2; the controls)."""

from __future__ import annotations

from opsmith.models.roles import shorten_model
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    count_solved,
    format_estimate,
    format_means,
    format_paper,
    map_measures,
    select_estimates,
)
from opsmith_lab.evaluation.bars import OVER_SAMPLES, chart_bars, make_namer, make_share_row
from opsmith_lab.evaluation.charts import Chart
from opsmith_lab.evaluation.study import ALL, Study


def analyse_methods(study: Study) -> Analysis:
    """pass@1 and pass@n of every arm and model, their cost, and the ratio of pass@n to that of `relative_to`."""
    rows = [row for cell in study.cells for row in _make_rows(study, *cell)]
    base = study.experiment.relative_to
    note = (
        f"ratio: mean pass@n of the arm over that of {base}; {OVER_SAMPLES}: its interval if tasks and seeds were fixed"
    )
    finding = _write_headline(study, rows)
    papers = [f"{row.arm} {format_paper(row.paper[:1])}" for row in rows if row.measure == "ratio" and row.paper]
    return Analysis(
        finding + (f"; paper: {papers[0]}" if papers else ""),
        rows,
        (_tabulate_rows(study, rows),),
        {"": _draw_figure(study, rows, finding)},
        (note,) if base else (),
    )


def _make_rows(study: Study, series: str, arm: str) -> list[Row]:
    rows = [make_share_row(study, name, series, arm) for name in ("pass@1", "pass@n")]
    base = study.experiment.relative_to
    if base and arm != base:
        ratio, over_samples = study.divide_solved(series, arm, base)
        rows.append(Row(series, arm, "ratio", ALL, ratio, study.find_paper("ratio", arm, series)))
        rows.append(Row(series, arm, f"ratio, {OVER_SAMPLES}", ALL, over_samples))
    return rows


def _tabulate_rows(study: Study, rows: list[Row]) -> Grid:
    base = study.experiment.relative_to
    columns = ("model", "arm", "pass@1", "pass@n", *([f"ratio to {base}", OVER_SAMPLES] if base else []), "paper")
    lines = [_format_row(study, rows, *cell) for cell in study.cells]
    return Grid("By arm", (*columns, "judged samples", "input tokens", "output tokens", "USD"), lines)


def _format_row(study: Study, rows: list[Row], series: str, arm: str) -> tuple[str, ...]:
    own = map_measures(rows, series, arm)
    names = ["pass@1", "pass@n", *(["ratio"] if study.experiment.relative_to else [])]
    values = [format_estimate(own[name].estimate) if name in own else "1" for name in names]
    beside = own.get(f"ratio, {OVER_SAMPLES}")
    values += [str(beside.estimate or "-") if beside else "1"] if study.experiment.relative_to else []
    paper = "; ".join(f"{name} {format_paper(row.paper)}" for name, row in own.items() if row.paper)
    spent = format_means(
        study,
        series,
        arm,
        lambda run: float(sum(tally.judged for tally in run.tallies)),
        lambda run: float(run.usage.input_tokens),
        lambda run: float(run.usage.output_tokens),
    )
    return (shorten_model(series), arm, *values, paper, *spent)


def _draw_figure(study: Study, rows: list[Row], finding: str) -> Chart:
    charted_rows = [row for row in rows if row.measure == "pass@n"]
    arms, models = (lambda row: row.arm), (lambda row: shorten_model(row.model))
    if len(study.series_names) == 1:
        return chart_bars(study, charted_rows, x=arms, series=models, title=finding, x_title="arm", in_tasks=True)
    return chart_bars(study, charted_rows, x=models, series=arms, title=finding, x_title="model", in_tasks=True)


def _write_headline(study: Study, rows: list[Row]) -> str:
    """Every arm, and how many times as much as the base each of the others solves: none is chosen for its result."""
    name = make_namer(study)
    counts = [f"{name(row)} {count_solved(estimate)}" for row, estimate in select_estimates(rows, "pass@n")]
    ratios = [f"{name(row)} {estimate:.2f}" for row, estimate in select_estimates(rows, "ratio")]
    times = f"; as multiples of {study.experiment.relative_to}, paired: {', '.join(ratios)}" if ratios else ""
    return f"tasks solved of {len(study.tasks)}: {', '.join(counts)}{times}"
