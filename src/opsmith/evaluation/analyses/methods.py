"""How good is each arm as a whole, and how much better than one of them? (Figure 2; the controls.)"""

from __future__ import annotations

from opsmith.evaluation import measure
from opsmith.evaluation.bars import bars
from opsmith.evaluation.found import Analysis, Grid, Row, measured, number, short, stated
from opsmith.evaluation.study import ALL, Study
from opsmith.report.figures import Spec


def methods(study: Study) -> Analysis:
    """pass@1 and pass@n of every arm and model, their cost, and the ratio of pass@n to that of `relative_to`."""
    rows = [row for series in study.series for arm in study.arms for row in _rows(study, series, arm)]
    base = study.experiment.relative_to
    notes = (
        [f"ratio: mean pass@n of the arm over that of {base}, samples of both redrawn independently"] if base else []
    )
    return Analysis(
        _headline(study, rows), tuple(rows), (_grid(study, rows),), {"": _figure(study, rows)}, tuple(notes)
    )


def _rows(study: Study, series: str, arm: str) -> list[Row]:
    tasks = study.groups[ALL]
    rows = [
        Row(series, arm, "pass@1", ALL, study.pass_at_1(series, arm, tasks), study.paper("pass@1", arm, series)),
        Row(series, arm, "pass@n", ALL, study.pass_at_n(series, arm, tasks), study.paper("pass@n", arm, series)),
    ]
    base = study.experiment.relative_to
    if base and arm != base:
        parts = [study.drawn(series, name, tasks, measure.solved) for name in (arm, base)]
        found = measure.ratio(*parts) if study.cell(series, arm) else None
        rows.append(Row(series, arm, "ratio", ALL, found, study.paper("ratio", arm, series)))
    return [row for row in rows if study.cell(series, arm)]


def _grid(study: Study, rows: list[Row]) -> Grid:
    base = study.experiment.relative_to
    columns = ("model", "arm", "pass@1", "pass@n", *([f"ratio to {base}"] if base else []), "paper")
    made = [_line(study, rows, series, arm) for series in study.series for arm in study.arms if study.cell(series, arm)]
    return Grid("By arm", (*columns, "judged samples", "input tokens", "output tokens", "USD"), tuple(made))


def _line(study: Study, rows: list[Row], series: str, arm: str) -> tuple[str, ...]:
    own = {row.measure: row for row in rows if (row.model, row.arm) == (series, arm)}
    names = ["pass@1", "pass@n", *(["ratio"] if study.experiment.relative_to else [])]
    found = [measured(own[name].found) if name in own else "1" for name in names]
    paper = "; ".join(f"{name} {stated(row.paper)}" for name, row in own.items() if row.paper)
    spent = [study.mean(series, arm, lambda o: float(sum(tally.judged for tally in o.tallies)))]
    spent += [study.mean(series, arm, lambda o: float(o.usage.input_tokens))]
    spent += [study.mean(series, arm, lambda o: float(o.usage.output_tokens))]
    dollars = study.mean(series, arm, lambda o: o.usage.cost_usd)
    cost = "unknown" if dollars is None else number(dollars, ",.2f")
    return (short(series), arm, *found, paper, *(number(value) for value in spent), cost)


def _figure(study: Study, rows: list[Row]) -> Spec:
    shown = (row for row in rows if row.measure == "pass@n")
    if len(study.series) == 1:
        return bars(study, shown, x=lambda row: row.arm, series=None, x_title="arm")
    return bars(study, shown, x=lambda row: short(row.model), series=lambda row: row.arm, x_title="model")


def _headline(study: Study, rows: list[Row]) -> str:
    ratios = [row for row in rows if row.measure == "ratio" and row.found]
    shares = {(row.model, row.arm): row.found for row in rows if row.measure == "pass@n" and row.found}
    if not ratios:
        return "pass@n: " + "; ".join(f"{short(model)}, {arm}: {found}" for (model, arm), found in shares.items())
    best = max(ratios, key=lambda row: row.found.value if row.found else 0.0)
    base = study.experiment.relative_to
    text = f"up to {best.found.value:.2f} times pass@n of {base}" if best.found else ""
    pair = f"{short(best.model)}: {best.arm} {shares[best.model, best.arm]} against {shares[best.model, base]}"
    paper = stated([item for row in ratios for item in row.paper][:1])
    return f"{text} ({pair})" + (f"; paper: {paper}" if paper else "")
