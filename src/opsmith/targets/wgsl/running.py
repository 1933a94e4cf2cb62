"""Runs the launches of a program on a device of WebGPU, in the candidate's process: all draws, in three forms.

The first pass runs the program as it is, the second with workgroups, invocations and draws in reversed order, the third
with every access checked, and the last one, of a program that is to be kept, several times as it is. Outputs and
workspaces hold other bytes before each. What the checked form finds is raised as
ShaderFault, whose text is the finding. No torch, no numpy: candidates' processes import this.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from math import gcd, prod
from pathlib import Path
from typing import Any

from opsmith.targets.gpu.passes import CALLS, DrawFills, PassFills, begin_fills
from opsmith.targets.gpu.plan import (
    OUTPUT,
    WORKSPACE,
    BoundPlan,
    ResolvedLaunch,
    read_bound_plan,
)
from opsmith.targets.native.layout import DrawLayout, Pass, read_inputs, write_outputs
from opsmith.targets.wgsl import webgpu as api
from opsmith.targets.wgsl.atomic_orders import WORKGROUP_PLACES
from opsmith.targets.wgsl.device import ComputeDevice, Dispatch, open_device
from opsmith.targets.wgsl.encoding import encode_array
from opsmith.targets.wgsl.instrumenting import (
    CHECKED,
    CHECKS,
    NO_SHADOW,
    PLACES,
    PLAIN,
    PLAN,
    REPORT_WORDS,
    REVERSED,
    KernelChecks,
    WorkgroupArray,
    read_checks,
)
from opsmith.targets.wgsl.memory import CallMemory
from opsmith.targets.wgsl.reporting import AccessReport, ShaderFault, describe_report

FORMS = (PLAIN, REVERSED, CHECKED, PLAIN)  # of the passes
LARGEST_SHADOW = 1 << 26  # bytes; the races of arrays that need more are not looked for

_ARRAY = api.STORAGE | api.COPY_SRC | api.COPY_DST
_ENTRY_SHADOW = 16  # bytes


def run_artefacts(artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. Raises ShaderFault, PlanFault, DeviceRefusal."""
    layout, arrays = read_inputs(memoryview(inputs))
    program = _load_program(tuple(sorted((name, str(path)) for name, path in artefacts.items())))
    fills = begin_fills(layout.seed, list(artefacts.values()))
    outputs: list[bytes] = []
    for number, pass_ in enumerate(layout.passes):
        outputs += program.run_pass(FORMS[number], pass_, list(zip(layout.draws, arrays, strict=True)), fills)
    return write_outputs(outputs)


@cache
def _load_program(artefacts: tuple[tuple[str, str], ...]) -> _Program:
    """Once a process: modules and pipelines stay."""
    contents = {name: Path(path).read_bytes() for name, path in artefacts}
    return _Program(contents, open_device())


class _Program:
    """A built program on a device."""

    def __init__(self, contents: Mapping[str, bytes], device: ComputeDevice) -> None:
        self._plan = read_bound_plan(contents[PLAN])
        self._workgroup, self._checks = read_checks(contents[CHECKS])
        self._sources = {form: contents[form].decode() for form in FORMS}
        self._device = device
        self._modules: dict[str, Any] = {}
        self._order = random.Random(0)  # of workgroups in a checked form
        self._pipelines: dict[tuple[str, str], Any] = {}

    def run_pass(
        self, form: str, pass_: Pass, draws: Sequence[tuple[DrawLayout, Sequence[memoryview]]], fills: PassFills
    ) -> list[bytes]:
        """The outputs of all draws, in the order of the draws."""
        order = range(len(draws))
        rows: dict[int, list[bytes]] = {}
        for draw in reversed(order) if pass_.is_reversed else order:
            layout, views = draws[draw]
            self._order = fills.source
            held = fills.fill_draw(pass_, draw, layout.outputs)
            memory = _DrawMemory(self._device, self._plan, layout)
            with memory:
                memory.fill_workspaces(held, views)
                for _ in range(CALLS if pass_.is_ordinary else 1):
                    memory.fill_arrays(views, held)
                    self._run_launches(form, memory)
                rows[draw] = list(memory.read_outputs())
        fills.first = fills.first or rows
        return [output for draw in order for output in rows[draw]]

    def _run_launches(self, form: str, memory: _DrawMemory) -> None:
        if form != CHECKED:
            dispatches = [
                Dispatch(self._find_pipeline(form, launch.kernel), self._bind_arrays(form, launch, memory), launch.grid)
                for launch in memory.launches
            ]
            self._device.run_dispatches(dispatches)
            return
        for number, launch in enumerate(memory.launches):
            self._run_checked(number, launch, memory)

    def _run_checked(self, number: int, launch: ResolvedLaunch, memory: _DrawMemory) -> None:
        """One launch; what it finds is raised as ShaderFault."""
        device, checks = self._device, self._checks[launch.kernel]
        pipeline = self._find_pipeline(CHECKED, launch.kernel)
        walk = _choose_walk(self._order, prod(launch.grid))
        table, size = _plan_shadow(checks, self._workgroup, memory.count_entries(launch), (number, *walk, 0))
        shadow = memory.make_buffer(size)
        report = memory.make_buffer(REPORT_WORDS * 4)
        places = memory.make_buffer(len(table), api.UNIFORM | api.COPY_DST)
        device.write_buffer(places, table)
        rows = [(0, shadow, 0, size), (1, report, 0, REPORT_WORDS * 4), (2, places, 0, len(table))]
        groups = [*self._bind_arrays(CHECKED, launch, memory), device.bind_buffers(pipeline, 1, rows)]
        device.run_dispatches([Dispatch(pipeline, groups, launch.grid)])
        words = AccessReport(*struct.unpack(f"<{REPORT_WORDS}I", device.read_buffer(report, REPORT_WORDS * 4)))
        memory.drop_buffers(shadow, report, places)
        if words.kind:
            names = {**checks.names, **{WORKGROUP_PLACES + i: entry.name for i, entry in enumerate(self._workgroup)}}
            raise ShaderFault(describe_report(words, launch, names))

    def _bind_arrays(self, form: str, launch: ResolvedLaunch, memory: CallMemory) -> list[Any]:
        checks = self._checks[launch.kernel]
        pipeline = self._find_pipeline(form, launch.kernel)
        return memory.bind_arrays(pipeline, launch, checks.names, checks.widths, checks.has_numbers)

    def _find_pipeline(self, form: str, kernel: str) -> Any:
        if (form, kernel) not in self._pipelines:
            if form not in self._modules:
                self._modules[form] = self._device.compile_source(self._sources[form])
            self._pipelines[form, kernel] = self._device.make_pipeline(self._modules[form], kernel)
        return self._pipelines[form, kernel]


def _plan_shadow(
    checks: KernelChecks, workgroup: Sequence[WorkgroupArray], entries: Mapping[int, int], last: Sequence[int]
) -> tuple[bytes, int]:
    """The table of arrays of a launch, and the bytes of its shadow. `last`: the row behind them."""
    rows = [(0, NO_SHADOW)] * PLACES
    size = 0
    for place, numbers in entries.items():
        begin, count = NO_SHADOW, numbers // checks.widths[place]
        if place in checks.written and size + count * _ENTRY_SHADOW <= LARGEST_SHADOW:
            begin, size = size // 4, size + count * _ENTRY_SHADOW
        rows[place] = (count, begin)
    for place, entry in enumerate(workgroup, WORKGROUP_PLACES):
        if entry.count and size + entry.count * _ENTRY_SHADOW <= LARGEST_SHADOW:
            rows[place] = (entry.count, size // 4)
            size += entry.count * _ENTRY_SHADOW
    table = [struct.pack("<4I", length, begin, 0, 0) for length, begin in rows[: PLACES - 1]]
    return b"".join([*table, struct.pack("<4I", *last)]), max(size, 16)


def _choose_walk(order: random.Random, groups: int) -> tuple[int, int]:
    """Step and begin of a walk over all workgroups, neither forward nor backward where there are many."""
    if not 3 < groups < 1 << 16:  # a product of two stays below 2^32
        return 1, 0
    step = order.randrange(2, groups - 1)
    while gcd(step, groups) != 1:
        step = step % (groups - 1) + 1
    return step, order.randrange(groups)


class _DrawMemory(CallMemory):
    """The buffers of one draw, and what they hold before a call."""

    def __init__(self, device: ComputeDevice, plan: BoundPlan, layout: DrawLayout) -> None:
        super().__init__(device, plan, layout.numbers, layout.inputs, layout.outputs)

    def fill_workspaces(self, held: DrawFills, views: Sequence[memoryview]) -> None:
        for (kind, _), (buffer, size) in self.arrays.items():
            if kind == WORKSPACE:
                self.device.write_buffer(buffer, held.draw_workspace(size, views))

    def fill_arrays(self, views: Sequence[memoryview], held: DrawFills) -> None:
        """Inputs, and what outputs hold before: values of their types where they are old, else junk of any type."""
        self.write_inputs(views)
        for (kind, place), (buffer, size) in self.arrays.items():
            if kind == OUTPUT and held.pass_.has_old_outputs:
                data = encode_array(self.plan.outputs[place], memoryview(held.outputs[place]))
                self.device.write_buffer(buffer, data)
            elif kind == OUTPUT:
                junk = held.outputs[place]
                self.device.write_buffer(buffer, (junk * (size // max(1, len(junk)) + 1))[:size])
