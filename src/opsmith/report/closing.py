"""What came of a run: the closing table, the rounds and the solutions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table

from opsmith.records import printable
from opsmith.report.record import COUNT, TEXT, DataTable
from opsmith.report.tables import count_noun, format_cost, format_duration, make_table, print_fact
from opsmith.results.metrics import GroupScore
from opsmith.results.result import KnownResult, RunResult, TaskResult
from opsmith.store.queries import KeptExperience

NOT_A_MODEL = "the embedded model is a program sampler of the target language, not a language model"
NO_MODEL = "the search enumerates programs of the target language; no model is asked"


MORE_TOKENS = "try a larger max_tokens in a settings file"
LESS_OF_IT = "try another temperature or model; more tokens bring more of it"


def not_a_model(name: str) -> str:
    """What must stand beside results that no language model made.

    >>> not_a_model("tuner")
    'tuner is not a language model'
    """
    if "search" in name:
        return NO_MODEL
    return NOT_A_MODEL if "embedded" in name else f"{name} is not a language model"


def closing_table(result: RunResult) -> Table:
    """Group x pass@1, pass@n, with the samples that nobody could judge where there are any, and the round of each
    solution."""
    numbers = ("solved", "pass@1", "pass@n", *(["unjudged"] if result.unjudged else []))
    rows = make_table("group", *numbers, "round of each solution (-: unsolved)", right=numbers)
    for group, score in result.groups.items():
        tasks = [task for task in result.per_task.values() if task.group == group]
        unjudged = [f"{sum(task.unjudged for task in tasks):,}"] if result.unjudged else []
        rows.add_row(group, *_format_score(score), *unjudged, "  ".join(map(_name_solution, tasks)))
    rows.add_section()
    unjudged = [f"{result.unjudged:,}"] if result.unjudged else []
    rows.add_row("all", *_format_score(result.overall), *unjudged, _rounds_of(result.per_task.values()))
    return rows


def tabulate_known(known: Iterable[KnownResult]) -> DataTable:
    """What the run was given: a row for each program, which counts as nobody's solution."""
    rows = [(row.task, row.author, row.place, row.state, row.round) for row in known]
    columns = {"task": TEXT, "written by": TEXT, "from": TEXT, "state": TEXT, "shown from round": COUNT}
    return DataTable("known programs", columns, rows, ("from",))


def print_closing(console: Console, result: RunResult) -> None:
    """The tables, where the run had tasks to solve or was given programs, and the lines below them."""
    if result.known:
        console.print(tabulate_known(result.known))
    if result.overall.tasks:
        console.print(closing_table(result))
    for line in closing_lines(result):
        print_fact(console, line)


def closing_lines(result: RunResult) -> Iterator[str]:
    """Tokens, cost, time and whatever a reader must know to read the table rightly."""
    usage, prompt = result.usage, result.input_tokens
    reasoning = f" ({usage.reasoning_tokens:,} of them reasoning)" if usage.reasoning_tokens else ""
    output = f"{usage.output_tokens:,} output{reasoning}"
    tokens = f"{usage.input_tokens:,} input + {output} in {usage.requests:,} requests"
    name = f"{result.name} = " if result.name else ""
    yield printable(f"run     {name}{result.run}  ({result.end})")
    mark = "" if result.is_language_model else f"  ({not_a_model(result.model)})"
    yield f"model   {printable(result.model)}{mark}"
    yield f"tokens  {tokens}" + ("" if prompt is None else f"; {prompt:,.0f} input in a first prompt")
    yield f"cost    {format_cost(usage)}"
    yield f"time    {format_duration(result.wall_s)}"
    if result.solved_before and result.overall.tasks:
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


def rounds_table(result: RunResult) -> Table:
    numbers = ("round", "demonstrations", "attempted", "new", "cumulative")
    rows = make_table(*numbers[:1], "level", *numbers[1:], "newly solved", right=numbers)
    for ended in result.rounds:
        counts = (ended.demonstrations, ended.attempted, len(ended.newly_solved), ended.cumulative)
        rows.add_row(str(ended.round), ended.level, *map(str, counts), ", ".join(ended.newly_solved))
    return rows


def solutions_table(solutions: Iterable[KeptExperience]) -> Table:
    """The program kept for each task, and the sample to look up with `opsmith show RUN SAMPLE`."""
    rows = make_table("task", "round", "rate", "sample", "program", right=("round", "rate"), code=("program",))
    for solution in solutions:
        experience = solution.experience
        where = solution.sample[:12] if solution.sample else experience.origin
        rows.add_row(
            experience.task.id,
            str(experience.round),
            f"{experience.success_rate:.3f}",
            where,
            experience.source.strip(),
        )
    return rows


def _format_score(score: GroupScore) -> tuple[str, str, str]:
    return f"{score.solved}/{score.tasks}", _format_share(score.pass_at_1), _format_share(score.pass_at_n)


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _name_solution(task: TaskResult) -> str:
    return f"{task.task}: {'-' if task.round is None else task.round}"


def _rounds_of(tasks: Iterable[TaskResult]) -> str:
    """`round 0: 10, round 1: 5`."""
    counts: dict[int, int] = {}
    for task in tasks:
        if task.round is not None:
            counts[task.round] = counts.get(task.round, 0) + 1
    return ", ".join(f"round {number}: {counts[number]}" for number in sorted(counts))
