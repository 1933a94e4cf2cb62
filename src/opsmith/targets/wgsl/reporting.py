"""What a checked form found, in words: the line, the access, the invocations. No torch, no numpy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from opsmith.targets.gpu.plan import ResolvedLaunch
from opsmith.targets.wgsl.instrumenting import BOUNDS, MOST_ROUNDS, RACE, ROUNDS

_READ_BY_OTHER = 2
_LINES = 0xFFF


class ShaderFault(Exception):
    """What a kernel does that it may not; the text is the finding."""


@dataclass(frozen=True)
class AccessReport:
    """The words of the buffer that a checked form writes once."""

    kind: int  # 0: nothing was found
    line: int
    place: int  # of the array
    index: int
    detail: int  # BOUNDS: the length; DIVERGENCE: how many should arrive; RACE: who did what at which line
    other: int
    invocation: int
    launch: int


def describe_report(report: AccessReport, launch: ResolvedLaunch, names: Mapping[int, str]) -> str:
    """One finding: line, actual, expected, what to try."""
    name, me = names.get(report.place, "a local array or vector"), _describe_invocation(report.invocation, launch)
    if report.kind == BOUNDS:
        index = report.index - 2**32 if report.index >= 2**31 else report.index
        text = f"given index {index} of {name}, by {me}; expected 0 to {report.detail - 1}"
        text += "; try: a guard on the size, also where a row or a tile ends early"
    elif report.kind == RACE:
        text = _describe_race(report, launch, name, me)
    elif report.kind == ROUNDS:
        text = f"given {MOST_ROUNDS} rounds of loops by {me}, the last of this one"
        text += "; expected a launch that ends within them; try: an end of the loop, or more invocations that share it"
    else:
        text = f"given a barrier at which {report.index} of {report.detail} invocations of a workgroup arrive"
        text += "; expected all of them or none"
        text += "; try: move it out of branches and loops that invocations leave at different times"
    return f"line {report.line}: kernel {launch.kernel}: {text}"


def _describe_race(report: AccessReport, launch: ResolvedLaunch, name: str, me: str) -> str:
    span = prod(launch.block) + 1
    then, line = report.detail >> 12, report.detail & _LINES
    if report.other == 2**32 - 1:
        neighbour = "several workgroups"
    elif report.other % span == 0:
        neighbour = "several invocations"
    elif report.other // span == report.invocation // span:
        neighbour = f"invocation {report.other % span - 1} of it"
    else:
        neighbour = _describe_invocation(report.other, launch)
    mine, theirs = (
        ("reads", "writes it") if then == 1 else ("writes", "reads it" if then == _READ_BY_OTHER else "writes it too")
    )
    is_one_group = report.other // span == report.invocation // span
    text = f"given a race on {name}[{report.index}]: {me} {mine} it, {neighbour} {theirs} at line {line}"
    if is_one_group:
        remedy = "workgroupBarrier() between, for arrays of storage storageBarrier()"
        return f"{text}, with no barrier between; expected a barrier between the two; try: {remedy}"
    return f"{text}; expected entries that one workgroup alone uses in a launch; try: another launch, or an atomic"


def _describe_invocation(who: int, launch: ResolvedLaunch) -> str:
    span = prod(launch.block) + 1
    group, invocation = who // span - 1, who % span - 1
    x, y, _ = launch.grid
    return f"invocation {invocation} of workgroup ({group % x}, {group // x % y}, {group // (x * y)})"
