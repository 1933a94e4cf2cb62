"""A sample's conversation in words: what each turn said, which tools it called, and what they answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from opsmith.records import printable
from opsmith.report.record import COUNT, SECONDS, TEXT, DataTable, Said
from opsmith.report.tables import count_noun, explain_level
from opsmith.results.tool_use import CallingSamples, ToolUse
from opsmith.store import Store
from opsmith.store.queries import SampleDetail
from opsmith.store.rows import PROPOSER, TOOLS, RoundInfo, ToolCallEntry

LONGEST = 20_000  # characters of a text that a page shows; the store has all of it
OK = "ok"  # the outcome of a call that did what it was asked
_MOODS = {OK: "good"}


@dataclass(frozen=True)
class ToolLine:
    """A call in words."""

    number: int  # within the sample, from 1
    name: str
    arguments: tuple[tuple[str, str], ...]  # (name, value); ("", text) where they are no mapping
    result: str
    outcome: str
    is_ok: bool
    seconds: str


@dataclass(frozen=True)
class TurnView:
    """One reply of a conversation with tools, and what it called."""

    agent: str
    text: str
    finish: str
    calls: tuple[ToolLine, ...]


def view_turns(detail: SampleDetail, used: Sequence[ToolCallEntry]) -> tuple[TurnView, ...]:
    """The turns of the proposer's conversation, in their order; () for a sample that called no tool."""
    if not used:
        return ()
    spoken = [call for call in detail.calls if call.agent == PROPOSER or is_tool_turn(call.agent)]
    return tuple(
        TurnView(
            agent=call.agent,
            text=shorten_text(call.reply.texts[0] if call.reply.texts else ""),
            finish=call.reply.finish[0] if call.reply.finish else "",
            calls=tuple(_word_call(tool) for tool in used if tool.turn == call.agent),
        )
        for call in spoken
    )


def list_calls(agent: str, used: Sequence[ToolCallEntry]) -> Iterator[str]:
    """The calls of one turn as `opsmith show` prints them, each with its result."""
    for call in (_word_call(tool) for tool in used if tool.turn == agent):
        facts = ", ".join(filter(None, (call.outcome, call.seconds)))
        yield printable(f"--- {agent}: call {call.number}, {call.name} ({facts}) ---")
        for name, value in call.arguments:
            yield f"{name}:\n{value}" if "\n" in value else f"{name}: {value}".removeprefix(": ")
        yield f"--- result of call {call.number} ---\n{call.result}"


def is_tool_turn(agent: str) -> bool:
    """Whether an agent's request goes on after tools were called."""
    return agent.startswith(f"{TOOLS}-")


def describe_tool_use(use: ToolUse) -> Iterator[str]:
    """What a run's models called, and how samples ended that did and did not."""
    yield f"{count_noun(use.calls, 'call')}, {use.seconds:.1f} s of tools at work"
    yield f"samples that called tools: {_describe_samples(use.callers)}"
    yield f"samples that called none: {_describe_samples(use.silent)}"


def tabulate_tools(use: ToolUse) -> DataTable:
    """A row for each tool and outcome."""
    rows = [
        (
            count.name,
            Said(count.outcome, mood=_MOODS.get(count.outcome, "bad")),
            count.calls,
            count.samples,
            count.seconds,
        )
        for count in use.tools
    ]
    columns = {"tool": TEXT, "outcome": TEXT, "calls": COUNT, "samples": COUNT, "seconds": SECONDS}
    return DataTable("tools", columns, rows)


def shorten_text(text: str, limit: int = LONGEST) -> str:
    """
    >>> shorten_text("abcdef", 4)
    'abcd\\n... 2 more characters, which the store has'
    """
    hidden = len(text) - limit
    return text if hidden <= 0 else f"{text[:limit]}\n... {hidden:,} more characters, which the store has"


def _word_call(tool: ToolCallEntry) -> ToolLine:
    seconds = f"{tool.seconds:.2f} s"
    arguments = tuple((name, shorten_text(value)) for name, value in read_arguments(tool.arguments))
    result = shorten_text(tool.result)
    return ToolLine(tool.number + 1, tool.name, arguments, result, tool.outcome, tool.outcome == OK, seconds)


def read_arguments(text: str) -> Iterable[tuple[str, str]]:
    """The arguments of a call by name; texts as they are, other values as JSON.

    >>> list(read_arguments('{"program": "return E0", "limit": 2}'))
    [('program', 'return E0'), ('limit', '2')]
    >>> list(read_arguments('{"program'))
    [('', '{"program')]
    """
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        return [("", text)]
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in arguments.items()]


def _describe_samples(samples: CallingSamples) -> str:
    rate = samples.rate
    share = "" if rate is None else f", {samples.right:,} of {samples.verdicts:,} judged are right ({rate})"
    return f"{samples.samples:,}{share}"


@dataclass(frozen=True)
class ShownExample:
    """A solved task in a prompt."""

    task: str
    run: str  # that solved it, or "import"
    round: int  # of that run, that solved it; -1: imported
    rate: float  # share of right samples in that round
    sample: str | None  # of the run that shows it; None: it was given to that run

    def __str__(self) -> str:
        """
        >>> print(ShownExample("sum_0", "r-1", 0, 0.25, None))
        sum_0: round 0 of r-1, rate 0.250
        """
        where = f"round {self.round} of {self.run}" if self.round >= 0 else self.run
        return f"{self.task}: {where}, rate {self.rate:.3f}"


class ExampleReader:
    """Finds the demonstrations of one run's prompts; what it has read it keeps."""

    def __init__(self, store: Store, run: str) -> None:
        self.store = store
        self.run = run

    @cached_property
    def _rounds(self) -> dict[int, RoundInfo]:
        return {info.number: info for info, _ in self.store.read_rounds(self.run, with_children=True)}

    @cached_property
    def _lines(self) -> dict[str, str]:
        """The programs of all rounds, as they are looked for."""
        names = {program for info in self._rounds.values() for _, program in info.demonstrations}
        return {name: _strip_lines(text) for name, text in self.store.read_texts(names).items()}

    @cached_property
    def _sources(self) -> dict[tuple[str, str], ShownExample]:
        """By task and program."""
        return {
            (own.experience.task.id, _strip_lines(own.experience.source)): ShownExample(
                own.experience.task.id, own.experience.origin or self.run, own.experience.round,
                own.experience.success_rate, own.sample,
            )
            for own in self.store.read_experiences(self.run, with_children=True)
        }  # fmt: skip

    def list_programs(self, number: int, prompt: str) -> dict[str, str]:
        """By task, the hash of the program: those of a round's demonstrations whose program stands in the prompt."""
        lines = _strip_lines(prompt)
        examples = self._rounds[number].demonstrations if number in self._rounds else ()
        return {task: name for task, name in examples if self._lines.get(name, " ") in lines}

    def list_shown(self, number: int, prompt: str) -> Iterator[ShownExample]:
        """The same, each with where it comes from, in their order."""
        for task, name in self.list_programs(number, prompt).items():
            source = self._sources.get((task, self._lines[name]))
            if source is not None:
                yield source

    def describe_shown(self, detail: SampleDetail) -> Iterator[str]:
        """What each request of a sample shows, as `opsmith show --prompt` says it."""
        level = explain_level(self._rounds[detail.row.round].level)
        for call in detail.calls:
            prompt = "\n".join(message.content for message in call.messages)
            for example in () if is_tool_turn(call.agent) else self.list_shown(detail.row.round, prompt):
                sample = f", sample {example.sample[:12]}" if example.sample else ""
                yield printable(f"the {call.agent} is shown {example}{sample}; level {level}")


def _strip_lines(text: str) -> str:
    """Without indentation, so that a program is found wherever it stands in a prompt."""
    return "\n".join(["", *(line.strip() for line in text.strip().splitlines()), ""])
