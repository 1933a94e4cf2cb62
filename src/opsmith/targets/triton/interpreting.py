"""Runs a program's launches by Triton's interpreter, on every draw and pass of a trial, in a candidate's process.

The interpreter computes many instances of a kernel side by side by numpy. Its memory is ours (`memory`), and so is what
it does not do as a GPU does: bf16 and fp8 are rounded after each operation, sums of fp16 are sums of fp16, tf32 is
refused where it changes a product, a mask's other lanes hold junk. No torch.
"""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # read when Triton's own functions are decorated

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter

from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.targets.gpu.passes import DISORDERED, DrawFills, begin_fills
from opsmith.targets.gpu.plan import (
    INPUT,
    NUMBER,
    OUTPUT,
    WHOLE,
    WORKSPACE,
    BoundArgument,
    BoundPlan,
    ResolvedLaunch,
    ResolvedPlan,
    read_bound_plan,
)
from opsmith.targets.gpu.trial_runs import TrialRun
from opsmith.targets.native.layout import DrawLayout, Pass, read_inputs, write_outputs
from opsmith.targets.triton.memory import PROGRAM, Memory, TritonFinding, WatchedArray
from opsmith.targets.triton.semantics import Parting, make_tensor, prepare_interpreter
from opsmith.targets.triton.source import list_functions
from opsmith.targets.triton.words import OPTIONS, TYPES

_Held = Mapping[str, Sequence[WatchedArray]]  # by kind
_MOST_TOGETHER, _MOST_LANES = 4096, 1 << 19  # of instances that run side by side
MEMORY = Memory()
prepare_interpreter(MEMORY)


def run_artefacts(program: Path, plan: Path, inputs: bytes | memoryview) -> bytes:
    """The outputs of all passes over a trial's draws. What is found is raised, in words."""
    layout, arrays = read_inputs(memoryview(inputs))
    runner = _Program(program.read_text("utf-8"))
    draws = list(zip(layout.draws, arrays, strict=True))
    bound = read_bound_plan(plan.read_bytes())
    trial = TrialRun(runner, runner, bound, draws, begin_fills(layout.seed, [program]))
    rows: list[list[bytes]] = []
    for number, pass_ in enumerate(layout.passes):
        # The last one differs in the order of atomics and in what workspaces hold; no other order can be seen.
        is_needless = number == DISORDERED and not bound.workspaces and not MEMORY.has_changed
        rows.append(rows[-1] if is_needless else trial.run_pass(number, pass_))
    return write_outputs(output for row in rows for output in row)


class _Function:
    """A function of a program: called by others, and by reductions."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.fn = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.fn(*arguments, **named)


class _Assignments(ast.NodeTransformer):
    """What Triton does to values that are given a name: numbers become tensors."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        node.value = ast.Call(ast.Name("opsmith_keep", ast.Load()), [node.value], [])
        return node


def _keep_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_keep_value, value))
    return value if isinstance(value, tl.dtype) else interpreter.interpreter_semantic.to_tensor(value, False)


def _count_range(*bounds: Any, **options: Any) -> Iterator[Any]:
    """Numbers of a loop, as tensors."""
    keep = interpreter.interpreter_semantic.to_tensor
    for number in range(*map(int, bounds)):
        yield keep(number, False)


def _find_least(*values: Any) -> Any:
    return min(*values) if not any(isinstance(each, tl.tensor) for each in values) else reduce(tl.minimum, values)


def _find_largest(*values: Any) -> Any:
    return max(*values) if not any(isinstance(each, tl.tensor) for each in values) else reduce(tl.maximum, values)


class _Program:
    """A text that `source.check_source` lets pass, as Python; fits `LaunchRunner`."""

    def __init__(self, source: str) -> None:
        functions = list_functions(source).values()
        for function in functions:
            for parameter in function.args.args:
                parameter.annotation = None
        host = SimpleNamespace(jit=_Function, cdiv=triton.cdiv, next_power_of_2=triton.next_power_of_2)
        self._names: dict[str, Any] = {
            **{"tl": tl, "triton": host, "range": _count_range, "opsmith_keep": _keep_value, "__builtins__": {}},
            **{"min": _find_least, "max": _find_largest, "float": float, "int": int},
        }
        tree = ast.fix_missing_locations(_Assignments().visit(ast.Module([*functions], [])))
        exec(compile(tree, PROGRAM, "exec"), self._names)
        self._order: Callable[[int], Sequence[int]] = range

    def begin_draw(self, pass_: Pass, keeps_device: bool, disorder: int, has_one_stack: bool) -> None:
        def order(count: int) -> Sequence[int]:
            if disorder and count <= 1 << 20:
                return random.Random(disorder).sample(range(count), count)
            return range(count)[::-1] if pass_.is_reversed else range(count)

        self._order = order

    def run_draw(
        self,
        plan: BoundPlan,
        resolved: ResolvedPlan,
        fills: DrawFills,
        calls: int,
        draw: DrawLayout,
        views: Sequence[memoryview],
    ) -> list[bytes]:
        """What is left in its outputs. Raises TritonFinding."""
        names = {(each.kind, each.place): each.name for launch in plan.launches for each in launch.arguments}
        spaces = [fills.draw_workspace(size, views) for size in resolved.workspaces]
        for _ in range(calls):
            MEMORY.arrays.clear()
            held: dict[str, list[WatchedArray]] = {}
            kinds: Sequence[tuple[str, Sequence[str], Sequence[bytes | memoryview]]] = (
                (INPUT, plan.inputs, views),
                (OUTPUT, plan.outputs, fills.outputs),
                (WORKSPACE, [space.dtype for space in plan.workspaces], spaces),
            )
            for kind, dtypes, data in kinds:
                rows = enumerate(zip(dtypes, data, strict=True))
                held[kind] = [
                    MEMORY.add_array(names.get((kind, place), kind), kind, BYTES_BY_DTYPE[dtype], bytes_)
                    for place, (dtype, bytes_) in rows
                ]
            for launch in resolved.launches:
                self._run_launch(launch, draw.numbers, held)
            spaces = [array.data.tobytes() for array in held[WORKSPACE]]
        return [array.data.tobytes() for array in held[OUTPUT]]

    def _run_launch(
        self, launch: ResolvedLaunch, numbers: Sequence[float], held: Mapping[str, Sequence[WatchedArray]]
    ) -> None:
        function = self._names[launch.kernel].fn
        arguments = [_make_argument(each, numbers, held) for each in launch.arguments]
        meta = {name: value for name, value in launch.meta if name not in OPTIONS}
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        passed = iter(arguments)
        called = [meta[name] if name in meta else next(passed) for name in names]
        interpreter.interpreter_builder.set_grid_dim(*launch.grid)
        MEMORY.begin_launch(launch.kernel, launch.grid)
        order = self._order(prod(launch.grid))
        together = max(1, min(_MOST_TOGETHER, _MOST_LANES // max(1, prod(max(1, value) for value in meta.values()))))
        for start in range(0, len(order), together):
            _run_together(function, called, order[start : start + together])


def _run_together(function: Callable[..., Any], called: Sequence[Any], numbers: Sequence[int]) -> None:
    """These instances side by side; those that go the same way, where they part."""
    groups, restore = [list(numbers)], MEMORY.keep_state() if len(numbers) > 1 else None
    while groups:
        group = groups.pop(0)
        MEMORY.begin_instances(group)
        try:
            function(*called)
        except Parting as parting:
            assert restore is not None
            restore()
            ways = np.unique(parting.values)
            groups = [
                [each for each, value in zip(group, parting.values, strict=True) if value == way] for way in ways
            ] + groups
        except TritonFinding:
            raise
        except Exception as error:
            raise TritonFinding(f"the interpreter stops: {type(error).__name__}: {error}", error=error) from error
        else:
            restore = MEMORY.keep_state() if groups else None


def _make_argument(argument: BoundArgument, numbers: Sequence[float], held: _Held) -> Any:
    if argument.kind != NUMBER:
        element = getattr(tl, TYPES[argument.type][0])
        return make_tensor(np.array([held[argument.kind][argument.place].start], np.uint64), tl.pointer_type(element))
    value = numbers[argument.place]
    if argument.type != WHOLE:
        return make_tensor(np.array([value], np.float32), tl.float32)
    is_wide = not -(2**31) <= value < 2**31
    return make_tensor(np.array([value], np.int64 if is_wide else np.int32), tl.int64 if is_wide else tl.int32)
