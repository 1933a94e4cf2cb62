"""Shares of right samples and of tasks solved: by arm, group of tasks, class of tasks, granularity, number of samples.

A task's class is what its author's own program needs: the target reads it off (`Classified`). Tasks without a program
of their own, and of targets that cannot tell, are in no class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opsmith.models.roles import shorten_model
from opsmith.records import Task
from opsmith.report.record import COUNT, TEXT, DataTable, Value
from opsmith.report.rendering import COLUMNS
from opsmith.targets import get_target
from opsmith.targets.protocols import Classified
from opsmith_lab.evaluation.analysis import (
    Analysis,
    Chart,
    Row,
    count_solved,
    say_arms,
    say_solved,
    select_estimates,
    tabulate_arms,
    tabulate_rows,
)
from opsmith_lab.evaluation.charts import OVER, OVER_SAMPLES, chart_bars
from opsmith_lab.evaluation.study import ALL, ObservedRun, Study

CLASSES = ("Arith-Once", "Arith-Reuse", "Shape-Once", "Shape-Reuse")
SUMS = ("Arith", "Shape", "Once", "Reuse")
MEASURES = {"pass@n": "share of tasks solved", "pass@1": "share of right samples"}


def make_share_row(
    study: Study, name: str, series: str, arm: str, of: str = ALL, tasks: Sequence[str] | None = None
) -> Row:
    """pass@1 or pass@n of an arm beside the paper's; `tasks`: those of the group `of`, unless given."""
    tasks = study.tasks_by_group[of] if tasks is None else tasks
    value = (
        study.estimate_pass_at(1, series, arm, tasks) if name == "pass@1" else study.share_solved(series, arm, tasks)
    )
    return Row(series, arm, name, of, value, study.find_paper(name, arm, series, of))


def _list_ratios(study: Study, name: str, series: str, arm: str, over: str, under: str) -> Iterable[Row]:
    """pass@n of one arm by another's, over tasks and seeds; and over samples, but for an arm by itself."""
    ratio, over_samples = study.divide_solved(series, over, under)
    yield Row(series, arm, name, ALL, ratio, study.find_paper(name, arm, series))
    if over != under:
        yield Row(series, arm, f"{name}, {OVER_SAMPLES}", ALL, over_samples)


def analyse_methods(study: Study) -> Analysis:
    """How good each arm is as a whole, and how much better than one of them (figure 2; the controls)."""
    base, rows = study.experiment.relative_to, list[Row]()
    for series, arm in study.cells:
        rows += (make_share_row(study, name, series, arm) for name in ("pass@1", "pass@n"))
        rows += _list_ratios(study, "ratio", series, arm, arm, base) if base and arm != base else ()
    times = say_arms(study, rows, "ratio", "{:.2f}".format)
    finding = say_solved(study, rows) + (f"; as multiples of {base}, paired: {times}" if times else "")
    papers = [f"; paper: {row.arm} {row.said_paper}" for row in rows if row.measure == "ratio" and row.paper]
    measures = {name: name for name in ("pass@1", "pass@n")}
    measures |= {f"ratio to {base}": "ratio", OVER_SAMPLES: f"ratio, {OVER_SAMPLES}"}
    numbers = {"judged samples": lambda run: sum(tally.judged for tally in run.tallies), **TOKENS}
    note = f"ratio: mean pass@n of the arm over that of {base}; {OVER_SAMPLES}: its interval if tasks and seeds were"
    charted_rows, is_single = [row for row in rows if row.measure == "pass@n"], len(study.series_names) == 1
    names = [lambda row: row.arm, lambda row: shorten_model(row.model)]
    across, beside = names if is_single else reversed(names)
    x_title = "arm" if is_single else "model"
    chart = chart_bars(study, charted_rows, x=across, series=beside, title=finding, x_title=x_title, in_tasks=True)
    notes = (f"{note} fixed",) if base else ()
    tables = (tabulate_arms(study, rows, measures, numbers),)
    return Analysis(finding + "".join(papers[:1]), rows, tables, {"": chart}, notes)


def _read_input(run: ObservedRun) -> float:
    return run.usage.input_tokens


TOKENS = {"input tokens": _read_input, "output tokens": lambda run: run.usage.output_tokens}


def analyse_groups(study: Study) -> Analysis:
    """How good each arm or model is in each group of tasks (table 4, figures 12 and 13)."""
    rows = [
        make_share_row(study, name, series, arm, group)
        for name in MEASURES
        for series, arm in study.cells
        for group in study.tasks_by_group
    ]
    solved = {
        row.of for group in study.tasks_by_group for row, own in select_estimates(rows, "pass@n", group) if own.value
    }
    unsolved = ", ".join(group for group in study.tasks_by_group if group not in solved and group != ALL)
    none_of = f"; none of {unsolved}" if unsolved else ""
    figures = {
        "" if name == "pass@n" else "-pass1": chart_bars(
            study,
            [row for row in rows if row.measure == name],
            x=lambda row: row.of,
            series=lambda row: study.name_cell(row.model, row.arm),
            title=f"{name} over all tasks: {say_arms(study, rows, name, str)}" + none_of * (name == "pass@n"),
            x_title="group of tasks",
            y_title=f"{name}: {words}",
        )
        for name, words in MEASURES.items()
    }
    sizes = {group: len(tasks) for group, tasks in study.tasks_by_group.items()}
    table = tabulate_rows("By group", rows, "group", sizes)
    return Analysis(say_solved(study, rows) + none_of, rows, (table,), figures)


def analyse_classes(study: Study) -> Analysis:
    """The kinds of tasks that the guardian helps with, and those that it harms (table 2)."""
    members = classify_tasks(study.tasks)
    rows = [
        make_share_row(study, name, series, arm, kind, ids)
        for series, arm in study.cells
        for name in ("pass@1", "pass@n")
        for kind, ids in members.items()
        if ids
    ]
    solved = {half: say_arms(study, rows, "pass@n", count_solved, half) for half in ("Once", "Reuse")}
    shares = {half: say_arms(study, rows, "pass@n", lambda own: f"{own.value:.3f}", half) for half in solved}
    words = "; ".join(f"{half} {counts} of {len(members[half])}" for half, counts in solved.items() if counts)
    title = "; ".join(f"{half} {own}" for half, own in shares.items() if own)
    chart = chart_bars(
        study,
        [row for row in rows if row.measure == "pass@n" and row.of in CLASSES],
        x=lambda row: row.of,
        series=lambda row: study.name_cell(row.model, row.arm),
        title=f"pass@n: {title}" if title else "no task is in a class",
        x_title="class of the task",
    )
    by_class = tabulate_rows("By class", rows, "class", {kind: len(ids) for kind, ids in members.items()})
    tables = (_tabulate_sizes(study, members), by_class, _tabulate_effects(study))
    unclassified = ", ".join(task.id for task in study.tasks if task.id not in members[ALL])
    note = f"in no class (no program of their own, or the target cannot tell): {unclassified}"
    headline = f"tasks solved: {words}" if words else "no task is in a class"
    return Analysis(headline, rows, tables, {"": chart}, (note,) if unclassified else ())


def classify_tasks(tasks: Iterable[Task]) -> Mapping[str, tuple[str, ...]]:
    """Task ids by class, by half of its name, and all that have one."""
    kinds: dict[str, str] = {}
    for task in tasks:
        target = get_target(task.target)
        traits = target.find_traits(task, task.impl) if task.impl and isinstance(target, Classified) else None
        kinds |= {task.id: traits.name} if traits else {}
    members = {name: tuple(task for task, kind in kinds.items() if kind == name) for name in CLASSES}
    members |= {half: tuple(task for task, kind in kinds.items() if half in kind.split("-")) for half in SUMS}
    return {**members, ALL: tuple(kinds)}


def _tabulate_sizes(study: Study, members: Mapping[str, tuple[str, ...]]) -> DataTable:
    lines: list[Sequence[Value]] = []
    for kind in CLASSES:
        paper = next((p for p in study.experiment.paper if p.measure == "tasks" and kind in p.values), None)
        stated_size = f"{paper.values[kind]:.0f} ({paper.place})" if paper else None
        lines.append((kind, len(members[kind]), stated_size, ", ".join(members[kind])))
    columns = {"class": TEXT, "tasks": COUNT, "paper, of its 26": TEXT, "which": TEXT}
    return DataTable("The classes of these tasks", columns, lines)


def _tabulate_effects(study: Study) -> DataTable:
    """Candidates by what the guardian did; mean over seeds."""
    lines: list[Sequence[Value]] = []
    for series, arm in study.cells:
        effects = [run.result.guardian for run in study.select_runs(series, arm)]
        for effect in effects[0] if any(sum(own.values()) for own in effects) else ():
            lines.append((shorten_model(series), arm, effect, sum(own[effect] for own in effects) / len(effects)))
    columns = {"model": TEXT, "arm": TEXT, "effect": TEXT, "candidates (mean over seeds)": COUNT}
    return DataTable("What the guardian did", columns, lines)


def analyse_levels(study: Study) -> Analysis:
    """What the adaptive granularity m costs and brings: tokens and performance as ratios (figure 8)."""
    base, rows, size = study.experiment.relative_to, list[Row](), len(study.tasks)
    for series, arm in study.cells:
        rows.append(make_share_row(study, "pass@n", series, arm))
        rows += _list_ratios(study, "performance ratio", series, arm, base, arm)
    notes = [
        f"performance: pass@n of {base} over that of the arm; tokens: those of the arm over those of {base}, so "
        f"that above 1 speaks for {base} in both",
        "the paper does not say which tokens its ratio counts; both ways of counting stand in the table",
    ]
    stated = [
        Row(*cell, "token ratio", ALL, None, study.find_paper("token ratio", cell[1], cell[0])) for cell in study.cells
    ]
    measures = {"pass@n": "pass@n", f"pass@n of {base} / arm": "performance ratio"}
    measures |= {OVER_SAMPLES: f"performance ratio, {OVER_SAMPLES}"}
    numbers = {"input tokens, mean over tasks": _count_necessary, "billed input tokens": _read_input}
    table = tabulate_arms(study, [*rows, *stated], measures, numbers, is_relative=True)
    own = [row for row, _ in select_estimates(rows, "pass@n")]
    tokens = [study.average_number(row.model, row.arm, _count_necessary) for row in own]
    points = [
        {"x": count, **row.scale_ends(size), "label": row.arm, "series": shorten_model(row.model)}
        for row, count in zip(own, tokens, strict=True)
    ]
    counts = ", ".join("–" if count is None else f"{count:,.0f}" for count in tokens)
    finding = f"{say_solved(study, rows)}; input tokens of one prompt: {counts}"
    axes = {"x_title": "input tokens of one prompt, mean over tasks", "y_title": f"tasks solved of {size}"}
    chart = Chart("lines", points, {"title": finding, **axes, "is_joined": False}, (OVER["pass@n"],))
    return Analysis(finding, rows, (table,), {"": chart}, notes)


def _count_necessary(run: ObservedRun) -> float | None:
    """Tokens as the paper's learning curves count them: see `curves`; at the end of the run."""
    return run.result.input_tokens


def analyse_samples(study: Study) -> Analysis:
    """How pass@k grows with the number of samples, 1, 2, 4 ... and that of the task with the fewest (figure 9)."""
    tasks = study.tasks_by_group[ALL]
    fewest = min((n for run in study.observed for n, _ in run.count_samples(tasks, best=True)), default=0)
    ks = sorted({*(2**i for i in range(fewest.bit_length())), *([fewest] if fewest else [])})
    papers = {ks[-1]: "pass@n", 1: "pass@1"} if ks else {}  # the paper's values beside the last k, and the first
    rows = [
        Row(
            series, arm, "pass@k", str(k), study.estimate_pass_at(k, series, arm, tasks),
            study.find_paper(papers[k], arm, series) if k in papers else (),
        )
        for series, arm in study.cells
        for k in ks
    ]  # fmt: skip
    drawn = [(row, row.estimate, study.name_cell(row.model, row.arm)) for row in rows if row.estimate]
    points = [{"x": int(row.of), **row.scale_ends(), "series": name} for row, _, name in drawn]
    marks = [
        {"x": int(row.of), "y": value, "like": name, "series": f"paper: {name}, {shorten_model(paper.model)}"}
        for row, _, name in drawn
        for value, paper in row.paper
    ]
    spans: dict[str, list[float]] = {}
    for _, estimate, name in drawn:
        spans.setdefault(name, []).append(estimate.value)
    words = ", ".join(f"{name} {own[0]:.3f} to {own[-1]:.3f}" for name, own in spans.items())
    finding = f"pass@1 to pass@{ks[-1]}: {words}" if words else "no task has a sample yet"
    axes = {"x_title": "k, samples of each task", "y_title": "pass@k", "log_x": True, "y_domain": [0.0, 1.0]}
    options = {"title": finding, **axes, "width": COLUMNS, "empty": "no task has a sample yet", "paper": marks}
    notes = ("pass@k is the unbiased estimate of the paper's equation (1) at each task's best temperature",)
    table = tabulate_rows("pass@k", rows, "k")
    return Analysis(finding, rows, (table,), {"": Chart("lines", points, options, (OVER_SAMPLES,))}, notes)
