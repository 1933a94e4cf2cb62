"""The tables of a whole run, from its view: what Markdown, pages and `--format json` show of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from opsmith.report.conversations import tabulate_tools
from opsmith.report.record import COUNT, SHARE, TEXT, USD, DataTable, Said, Value, say_value, write_tables
from opsmith.report.speeds import tabulate_speeds
from opsmith.report.tables import NOTHING, list_names
from opsmith.report.views import Cell, GroupRow, RunView, run_view
from opsmith.results.by_model import ModelFigures
from opsmith.results.result import KnownResult
from opsmith.store import Store

_TOKENS = ("input", "cached", "output")
_SHADES = (0.05, 0.2, 0.5)  # shares of right samples from which a cell is darker
_MOODS = {"solved": "good", "unsolved": "bad"}
_MODELS = (
    "Samples: those of rounds that solve tasks; tokens and cost: of all that was asked. rate: pass@1 over the tasks "
    "that a model was tried at, at the best temperature. first: tasks of the run that it solved before any other did."
)
_JOIN = " join is no model: these programs were joined from those of a split task's nodes."


def write_json(store: Store, runs: Sequence[str]) -> str:
    """The tables of these runs (whole ids) for machines: the unit of each column, values with low, high and n."""
    views = [run_view(store, run) for run in runs]
    records = [
        {"run": view.id, "model": view.model, "is_language_model": view.is_language_model, "target": view.target}
        | {"seed": view.seed, "finished": view.finished, "tables": write_tables(list_tables(view))}
        for view in views
    ]
    return json.dumps({"runs": records}, indent=1, ensure_ascii=False) + "\n"


def list_tables(run: RunView) -> dict[str, DataTable]:
    """All that the run has, by name."""
    return dict(_list_tables(run))


def _list_tables(run: RunView) -> Iterator[tuple[str, DataTable]]:
    yield "groups", tabulate_groups(run)
    yield "rounds", tabulate_rounds(run)
    yield "pass@k", tabulate_curve(run)
    yield "tasks", tabulate_tasks(run)
    if run.known:
        yield "known", tabulate_known(run.known)
    yield "grid", tabulate_grid(run)
    if run.speeds:
        yield "speeds", tabulate_speeds(run.speeds, is_of_run=True)
    if run.models:
        yield "models", tabulate_models(run.models)
    if run.plans:
        yield "nodes", tabulate_nodes(run)
    if run.tool_use is not None:
        yield "tools", tabulate_tools(run.tool_use)
    if run.optimised is not None:
        yield from (("gains", run.optimised.gains), ("states", run.optimised.states))
    if run.fronts is not None:
        yield "fronts", run.fronts.table


def tabulate_groups(run: RunView) -> DataTable:
    """A row for each group of tasks, then all."""
    rounds = Counter(task.round for task in run.tasks if task.round is not None)
    words = [
        "  ".join(
            f"{own.id}: {NOTHING if own.round is None else own.round}" for own in run.tasks if own.group == row.group
        )
        for row in run.groups
    ]
    words.append(", ".join(f"round {number}: {count}" for number, count in sorted(rounds.items())))
    rows = [
        (
            row.group,
            Said(f"{row.solved}/{row.tasks}", row.solved),
            say_pass_at_1(row),
            row.pass_at_n,
            row.n or None,
            own,
        )
        for row, own in zip((*run.groups, run.overall), words, strict=True)
    ]
    columns = {"group": TEXT, "solved": COUNT, "pass@1": SHARE, "pass@n": SHARE, "n": COUNT}
    note = f"pass@1, pass@n: {describe_sampling([run])}; 0 where it is unsolved. Brackets: 95 %, over those samples."
    return DataTable("", {**columns, "round of each solution": TEXT}, rows, ("n",), has_total=True, note=note)


def describe_sampling(runs: Sequence[RunView]) -> str:
    """Which samples of a task pass@k counts."""
    temperatures = {run.told.get("temperatures", "").replace(" ", ", ") for run in runs} - {""}
    asked = f" (of {temperatures.pop()})" if len(temperatures) == 1 else ""
    counts = list(dict.fromkeys(str(run.overall.n) for run in runs if run.overall.n))
    size = f"n = {' or '.join(counts)}" if counts else "n"
    return f"of {size} samples of a task at its best temperature{asked}, in the round that solved it"


def say_pass_at_1(row: GroupRow) -> Said:
    """With its interval where there is one, and with the samples that nobody could judge."""
    value = row.value_at_1 if row.pass_at_1 is None else row.pass_at_1
    return Said(f"{say_value(value, SHARE).text}{row.unjudged_note}", value)


def tabulate_rounds(run: RunView) -> DataTable:
    """What each round set out to do, brought and cost."""
    rows = [
        (
            row.number,
            Said(f"{len(row.demonstrations)} ({row.level})", note=list_names(row.demonstrations))
            if row.demonstrations
            else "none",
            Said(f"{row.attempted}" + (f" + {row.nodes} nodes" if row.nodes else ""), row.attempted),
            Said(
                f"{row.spent.judged:,}" + (f" of {row.planned:,}" if row.spent.judged < row.planned else ""),
                row.spent.judged,
            ),
            row.spent.right,
            len(row.solved) if row.ended else Said("…"),
            row.cumulative,
            *(getattr(row.spent.usage, f"{name}_tokens") for name in _TOKENS),
            row.spent.usage,
            list_names(row.solved),
        )
        for row in run.rounds
    ]
    tokens = (getattr(run.usage, f"{name}_tokens") for name in _TOKENS)
    right = sum(row.spent.right for row in run.rounds)
    blank = Said("")
    rows.append(("all", "", blank, run.judged, right, blank, run.overall.solved, *tokens, run.usage, ""))
    counts = ("tasks tried", "samples", "right", "new", "solved so far")
    columns = {"round": COUNT, "demonstrations": TEXT, **dict.fromkeys(counts, COUNT)}
    columns |= {f"{name} tokens": "tokens" for name in _TOKENS}
    least = ("reasoning tokens", "samples", "input tokens", "output tokens", "tasks tried", "right")
    return DataTable("rounds", {**columns, "cost": USD, "newly solved": TEXT}, rows, least, has_total=True)


def tabulate_curve(run: RunView) -> DataTable:
    """pass@k of each series of samples."""
    rows = [(point.series, point.k, point.estimate) for point in run.pass_at_k]
    note = "Of k samples of a task at its best temperature. Brackets: 95 %, over its samples there."
    return DataTable("pass@k", {"series": TEXT, "k": COUNT, "pass@k": SHARE}, rows, note=note)


def tabulate_tasks(run: RunView) -> DataTable:
    """What came of each task."""
    rows = [
        (
            Said(row.id, link=("task", row.id)),
            row.state,
            row.round,
            None if row.round is None else row.rate,
            row.right,
            row.judged,
        )
        for row in run.tasks
    ]
    columns = {"task": TEXT, "state": TEXT, "round": COUNT, "rate": SHARE, "right": COUNT, "judged": COUNT}
    note = "rate: as pass@1 counts it, at the best temperature; right and judged: over all rounds and temperatures."
    return DataTable("tasks", columns, rows, note=note)


def tabulate_known(known: Iterable[KnownResult]) -> DataTable:
    """What the run was given: a row for each program, which counts as nobody's solution."""
    rows = [(row.task, row.author, row.place, row.state, row.round) for row in known]
    columns = {"task": TEXT, "written by": TEXT, "from": TEXT, "state": TEXT, "shown from round": COUNT}
    return DataTable("known programs", columns, rows, ("from",))


def tabulate_grid(run: RunView) -> DataTable:
    """Task by round: right samples of those judged in it, and how the task stands."""
    rows: list[Sequence[Value]] = [
        (
            Said(row.id, link=("task", row.id)),
            *(None if own is None else _say_cell(own) for own in row.cells),
            Said(
                f"round {row.round}" if row.round is not None else row.state, row.round, mood=_MOODS.get(row.state, "")
            ),
        )
        for row in run.tasks
    ]
    rounds = (f"{row.number} {row.level}" if row.demonstrations else str(row.number) for row in run.rounds)
    return DataTable("tasks by rounds", {"task": TEXT, **dict.fromkeys(rounds, COUNT), "solved": TEXT}, rows)


def _say_cell(cell: Cell) -> Said:
    """In a colour that says the share of right samples, and whether this round solved the task."""
    shade = f"s{1 + sum(cell.rate > step for step in _SHADES)}" if cell.right else ""
    return Said(f"{cell.right}/{cell.judged}", cell.rate, shade=shade + " here" * cell.solved)


def tabulate_nodes(run: RunView) -> DataTable:
    """The tasks that were split, and their nodes."""
    nodes = [node for tree in run.plans for node in tree.list_all()]
    rows = [(node.task, node.state, node.right, node.verdicts, len(node.plans)) for node in nodes]
    columns = {"task or node": TEXT, "state": TEXT, "right": COUNT, "judged": COUNT, "splits": COUNT}
    return DataTable("plans", columns, rows)


_TOKENS = ("input", "output", "reasoning")


def tabulate_models(models: Iterable[ModelFigures]) -> DataTable:
    """A row for each model. Tokens are of all that was asked of it."""
    rows = [
        (
            row.model,
            ", ".join(row.roles) or NOTHING,
            row.usage.requests,
            *(getattr(row.usage, f"{name}_tokens") for name in _TOKENS),
            row.usage,
            Said(f"{row.verdicts:,}" + (f" of {row.samples:,}" if row.verdicts < row.samples else ""), row.verdicts),
            row.right,
            row.rate,
            row.solved,
            row.first,
        )
        for row in models
    ]
    columns = {"model": TEXT, "roles": TEXT, "requests": COUNT, **dict.fromkeys(_TOKENS, "tokens"), "cost": USD}
    columns |= {"samples": COUNT, "right": COUNT, "rate": SHARE, "solved": COUNT, "first": COUNT}
    least = ("reasoning", "first", "input", "roles", "output", "requests")
    return DataTable("models", columns, rows, least, note=_MODELS + _JOIN * any(row[0] == "join" for row in rows))
