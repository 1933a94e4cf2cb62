"""What came of a run? The closing table, the rounds, and one sample with all that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from opsmith.learn.metrics import Score
from opsmith.learn.result import RunResult, TaskResult
from opsmith.report.tables import cost, duration, table
from opsmith.store.queries import Kept, SampleDetail, SampleRow

NOT_A_MODEL = "the embedded model is a program sampler of the target language, not a language model"
NO_MODEL = "the search enumerates programs of the target language; no model is asked"


def not_a_model(name: str) -> str:
    """What must stand beside results that no language model made."""
    return NO_MODEL if "search" in name else NOT_A_MODEL


def closing_table(result: RunResult) -> Table:
    """Group x pass@1, pass@n, with the round of each solution."""
    numbers = ("solved", "pass@1", "pass@n")
    made = table("group", *numbers, "round of each solution (-: unsolved)", right=numbers)
    for group, score in result.groups.items():
        tasks = [task for task in result.per_task.values() if task.group == group]
        made.add_row(group, *_scores(score), "  ".join(map(_solution, tasks)))
    made.add_section()
    made.add_row("all", *_scores(result.overall), _rounds_of(result.per_task.values()))
    return made


def closing_lines(result: RunResult) -> Iterator[str]:
    """Tokens, cost, time and whatever a reader must know to read the table rightly."""
    usage, prompt = result.usage, result.input_tokens
    tokens = f"{usage.input_tokens:,} input + {usage.output_tokens:,} output in {usage.requests:,} requests"
    yield f"run     {result.run}  ({result.end})"
    yield f"model   {result.model}" + ("" if result.is_language_model else f"  ({not_a_model(result.model)})")
    yield f"tokens  {tokens}" + ("" if prompt is None else f"; {prompt:,.0f} input in a first prompt")
    yield f"cost    {cost(usage)}"
    yield f"time    {duration(result.wall_s)}"
    if result.given:
        names = ", ".join(result.given)
        yield f"given   {len(result.given)} tasks were solved before this run and are not counted: {names}"
    copied = [task.task for task in result.per_task.values() if task.contaminated]
    if copied:
        yield f"warning: equal to an example of their own prompt: {', '.join(copied)}"


def rounds_table(result: RunResult) -> Table:
    numbers = ("round", "demonstrations", "attempted", "new", "cumulative")
    made = table(*numbers[:1], "level", *numbers[1:], "newly solved", right=numbers)
    for item in result.rounds:
        counts = (item.demonstrations, item.attempted, len(item.newly_solved), item.cumulative)
        made.add_row(str(item.round), item.level, *map(str, counts), ", ".join(item.newly_solved))
    return made


def solutions_table(kept: Iterable[Kept]) -> Table:
    """The program kept for each task, and the sample to look up with `opsmith show RUN SAMPLE`."""
    made = table("task", "round", "rate", "sample", "program", right=("round", "rate"))
    for item in kept:
        found = item.experience
        where = item.sample[:12] if item.sample else found.origin
        made.add_row(found.task.id, str(found.round), f"{found.success_rate:.3f}", where, found.source.strip())
    return made


def samples_table(samples: Iterable[SampleRow]) -> Table:
    made = table(
        "sample", "round", "temperature", "number", "stage", "outcome", right=("round", "temperature", "number")
    )
    for row in samples:
        seen = (row.stage.name if row.stage else "-", row.outcome.value if row.outcome else "unjudged")
        made.add_row(row.id[:12], str(row.round), f"{row.temperature:g}", str(row.number), *seen)
    return made


def sample_text(detail: SampleDetail) -> Iterator[str]:
    """One sample as text: each request and reply, each candidate with its verdict."""
    row = detail.row
    yield f"sample {row.id}: task {row.task}, round {row.round}, temperature {row.temperature:g}, number {row.number}"
    for call in detail.calls:
        for message in call.messages:
            yield f"--- {call.agent}: {message.role} ---\n{message.content}"
        for text, finish in zip(call.reply.texts, call.reply.finish or ("",) * len(call.reply.texts), strict=False):
            yield f"--- {call.agent}: reply ({finish or 'end not told'}) ---\n{text}"
    for candidate in detail.candidates:
        program = candidate.source if candidate.source is not None else "(no program)"
        yield f"--- candidate of the {candidate.agent} ---\n{program}\n--- verdict ---\n{candidate.verdict.message}"
    for failure in detail.failures:
        yield f"--- left unjudged ---\n{failure}"


def _scores(score: Score) -> tuple[str, str, str]:
    return f"{score.solved}/{score.tasks}", _share(score.pass_at_1), _share(score.pass_at_n)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _solution(task: TaskResult) -> str:
    return f"{task.task}: {'-' if task.round is None else task.round}"


def _rounds_of(tasks: Iterable[TaskResult]) -> str:
    """`round 0: 10, round 1: 5`."""
    counts: dict[int, int] = {}
    for task in tasks:
        if task.round is not None:
            counts[task.round] = counts.get(task.round, 0) + 1
    return ", ".join(f"round {number}: {counts[number]}" for number in sorted(counts))
