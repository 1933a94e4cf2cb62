"""How good each arm is as a whole, and how much better than one of them (figure 2; the controls)."""

from __future__ import annotations

from opsmith.evaluation import measure
from opsmith.evaluation.analysis import (
    Analysis,
    Grid,
    Row,
    count_solved,
    format_estimate,
    format_number,
    format_paper,
    format_range,
    shorten_model,
)
from opsmith.evaluation.bars import chart_bars, make_namer
from opsmith.evaluation.charts import Chart
from opsmith.evaluation.study import ALL, Study


def analyse_methods(study: Study) -> Analysis:
    """pass@1 and pass@n of every arm and model, their cost, and the ratio of pass@n to that of `relative_to`."""
    rows = [row for series in study.series_names for arm in study.arm_names for row in _make_rows(study, series, arm)]
    base = study.experiment.relative_to
    notes = (
        [f"ratio: mean pass@n of the arm over that of {base}, samples of both redrawn independently"] if base else []
    )
    finding = _write_headline(study, rows)
    paper = format_paper([statement for row in rows if row.measure == "ratio" for statement in row.paper][:1])
    return Analysis(
        finding + (f"; paper: {paper}" if paper else ""),
        tuple(rows),
        (_tabulate_rows(study, rows),),
        {"": _draw_figure(study, rows, finding)},
        tuple(notes),
    )


def _make_rows(study: Study, series: str, arm: str) -> list[Row]:
    tasks = study.tasks_by_group[ALL]
    rows = [
        Row(
            series,
            arm,
            "pass@1",
            ALL,
            study.estimate_pass_at_1(series, arm, tasks),
            study.find_paper("pass@1", arm, series),
        ),
        Row(
            series,
            arm,
            "pass@n",
            ALL,
            study.estimate_pass_at_n(series, arm, tasks),
            study.find_paper("pass@n", arm, series),
        ),
    ]
    base = study.experiment.relative_to
    if base and arm != base:
        statistics = [study.draw_statistics(series, name, tasks, measure.solved_share) for name in (arm, base)]
        ratio = measure.divide_means(*statistics) if study.select_runs(series, arm) else None
        rows.append(Row(series, arm, "ratio", ALL, ratio, study.find_paper("ratio", arm, series)))
    return [row for row in rows if study.select_runs(series, arm)]


def _tabulate_rows(study: Study, rows: list[Row]) -> Grid:
    base = study.experiment.relative_to
    columns = ("model", "arm", "pass@1", "pass@n", *([f"ratio to {base}"] if base else []), "paper")
    lines = [
        _format_row(study, rows, series, arm)
        for series in study.series_names
        for arm in study.arm_names
        if study.select_runs(series, arm)
    ]
    return Grid("By arm", (*columns, "judged samples", "input tokens", "output tokens", "USD"), tuple(lines))


def _format_row(study: Study, rows: list[Row], series: str, arm: str) -> tuple[str, ...]:
    own = {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}
    names = ["pass@1", "pass@n", *(["ratio"] if study.experiment.relative_to else [])]
    values = [format_estimate(own[name].estimate) if name in own else "1" for name in names]
    paper = "; ".join(f"{name} {format_paper(row.paper)}" for name, row in own.items() if row.paper)
    spent = [study.average_number(series, arm, lambda o: float(sum(tally.judged for tally in o.tallies)))]
    spent += [study.average_number(series, arm, lambda o: float(o.usage.input_tokens))]
    spent += [study.average_number(series, arm, lambda o: float(o.usage.output_tokens))]
    dollars = study.average_number(series, arm, lambda o: o.usage.cost_usd)
    cost = "unknown" if dollars is None else format_number(dollars, ",.2f")
    return (shorten_model(series), arm, *values, paper, *(format_number(value) for value in spent), cost)


def _draw_figure(study: Study, rows: list[Row], finding: str) -> Chart:
    charted_rows = [row for row in rows if row.measure == "pass@n"]
    if len(study.series_names) == 1:
        arms, models = (lambda row: row.arm), (lambda row: shorten_model(row.model))
        return chart_bars(study, charted_rows, x=arms, series=models, title=finding, x_title="arm")
    models, arms = (lambda row: shorten_model(row.model)), (lambda row: row.arm)
    return chart_bars(study, charted_rows, x=models, series=arms, title=finding, x_title="model")


def _write_headline(study: Study, rows: list[Row]) -> str:
    """The arm with the highest ratio beside the one that it is compared with; without ratios all arms."""
    ratios = [row for row in rows if row.measure == "ratio" and row.estimate]
    shares = {(row.model, row.arm): row.estimate for row in rows if row.measure == "pass@n" and row.estimate}
    size, name = len(study.tasks), make_namer(study)
    if not ratios:
        counts = (
            f"{name(row)} {count_solved(row.estimate)}" for row in rows if row.measure == "pass@n" and row.estimate
        )
        return f"tasks solved of {size}: {', '.join(counts)}"
    best = max(ratios, key=lambda row: row.estimate.value if row.estimate else 0.0)
    assert best.estimate is not None
    own, base = shares[best.model, best.arm], shares[best.model, study.experiment.relative_to]
    times = f"{format_range(best.estimate)} times those of {study.experiment.relative_to} ({count_solved(base)})"
    return f"{name(best)} solves {count_solved(own)} of {size} tasks, {times}"
