"""What came of a run. The closing table, the rounds, and one sample with all that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from opsmith.models import Message
from opsmith.records import Task, printable
from opsmith.report.conversations import is_tool_turn, list_calls
from opsmith.report.tables import format_cost, format_duration, make_table
from opsmith.results.metrics import GroupScore
from opsmith.results.result import RunResult, TaskResult
from opsmith.store.queries import Call, KeptExperience, SampleDetail, SampleRow
from opsmith.store.rows import ToolCallEntry
from opsmith.targets.capabilities import explain_message

NOT_A_MODEL = "the embedded model is a program sampler of the target language, not a language model"
NO_MODEL = "the search enumerates programs of the target language; no model is asked"


MORE_TOKENS = "try a larger max_tokens in a settings file"


def not_a_model(name: str) -> str:
    """What must stand beside results that no language model made."""
    return NO_MODEL if "search" in name else NOT_A_MODEL


def closing_table(result: RunResult) -> Table:
    """Group x pass@1, pass@n, with the round of each solution."""
    numbers = ("solved", "pass@1", "pass@n")
    rows = make_table("group", *numbers, "round of each solution (-: unsolved)", right=numbers)
    for group, score in result.groups.items():
        tasks = [task for task in result.per_task.values() if task.group == group]
        rows.add_row(group, *_format_score(score), "  ".join(map(_name_solution, tasks)))
    rows.add_section()
    rows.add_row("all", *_format_score(result.overall), _rounds_of(result.per_task.values()))
    return rows


def closing_lines(result: RunResult) -> Iterator[str]:
    """Tokens, cost, time and whatever a reader must know to read the table rightly."""
    usage, prompt = result.usage, result.input_tokens
    reasoning = f" ({usage.reasoning_tokens:,} of them reasoning)" if usage.reasoning_tokens else ""
    output = f"{usage.output_tokens:,} output{reasoning}"
    tokens = f"{usage.input_tokens:,} input + {output} in {usage.requests:,} requests"
    yield f"run     {printable(result.run)}  ({printable(result.end)})"
    mark = "" if result.is_language_model else f"  ({not_a_model(result.model)})"
    yield f"model   {printable(result.model)}{mark}"
    yield f"tokens  {tokens}" + ("" if prompt is None else f"; {prompt:,.0f} input in a first prompt")
    yield f"cost    {format_cost(usage)}"
    yield f"time    {format_duration(result.wall_s)}"
    if result.solved_before:
        names = printable(", ".join(result.solved_before))
        yield f"given   {len(result.solved_before)} tasks were solved before this run and are not counted: {names}"
    if result.cut_short:
        samples = sum(task.samples for task in result.per_task.values())
        yield f"cut     {result.cut_short:,} of {samples:,} samples ran out of tokens before a program: {MORE_TOKENS}"
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


def samples_table(samples: Iterable[SampleRow]) -> Table:
    rows = make_table(
        "sample", "round", "temperature", "number", "stage", "outcome", right=("round", "temperature", "number")
    )
    for row in samples:
        outcome = (row.stage.name if row.stage else "-", row.outcome.value if row.outcome else "unjudged")
        rows.add_row(row.id[:12], str(row.round), f"{row.temperature:g}", str(row.number), *outcome)
    return rows


def sample_text(detail: SampleDetail, task: Task, used: Sequence[ToolCallEntry] = ()) -> Iterator[str]:
    """One sample of a task as text: each request and reply with the tools that it called, each candidate with its
    verdict. Of a request that goes on after calls only what was not said before."""
    row = detail.row
    place = f"task {row.task}, round {row.round}, temperature {row.temperature:g}, number {row.number}"
    yield printable(f"sample {row.id}: {place}")
    for call in detail.calls:
        for message in _list_news(call):
            yield f"{_write_heading(call.agent, message.role)}\n{message.content}"
        for text, finish in zip(call.reply.texts, call.reply.finish or ("",) * len(call.reply.texts), strict=False):
            head = _write_heading(call.agent, f"reply ({finish or 'end not told'})")
            yield f"{head}\n{text}"
        yield from list_calls(call.agent, used)
    for candidate in detail.candidates:
        program = candidate.source if candidate.source is not None else "(no program)"
        yield f"--- candidate of the {candidate.agent} ---\n{program}"
        yield f"--- verdict ---\n{explain_message(task, candidate.verdict.message)}"
        yield from (f"warning: {warning}" for warning in candidate.verdict.warnings)
    for failure in detail.failures:
        yield f"--- left unjudged ---\n{failure}"


def _list_news(call: Call) -> list[Message]:
    """The messages of a request that no reply and no result before it says."""
    if not is_tool_turn(call.agent):
        return list(call.messages)
    said = max(
        (place for place, message in enumerate(call.messages) if message.role in {"assistant", "tool"}), default=0
    )
    return [message for message in call.messages[said + 1 :] if message.role == "user"]


def _write_heading(agent: str, what: str) -> str:
    return printable(f"--- {agent}: {what} ---")


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
