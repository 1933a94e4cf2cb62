"""The tool `try`: a verdict. It tells what a repair turn would: a failure at hidden sizes has neither sizes nor values.

It is the caller's to count: a verdict that a tool gave is no sample's.
"""

from __future__ import annotations

from opsmith.records import Outcome, Verdict
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ProgramArguments
from opsmith.tools.wording import unwrap_program, write_findings


class TryTool:
    """Judges a program."""

    name = "try"
    description = (
        "Judge a program for this task as an answer would be judged: it is checked, run on the task's trials and at "
        "sizes that are not shown, and compared with the reference. Tells how far it came and what is wrong first."
    )
    arguments = ProgramArguments

    async def run(self, context: ToolContext, arguments: ProgramArguments) -> ToolResult:
        source = unwrap_program(context.target, context.task, arguments.program)
        verdict = await context.judge.judge(context.task, source)
        outcome = ToolOutcome.ERROR if verdict.outcome is Outcome.UNJUDGED else ToolOutcome.OK
        return ToolResult(describe_verdict(context, verdict), outcome)


def describe_verdict(context: ToolContext, verdict: Verdict) -> str:
    """Outcome, stage and charge, then the findings. Warnings stay out: they speak to people of hidden sizes too."""
    head = f"outcome: {verdict.outcome.value}\nstage: {verdict.stage.name}\ncharged_to: {verdict.charged_to.value}"
    if verdict.outcome is Outcome.UNJUDGED:
        return f"{head}\n\nIt could not be judged, for a reason that is not the program's: this says nothing of it."
    if verdict.passed:
        return f"{head}\n\nIt is right."
    return f"{head}\n\n{write_findings(context.task, verdict.errors) or verdict.message}"
