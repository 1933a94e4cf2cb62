"""The tools `cost` and `measure`: what a program costs by its language's model, and how fast it is on a quick look."""

from __future__ import annotations

import asyncio

import yaml

from opsmith.errors import UsageError
from opsmith.judging.judge import Costing
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.targets import Commanded, Target
from opsmith.targets.protocols import Costed, Timed
from opsmith.tools import ToolContext, ToolOutcome, ToolResult
from opsmith.tools.arguments import ProgramArguments
from opsmith.tools.trying import describe_verdict
from opsmith.tools.wording import bound_text, unwrap_program

MOST_FIGURES = 4_000  # characters


class CostTool:
    """Runs a language's cost model, or counts the cycles of its simulator."""

    name = "cost"
    description = (
        "The figures of a program by the language's cost model, or the cycles that its simulator counts, at the sizes "
        "that the task states. For programs that `check` passes. It does not say whether the values are right."
    )
    arguments = ProgramArguments

    async def run(self, context: ToolContext, arguments: ProgramArguments) -> ToolResult:
        source = unwrap_program(context.target, context.task, arguments.program)
        if not isinstance(context.judge, Costing):
            return ToolResult("No cost model is run here; go on without it.", ToolOutcome.REFUSED)
        try:
            figures = await asyncio.to_thread(context.judge.cost, context.task, source)
        except UsageError as error:
            return ToolResult(str(error), ToolOutcome.REFUSED)
        return ToolResult(bound_text(yaml.safe_dump(dict(figures), sort_keys=False), MOST_FIGURES))


class MeasureTool:
    """Times a right program beside the task's own."""

    name = "measure"
    description = (
        "Time a right program on this machine beside the task's own program: a quick look with an interval. A program "
        "that is wrong is not timed. Use it last: it takes seconds."
    )
    arguments = ProgramArguments

    async def run(self, context: ToolContext, arguments: ProgramArguments) -> ToolResult:
        measurer, task = context.measurer, context.task
        lack = "nothing is timed where this runs" if measurer is None else measurer.explain_lack(task)
        if measurer is None or lack:
            return ToolResult(f"Not measured: {lack}; go on without it.", ToolOutcome.REFUSED)
        source = unwrap_program(context.target, task, arguments.program)
        verdict = await context.judge.judge(task, source)
        if not verdict.passed:
            return ToolResult(
                f"Only right programs are timed.\n{describe_verdict(context, verdict)}", ToolOutcome.REFUSED
            )
        order = SpeedOrder(task, source, MeasuringGrade.SCREEN)
        lines = [_describe_speed(report.measurement) async for report in measurer.measure(order)]
        return ToolResult("\n".join(lines) or "Nothing could be measured.")


def has_costs(target: Target) -> bool:
    """Whether `cost` has something to say of its programs."""
    return isinstance(target, Costed | Commanded)


def has_times(target: Target) -> bool:
    """Whether `measure` has."""
    return isinstance(target, Timed)


def _describe_speed(measurement: SpeedMeasurement) -> str:
    """By the shape set's name: which sizes those are is not told."""
    place, unit = f"shape set {measurement.shape_set}", measurement.objective.unit
    if measurement.time is None:
        return f"{place}: no time: {measurement.reason}"
    value = measurement.time.value
    text = f"{place}: {f'{value:,.0f}' if value >= 10_000 else f'{value:.4g}'} {unit}"
    if measurement.ratio is None:
        return f"{text}; no ratio: {measurement.reason or 'there is no other program'}"
    ratio = measurement.ratio.precise
    return f"{text}, {ratio.value:.3g} times as fast as the task's own program ({ratio.low:.3g} to {ratio.high:.3g})"
