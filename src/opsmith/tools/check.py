"""The tool `check`: what can be said of a program before it runs, a compiler's findings included."""

from __future__ import annotations

import asyncio

from opsmith.judging.executed import COMPILE, build_checked
from opsmith.judging.verifier import check_program
from opsmith.records import Diagnostic, Stage
from opsmith.targets import Built
from opsmith.targets.faults import charged_to_target
from opsmith.targets.protocols import Equipped
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ProgramArguments
from opsmith.tools.wording import unwrap_program, write_findings


class CheckTool:
    """Checks a program without running it."""

    name = "check"
    description = (
        "Check a program for this task without running it: syntax, types, rules of the language, and what a compiler "
        "says where there is one. Cheap: worth a call before an answer. It does not say whether the values are right."
    )
    arguments = ProgramArguments

    async def run(self, context: ToolContext, arguments: ProgramArguments) -> ToolResult:
        target, task = context.target, context.task
        source = unwrap_program(target, task, arguments.program)
        with charged_to_target(task.target, "check_program"):
            checked = check_program(target, task, source)
        warnings = "".join(f"\nwarning: {warning}" for warning in checked.warnings)
        if checked.stage != Stage.RUN:
            return ToolResult(_describe_refusal(context, checked.stage, checked.errors) + warnings)
        if isinstance(target, Built):
            lack = target.explain_lack() if isinstance(target, Equipped) else ""
            if lack:
                return ToolResult(f"The text passes, but it cannot be compiled here: {lack}", ToolOutcome.ERROR)
            build = await asyncio.to_thread(build_checked, target, task, source)
            if build.failure:
                return ToolResult(f"The text passes, but the build failed: {build.failure}", ToolOutcome.ERROR)
            if build.errors:
                return ToolResult(_describe_refusal(context, COMPILE, build.errors) + warnings)
        return ToolResult(f"Nothing is wrong before it runs ({', '.join(target.stages)}).{warnings}")


def _describe_refusal(context: ToolContext, stage: Stage, errors: tuple[Diagnostic, ...]) -> str:
    return f"Refused at {stage.name}.\n\n{write_findings(context.task, errors)}"
