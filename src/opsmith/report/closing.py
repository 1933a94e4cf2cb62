"""What came of a run, on a terminal: all of it, or how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console

from opsmith.records import printable
from opsmith.report.optimised import tabulate_steps
from opsmith.report.plans import print_plans
from opsmith.report.record import CODE, COUNT, SHARE, TEXT, DataTable, Said
from opsmith.report.run_tables import list_tables
from opsmith.report.speeds import list_reasons
from opsmith.report.tables import count_noun, format_cost, format_duration, not_a_model, print_fact
from opsmith.report.views import RunView, run_view
from opsmith.results.bests import list_best
from opsmith.results.result import RunResult
from opsmith.store import Store
from opsmith.store.queries import KeptExperience

MORE_TOKENS = "try a larger max_tokens in a settings file"
LESS_OF_IT = "try another temperature or model; more tokens bring more of it"


def print_run(console: Console, store: Store, result: RunResult) -> None:
    """All of a run: its tables, what stands beside them in words, and how it ended."""
    view = run_view(store, result.run)
    tables = list_tables(view)
    if view.rounds:
        console.print(tables["rounds"])
    console.print(tabulate_solutions(list_best(store, view.id)))
    print_plans(console, view.plans)
    console.print(*(tables[name] for name in ("speeds", "models", "tools", "states") if name in tables))
    if view.optimised is not None:
        console.print(tabulate_steps(view.optimised.result.tasks, is_of_run=True))
    for line in _describe_parts(view):
        print_fact(console, line)
    print_closing(console, view, result, is_whole=True)


def _describe_parts(view: RunView) -> Iterator[str]:
    """What stands beside the tables of a run that has speeds, plans, tools or optimisation rounds."""
    if view.speeds:
        yield from list_reasons(view.speeds)
        yield from () if view.optimised is not None else (f"speed   {view.speed_summary}",)
    yield from ([f"plans   {view.plan_summary}"] if view.plans else [])
    yield from (f"tools   {line}" for line in view.tool_lines)
    yield from (f"gain    {line}" for line in (view.optimised.headlines if view.optimised is not None else ()))


def print_closing(console: Console, view: RunView, result: RunResult, is_whole: bool = False) -> None:
    """What was gained and, where the run had tasks to solve, solved; and the lines below it. `is_whole`: all else of
    the run is printed too."""
    if view.optimised is not None:
        console.print(view.optimised.gains)
        if not is_whole:
            print_fact(console, f"gain    {view.optimised.headlines[0]}; every attempt: opsmith show {view.id}")
            kept = {step.row.candidate: step.row.sample for task in view.optimised.result.tasks for step in task.steps}
            for task in (task for task in view.optimised.result.tasks if task.best in kept):
                print_fact(console, f"program  {task.task}: opsmith show {view.id} {kept[task.best][:12]}")
            if view.optimised.result.gain is not None:
                print_fact(console, f"take away: opsmith export {view.id} --library DIR")
    if view.overall.tasks:
        console.print(list_tables(view)["groups"])
    if result.known:
        console.print(list_tables(view)["known"])
    for line in closing_lines(result):
        print_fact(console, line)


def closing_lines(result: RunResult) -> Iterator[str]:
    """Tokens, cost, time and whatever a reader must know to read the table rightly."""
    usage, prompt = result.usage, result.input_tokens
    reasoning = f" ({usage.reasoning_tokens:,} of them reasoning)" if usage.reasoning_tokens else ""
    output = f"{usage.output_tokens:,} output{reasoning}"
    tokens = f"{usage.input_tokens:,} input + {output} in {count_noun(usage.requests, 'request')}"
    name = f"{result.name} = " if result.name else ""
    yield printable(f"run     {name}{result.run}  ({result.end})")
    mark = "" if result.is_language_model else f"  ({not_a_model(result.model)})"
    yield f"model   {printable(result.model)}{mark}"
    yield f"tokens  {tokens}" + ("" if prompt is None else f"; {prompt:,.0f} input in a first prompt")
    yield f"cost    {format_cost(usage)}"
    yield f"time    {format_duration(result.wall_s)}"
    if result.solved_before:
        names = printable(", ".join(result.solved_before))
        yield f"given   {len(result.solved_before)} solved before this run and not counted: {names}"
    if result.known:
        shown = [f"{row.task} ({row.author})" for row in result.known if row.state == "shown"]
        names = printable(", ".join(shown) or "none of them right")
        yield f"known   {count_noun(len(shown), 'program')} given and not counted as the model's: {names}"
    if result.unjudged:
        most = max(result.per_task.values(), key=lambda own: own.unjudged).task
        samples = count_noun(result.unjudged, "sample")
        yield f"unjudged  {samples} without a verdict, counted nowhere; why: opsmith show {result.run} {most}"
    if result.cut_short:
        judged = sum(task.samples for task in result.per_task.values())
        yield f"cut     {result.cut_short:,} of {judged:,} samples ran out of tokens before a program: {MORE_TOKENS}"
    if result.repeated:
        yield f"repeats {count_noun(result.repeated, 'sample')} said the same over and over: {LESS_OF_IT}"
    copied = [task.task for task in result.per_task.values() if task.contaminated]
    if copied:
        yield f"warning: equal to an example of their own prompt: {printable(', '.join(copied))}"


def tabulate_solutions(solutions: Iterable[KeptExperience]) -> DataTable:
    """The program kept for each task, and the sample to look up with `opsmith show RUN SAMPLE`. What was given to the
    run was found in no round."""
    rows = [
        (
            own.task.id,
            *((Said("known"), None) if own.is_known or own.round < 0 else (own.round, own.success_rate)),
            kept.sample[:12] if kept.sample else own.origin,
            own.source.strip(),
        )
        for kept in solutions
        for own in (kept.experience,)
    ]
    columns = {"task": TEXT, "round": COUNT, "rate": SHARE, "sample": TEXT, "program": CODE}
    return DataTable("", columns, rows)
