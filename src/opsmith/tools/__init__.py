"""Tools that a model may call while it writes a program: the protocol, and what all of them work on.

    result = await run_tool(TOOLS["check"], ToolContext(target, task, judge), '{"program": "return E0"}')

The same tools serve a sample of a run (`learn.conversation`) and agents from outside (MCP). What a tool returns is
printable, bounded in length and free of hidden sizes. A wrong argument is answered in words; it raises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from opsmith.agents.manual import Manual
from opsmith.judging.judge import Judge
from opsmith.records import Task
from opsmith.targets import Target
from opsmith.tools.arguments import ToolArguments

if TYPE_CHECKING:
    from opsmith.measuring.orders import Measurer
    from opsmith.store import Store

ArgumentsT = TypeVar("ArgumentsT", bound=ToolArguments)


class ToolOutcome(StrEnum):
    """What became of a call. A wrong program that was judged is OK: the tool did what it was asked."""

    OK = "ok"
    ERROR = "error"  # something other than the caller failed
    REFUSED = "refused"  # the arguments are wrong, or the tool has nothing to say of this task
    LIMIT = "limit"  # the sample has no calls, tokens or seconds left


@dataclass(frozen=True)
class ToolResult:
    """What the model is told."""

    text: str
    outcome: ToolOutcome = ToolOutcome.OK


@dataclass(frozen=True)
class ToolContext:
    """What a tool works on. Without store and run there are no experiences; without a measurer nothing is timed."""

    target: Target
    task: Task
    judge: Judge
    store: Store | None = None
    run: str | None = None
    measurer: Measurer | None = None
    style: str = "structural"  # of the programs that are shown: `agents.prompt.get_form`
    manual: Manual | None = None  # of the language; None: its own


class Tool(Protocol[ArgumentsT]):
    """One tool. It knows neither who calls nor what was called before."""

    name: str
    description: str  # for the model: what it does, when it is worth a call, what it does not say
    arguments: type[ArgumentsT]

    async def run(self, context: ToolContext, arguments: ArgumentsT) -> ToolResult:
        """Raises OpsmithError where something other than the arguments is at fault: `run_tool` says it in words."""
