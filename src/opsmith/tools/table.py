"""Which tools there are, which are offered, and how one is run so that nothing but a result comes of it.

A further tool is one file that fits `Tool`, and one line in `TOOLS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opsmith.errors import OpsmithError, StoreError
from opsmith.models import ToolOffer
from opsmith.records import Task, content_hash, dumps
from opsmith.targets import Target
from opsmith.tools import Tool, ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import (
    ProgramArguments,
    ToolArguments,
    WrongArgumentsError,
    check_arguments,
    read_arguments,
    write_schema,
)
from opsmith.tools.check import CheckTool
from opsmith.tools.examples import ExamplesTool
from opsmith.tools.figures import CostTool, MeasureTool, has_costs, has_times
from opsmith.tools.language import LanguageTool
from opsmith.tools.trying import TryTool
from opsmith.tools.wording import bound_text, unwrap_program

_ALL: tuple[Tool[Any], ...] = (LanguageTool(), CheckTool(), TryTool(), CostTool(), MeasureTool(), ExamplesTool())
TOOLS: Mapping[str, Tool[Any]] = {tool.name: tool for tool in _ALL}
_FIGURES = {"cost": has_costs, "measure": has_times}  # offered where the language has such figures
CHECKING = ("language", "check")  # what `--tools check` offers


def list_tools(choice: str, target: Target) -> tuple[Tool[Any], ...]:
    """The tools of `--tools none|check|all` that have something to say of programs of a target."""
    if choice == "none":
        return ()
    if choice == "check":
        return tuple(TOOLS[name] for name in CHECKING)
    missing = {name for name, has_figures in _FIGURES.items() if not has_figures(target)}
    return tuple(tool for name, tool in TOOLS.items() if name not in missing)


def offer_tools(tools: Sequence[Tool[Any]]) -> tuple[ToolOffer, ...]:
    """The tools as a model is told of them; equal tools give equal texts."""
    return tuple(ToolOffer(tool.name, tool.description, dumps(write_schema(tool.arguments))) for tool in tools)


def name_offers(tools: Sequence[Tool[Any]]) -> str:
    """The hash of what a model is told of the tools."""
    return content_hash(dumps(offer_tools(tools)))


def read_program(tool: Tool[Any], target: Target, task: Task, arguments: str) -> str | None:
    """The program that a call of a tool is about; None: its arguments hold none."""
    if not issubclass(tool.arguments, ProgramArguments):
        return None
    try:
        chosen = read_arguments(tool.name, tool.arguments, arguments)
    except WrongArgumentsError:
        return None
    assert isinstance(chosen, ProgramArguments)
    return unwrap_program(target, task, chosen.program)


async def run_tool(tool: Tool[Any], context: ToolContext, arguments: str | Mapping[str, Any]) -> ToolResult:
    """What a tool says; `arguments`: JSON text as a model wrote it, or plain values. Raises StoreError alone."""
    try:
        chosen = _read_arguments(tool, arguments)
        result = await tool.run(context, chosen)
    except WrongArgumentsError as mistake:
        result = ToolResult(str(mistake), ToolOutcome.REFUSED)
    except StoreError:
        raise
    except OpsmithError as error:
        result = ToolResult(f"{tool.name}: {error}", ToolOutcome.ERROR)
    except Exception as error:  # a tool that fails is no reason to lose a sample: who called can go on without it
        result = ToolResult(f"{tool.name}: it failed ({type(error).__name__}); go on without it", ToolOutcome.ERROR)
    return ToolResult(bound_text(result.text), result.outcome)


def _read_arguments(tool: Tool[Any], arguments: str | Mapping[str, Any]) -> ToolArguments:
    if isinstance(arguments, str):
        return read_arguments(tool.name, tool.arguments, arguments)
    return check_arguments(tool.name, tool.arguments, arguments)
