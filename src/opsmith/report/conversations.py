"""A sample's conversation in words: what each turn said, which tools it called, and what they answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from opsmith.records import printable
from opsmith.report.record import COUNT, SECONDS, TEXT, DataTable, Said
from opsmith.report.tables import print_fact
from opsmith.results.tool_use import CallingSamples, ToolUse, read_tool_use
from opsmith.store import Store
from opsmith.store.queries import SampleDetail
from opsmith.store.rows import PROPOSER, TOOLS, ToolCallEntry

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


def print_tool_use(console: Console, store: Store, run: str) -> None:
    """What a run's models called; nothing where they called no tool."""
    use = read_tool_use(store, run)
    if use is not None:
        console.print(tabulate_tools(use))
        for line in describe_tool_use(use):
            print_fact(console, f"tools   {line}")


def describe_tool_use(use: ToolUse) -> Iterator[str]:
    """What a run's models called, and how samples ended that did and did not."""
    yield f"{use.calls:,} calls, {use.seconds:.1f} s of tools at work"
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
