"""Small kernels over the emulator: built, run on given numbers in a process of their own, and what came of it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
import torch

from opsmith.problems.dtypes import NAMES_BY_TORCH
from opsmith.problems.precision import dtype_of
from opsmith.running import sandbox
from opsmith.running.compiler import Artefact
from opsmith.running.toolchain import CXX_COMPILER, NO_CXX_COMPILER, find_toolchain
from opsmith.targets.cuda.dialect import CUDA_DIALECT
from opsmith.targets.gpu.emulator.building import EmulatedBuild, build_emulated
from opsmith.targets.gpu.passes import EMULATED_PASSES
from opsmith.targets.gpu.plan import (
    FLOATING,
    INPUT,
    NUMBER,
    OUTPUT,
    WHOLE,
    WORKSPACE,
    BoundArgument,
    BoundLaunch,
    BoundPlan,
    LaunchPlan,
    read_bound_plan,
)
from opsmith.targets.gpu.reading import read_plan
from opsmith.targets.native.layout import PASSES, DrawLayout, TrialLayout, read_outputs, write_inputs

needs_emulator = pytest.mark.skipif(
    find_toolchain(CXX_COMPILER) is None or bool(sandbox.missing()), reason=NO_CXX_COMPILER + sandbox.missing()
)
_RUN = """
import pickle, sys
from pathlib import Path
from opsmith.targets.cuda.dialect import CUDA_DIALECT
from opsmith.targets.gpu.emulator.findings import EmulatorFinding
from opsmith.targets.gpu.emulator.running import run_emulated
from opsmith.targets.gpu.plan import read_bound_plan
assert "torch" not in sys.modules and "numpy" not in sys.modules
answers = []
for library, plan, inputs in pickle.loads(sys.stdin.buffer.read()):
    try:
        answers.append(run_emulated(CUDA_DIALECT, [Path(library)], read_bound_plan(plan), inputs))
    except EmulatorFinding as finding:
        answers.append(str(finding))
sys.stdout.buffer.write(pickle.dumps(answers))
"""


@dataclass(frozen=True)
class Call:
    """Arrays and numbers of one call, by the names of the plan."""

    inputs: Mapping[str, torch.Tensor] = field(default_factory=dict)
    outputs: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)  # dtype and shape
    numbers: Mapping[str, float] = field(default_factory=dict)

    def bind(self, source: str) -> BoundPlan:
        plan = read_plan(source)
        assert isinstance(plan, LaunchPlan), plan
        inputs = {name: NAMES_BY_TORCH[str(tensor.dtype)[len("torch.") :]] for name, tensor in self.inputs.items()}
        outputs = {name: dtype for name, (dtype, _) in self.outputs.items()}
        numbers = {name: WHOLE if isinstance(number, int) else FLOATING for name, number in self.numbers.items()}
        spaces = {space.name: space.dtype for space in plan.workspaces}
        kinds = ((INPUT, inputs), (OUTPUT, outputs), (WORKSPACE, spaces), (NUMBER, numbers))
        arguments = {
            name: BoundArgument(name, kind, place, type_)
            for kind, types in kinds
            for place, (name, type_) in enumerate(types.items())
        }
        launches = tuple(
            BoundLaunch(one.kernel, one.grid, one.block, one.shared, tuple(arguments[n] for n in one.args), one.line)
            for one in plan.launches
        )
        return BoundPlan(
            tuple(inputs.values()), tuple(outputs.values()), tuple(numbers.items()), plan.workspaces, launches
        )

    def encode(self, draws: int = 1) -> tuple[TrialLayout, bytes]:
        arrays = [
            tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for tensor in self.inputs.values()
        ]
        sizes = tuple(
            torch.empty(shape, dtype=dtype_of(dtype)).element_size() * torch.Size(shape).numel()
            for dtype, shape in self.outputs.values()
        )
        draw = DrawLayout(tuple(map(len, arrays)), sizes, tuple(self.numbers.values()))
        layout = TrialLayout((draw,) * draws, passes=(*PASSES, EMULATED_PASSES[1]))
        return layout, write_inputs(layout, arrays * draws)


def build_kernel(source: str, call: Call) -> EmulatedBuild:
    return build_emulated(CUDA_DIALECT, source, call.bind(source))


@cache
def _build_library(source: str, plan: str, folder: Path) -> Path | str:
    path = folder / f"{hashlib.sha256((source + plan).encode()).hexdigest()}.so"
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other worker of the tests may be at it
        if path.exists():
            return path
        artefact = build_emulated(CUDA_DIALECT, source, read_bound_plan(plan))
        if not isinstance(artefact, Artefact):
            return f"not built: {artefact}"
        path.write_bytes(artefact.data)
        return path


def share_folder(factory: pytest.TempPathFactory) -> Path:
    """For libraries: one of all workers that run these tests together."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "libraries"
    folder.mkdir(exist_ok=True)
    return folder


def run_kernels(
    pairs: Sequence[tuple[str, Call]], folder: Path, draws: int = 1
) -> list[list[list[torch.Tensor]] | str]:
    """For each program and call: its outputs pass by pass and draw by draw, or the finding's text."""
    plans = [call.bind(source).write_json() for source, call in pairs]
    sources = [(source, plan) for (source, _), plan in zip(pairs, plans, strict=True)]
    is_second = os.environ.get("PYTEST_XDIST_WORKER", "").endswith("1")
    for source, plan in reversed(sources) if is_second else sources:  # two workers meet in the middle
        _build_library(source, plan, folder)
    libraries = [_build_library(source, plan, folder) for source, plan in sources]
    trials = [call.encode(draws) for _, call in pairs]
    rows = zip(libraries, plans, trials, strict=True)
    orders = [(str(library), plan, inputs) for library, plan, (_, inputs) in rows if isinstance(library, Path)]
    answer = subprocess.run(
        [sys.executable, "-c", _RUN], input=pickle.dumps(orders), capture_output=True, timeout=400, check=False
    )
    assert answer.returncode == 0, answer.stderr.decode()[-3000:]
    answers = iter(pickle.loads(answer.stdout))
    results: list[list[list[torch.Tensor]] | str] = []
    for (_, call), library, (layout, _) in zip(pairs, libraries, trials, strict=True):
        data = next(answers) if isinstance(library, Path) else library
        results.append(data if isinstance(data, str) else _read_tensors(call, layout, data))
    return results


def split_outputs(layout: TrialLayout, data: memoryview) -> Iterator[list[memoryview]]:
    """The outputs of each draw, out of the bytes of one pass."""
    place = 0
    for draw in layout.draws:
        views = []
        for size in draw.outputs:
            views.append(data[place : place + size])
            place += size
        yield views


def _read_tensors(call: Call, layout: TrialLayout, data: bytes) -> list[list[torch.Tensor]]:
    passes = read_outputs(layout, data)
    assert isinstance(passes, list)
    types = [(dtype_of(dtype), shape) for dtype, shape in call.outputs.values()]
    return [
        [
            torch.frombuffer(bytearray(view), dtype=dtype).view(shape)
            for views in split_outputs(layout, pass_)
            for view, (dtype, shape) in zip(views, types, strict=True)
        ]
        for pass_ in passes
    ]


def run_kernel(source: str, call: Call, folder: Path, draws: int = 1) -> list[list[torch.Tensor]] | str:
    return run_kernels([(source, call)], folder, draws)[0]
