"""Runs a program's launches in the candidate's process, on every draw and pass. The first finding ends the run.

Passes differ in what outputs, workspaces and shared memory hold before they are written, in the order of draws, blocks,
threads and atomics, in whether variables of the device keep what an earlier draw left, and in whether accesses are
watched (`gpu.passes`). No torch, no numpy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.targets.gpu.emulator.dialect import EmulatedDialect
from opsmith.targets.gpu.emulator.findings import Array, EmulatorFinding, LaunchScene, describe_finding, read_record
from opsmith.targets.gpu.emulator.library import LibraryFile
from opsmith.targets.gpu.emulator.source import name_entry
from opsmith.targets.gpu.passes import DrawFills, begin_fills
from opsmith.targets.gpu.plan import (
    INPUT,
    NUMBER,
    OUTPUT,
    WHOLE,
    WORKSPACE,
    BoundPlan,
    ResolvedLaunch,
    ResolvedPlan,
    read_bound_plan,
)
from opsmith.targets.gpu.trial_runs import TrialRun
from opsmith.targets.native.layout import DrawLayout, Pass, read_inputs, write_outputs

EMULATED, ORDINARY, PLAN = "emulated", "ordinary", "plan"  # artefacts of a build; the second one of those that are kept
_LOCAL = 2  # RTLD_NOW | RTLD_LOCAL of dlfcn.h


def run_artefacts(dialect: EmulatedDialect, artefacts: Mapping[str, Path], inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. What the emulator finds is raised, in words."""
    paths = [artefacts[name] for name in (EMULATED, ORDINARY) if name in artefacts]
    return run_emulated(dialect, paths, read_bound_plan(artefacts[PLAN].read_bytes()), inputs)


def run_emulated(dialect: EmulatedDialect, paths: Sequence[Path], plan: BoundPlan, inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. `paths`: the library, and the one for passes that are ordinary if
    that is another. Raises EmulatorFinding, PlanFault, and OSError where a library cannot be loaded."""
    layout, arrays = read_inputs(memoryview(inputs))
    library, ordinary = _load_library(paths[0], dialect), _load_library(paths[-1], dialect)
    draws = list(zip(layout.draws, arrays, strict=True))
    trial = TrialRun(library, ordinary, plan, draws, begin_fills(layout.seed, paths[:1]))
    rows = [trial.run_pass(number, pass_) for number, pass_ in enumerate(layout.passes)]
    if library.suspicion is not None and any(row != rows[0] for row in rows):
        raise library.suspicion
    return write_outputs(output for row in rows for output in row)


@dataclass(frozen=True)
class _Arrays:
    """Where the arrays of a draw lie, by kind and place."""

    by_kind: dict[str, list[Array]]

    def list_all(self) -> Iterator[Array]:
        for kind in (INPUT, OUTPUT, WORKSPACE):
            yield from self.by_kind[kind]


class _Library:
    """A loaded program."""

    def __init__(self, path: Path, dialect: EmulatedDialect) -> None:
        self._library = ctypes.CDLL(str(path), mode=_LOCAL)
        self.file = LibraryFile(Path(path).read_bytes(), dialect.program)
        self._words = dialect.words
        self.suspicion: EmulatorFinding | None = None
        for name in ("opsmith_finding", "opsmith_suspicion"):
            getattr(self._library, name).restype = ctypes.c_void_p
        begin = self._library.opsmith_begin
        begin.argtypes = [*[ctypes.c_int] * 3, ctypes.c_uint64, ctypes.c_int]
        place = self._library.opsmith_place
        place.restype, place.argtypes = ctypes.c_uint64, [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int]
        launch = self._library.opsmith_launch
        triple = ctypes.POINTER(ctypes.c_uint32)
        launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, triple, triple, ctypes.c_uint32]
        shared = self.file.list_shared()
        starts = (ctypes.c_uint64 * len(shared))(*(variable.start for variable in shared))
        sizes = (ctypes.c_uint64 * len(shared))(*(variable.size for variable in shared))
        self._library.opsmith_prepare(len(shared), starts, sizes)

    def begin_draw(self, pass_: Pass, keeps_device: bool, disorder: int, has_one_stack: bool) -> None:
        unwatched = (2 if has_one_stack else 1) if pass_.is_ordinary else 0
        self._library.opsmith_begin(pass_.poison, int(pass_.is_reversed), int(keeps_device), disorder, unwatched)

    def run_draw(
        self,
        plan: BoundPlan,
        resolved: ResolvedPlan,
        fills: DrawFills,
        calls: int,
        draw: DrawLayout,
        views: Sequence[memoryview],
    ) -> list[bytes]:
        """What is left in its outputs. Raises EmulatorFinding and PlanFault."""
        arrays = self._place_arrays(plan, draw, resolved.workspaces)
        for array, size in zip(arrays.by_kind[WORKSPACE], resolved.workspaces, strict=True):
            array.write(fills.draw_workspace(size, views))
        held: dict[str, Sequence[bytes | memoryview]] = {INPUT: views, OUTPUT: fills.outputs}
        for _ in range(calls):
            for kind, data in held.items():
                for array, bytes_ in zip(arrays.by_kind[kind], data, strict=True):
                    array.write(bytes_)
            for number, launch in enumerate(resolved.launches):
                self._run_launch(plan, launch, number, draw, arrays)
        return [ctypes.string_at(array.start, array.size) for array in arrays.by_kind[OUTPUT]]

    def _place_arrays(self, plan: BoundPlan, draw: DrawLayout, workspaces: Sequence[int]) -> _Arrays:
        names = {
            (argument.kind, argument.place): argument.name
            for launch in plan.launches
            for argument in launch.arguments
            if argument.is_array
        }
        by_kind: dict[str, list[Array]] = {}
        kinds = (
            (INPUT, plan.inputs, draw.inputs),
            (OUTPUT, plan.outputs, draw.outputs),
            (WORKSPACE, [space.dtype for space in plan.workspaces], workspaces),
        )
        for kind, dtypes, sizes in kinds:
            by_kind[kind] = [
                self._place_array(names.get((kind, place), f"{kind} {place}"), kind, BYTES_BY_DTYPE[dtype], size)
                for place, (dtype, size) in enumerate(zip(dtypes, sizes, strict=True))
            ]
        return _Arrays(by_kind)

    def _place_array(self, name: str, kind: str, element: int, size: int) -> Array:
        start = self._library.opsmith_place(size, element, int(kind != INPUT))
        if not start:
            raise MemoryError(f"an array of {size} bytes for {name}: the emulator has no room left")
        return Array(name, kind, element, start, size)

    def _run_launch(
        self, plan: BoundPlan, launch: ResolvedLaunch, number: int, draw: DrawLayout, arrays: _Arrays
    ) -> None:
        slots = (ctypes.c_uint64 * max(1, len(launch.arguments)))()
        for place, argument in enumerate(launch.arguments):
            if argument.kind != NUMBER:
                slots[place] = arrays.by_kind[argument.kind][argument.place].start
            elif argument.type == WHOLE:
                slots[place] = int(draw.numbers[argument.place]) & (1 << 64) - 1
            else:
                slots[place] = ctypes.c_uint64.from_buffer_copy(ctypes.c_double(draw.numbers[argument.place])).value
        entry = ctypes.cast(self._library[name_entry(number)], ctypes.c_void_p)
        triples = [(ctypes.c_uint32 * 3)(*triple) for triple in (launch.grid, launch.block)]
        has_finding = self._library.opsmith_launch(entry, ctypes.addressof(slots), *triples, launch.shared)
        scene = LaunchScene(self._words, self.file, launch, tuple(arrays.list_all()))
        if has_finding:
            raise describe_finding(read_record(self._library.opsmith_finding()), scene)
        record = read_record(self._library.opsmith_suspicion())
        if record.kind and self.suspicion is None:
            self.suspicion = describe_finding(record, scene)


@cache
def _load_library(path: Path, dialect: EmulatedDialect) -> _Library:
    """Once a process."""
    return _Library(path, dialect)
