"""Which tools there are, which are offered, and how one is run so that nothing but a result comes of it.

A further tool is one file that fits `Tool`, and one line in `TOOLS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsmith.errors import OpsmithError, StoreError
from opsmith.targets import Target
from opsmith.tools import Tool, ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ToolArguments, WrongArgumentsError, check_arguments, read_arguments
from opsmith.tools.check import CheckTool
from opsmith.tools.language import LanguageTool
from opsmith.tools.trying import TryTool
from opsmith.tools.wording import bound_text

TOOLS: Mapping[str, Tool[Any]] = {tool.name: tool for tool in (LanguageTool(), CheckTool(), TryTool())}
CHECKING = ("language", "check")  # what `--tools check` offers


def list_tools(choice: str, target: Target) -> tuple[Tool[Any], ...]:
    """The tools of `--tools none|check|all` that have something to say of programs of a target."""
    if choice == "none":
        return ()
    return tuple(tool for name, tool in TOOLS.items() if choice == "all" or name in CHECKING)


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
