"""Functions: whether each matters. The file's own program must be refused when one of its functions does nothing.

A stateless fn that does nothing returns one of its input fields, where the types allow it, or zeros; a stateful one
returns its state. A fn whose whole work is that (it selects a field, say) has nothing to drop. Nor may a fn do the work
of another one of its types. Beside these stands a weaker question, whose answer is a note: may a stateful fn forget
what came before?
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from opsmith.problems.audit.material import Material
from opsmith.problems.bindings import Bindings
from opsmith.problems.precision import default_dtype
from opsmith.records import Outcome, Task
from opsmith.targets.audit import Finding, Judge, State
from opsmith.targets.step.execution.bodies import compile_body
from opsmith.targets.step.execution.data import StepDraw
from opsmith.targets.step.execution.precision import is_floating, torch_dtype
from opsmith.targets.step.ir import write_spec
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.spec import FnSpec, TaskSpec
from opsmith.targets.step.language.types import DType, Field, element_shape, fields_of, multihot_of

SAMPLES = 4  # elements on which a fn is compared with one that does nothing


@dataclass(frozen=True)
class DroppedFn:
    """A fn that does not do its work, and what to call that."""

    fn: FnSpec
    what: str
    may_pass: bool = False  # the task need not tell it apart


def check_functions(
    spec: TaskSpec, material: Material[StepDraw], task: Task, source: str | None, judge: Judge
) -> Iterator[Finding]:
    """A finding per fn that may be dropped, and notes; or why nothing could be dropped."""
    if source is None:
        reason = "needs an `impl` that passes"
        yield Finding("functions", State.UNCHECKED, "nothing", reason, "an `impl` that passes")
        return
    graph = check_program(spec, source).graph
    assert graph is not None  # its program passed
    used = {node.fn.func_name for node in graph.nodes if node.fn is not None}
    trial = _Trial(spec, task, source, judge, material.wide_trials[0].data)
    findings = [finding for fn in spec.fns if fn.func_name in used for finding in trial.drop_fn(fn)]
    yield from findings
    yield from (_note_unused(fn) for fn in spec.fns if fn.func_name not in used)
    if all(finding.state is State.NOTE for finding in findings):
        yield Finding("functions", State.FINE, f"{len(used)} needed")


def _note_unused(fn: FnSpec) -> Finding:
    reason = f"the file's own program does not use {fn.func_name}"
    return Finding("functions", State.NOTE, fn.func_name, reason, "fine if it is there to mislead; else remove it")


@dataclass(frozen=True)
class _Trial:
    """The file's own program, judged with functions that do not do their work."""

    spec: TaskSpec
    task: Task
    source: str
    judge: Judge
    bindings: Bindings  # of one draw in float64

    def drop_fn(self, fn: FnSpec) -> Iterator[Finding]:
        """What passes without the fn's work, or a note that there was no way to leave it out."""
        judged_count = 0
        for dropped in (*list_dropped_forms(fn), *_list_exchanged_forms(self.spec, fn)):
            if _agrees_on_samples(self.bindings, fn, dropped.fn):
                continue
            verdict = self.judge(self._replace_fn(dropped.fn), self.source)
            judged_count += verdict.outcome is not Outcome.UNJUDGED
            if verdict.passed:
                yield _describe_survivor(dropped, verdict.trials)
        if not judged_count:
            reason = "it returns what it is given, or cannot be run without its work: whether it matters was not seen"
            yield Finding("functions", State.NOTE, fn.func_name, reason)

    def _replace_fn(self, fn: FnSpec) -> Task:
        """The task with this fn in place of its namesake; the reference does not see it."""
        fns = tuple(fn if own.func_name == fn.func_name else own for own in self.spec.fns)
        return replace(self.task, text=write_spec(replace(self.spec, fns=fns)))


def _describe_survivor(dropped: DroppedFn, trials: int) -> Finding:
    tried = f"{dropped.fn.func_name} {dropped.what}"
    if dropped.may_pass:
        reason = f"passes all {trials} trials: no trial gives it two elements that count"
        return Finding("functions", State.NOTE, tried, reason, "fine if the task is so; else `cases` with more")
    reason = f"the file's own program passes all {trials} trials"
    remedy = f"data or `cases` for which {dropped.fn.func_name} matters"
    return Finding("functions", State.FAULTY, tried, reason, remedy)


# -- fns that do less

_ZEROS = """
def work(state, input):
{body}
return [torch.zeros_like(torch.as_tensor(field)) for field in work(None, input)]
"""


def list_dropped_forms(fn: FnSpec) -> Iterator[DroppedFn]:
    """The fn as it would be if it did nothing."""
    if fn.init is None:
        for numbers in _match_fields(fn):
            fields = ", ".join(f"input[{number}]" for number in numbers)
            yield _change_body(fn, f"return [{fields}]", f"returns {fields}")
        yield _change_body(fn, _ZEROS.format(body=textwrap.indent(fn.apply, "    ")), "returns zeros")
        return
    fields = ", ".join(f"state[{number}]" for number in range(len(fn.init)))
    yield _change_body(fn, f"return [{fields}]", "returns its state unchanged")
    yield replace(_change_body(fn, _write_forgetful(fn, fn.init), "forgets its state"), may_pass=True)


def _list_exchanged_forms(spec: TaskSpec, fn: FnSpec) -> Iterator[DroppedFn]:
    """The fn with the body of each other one that could stand in its place."""
    for stand_in in spec.fns:
        if stand_in is not fn and _signature_of(stand_in) == _signature_of(fn):
            yield _change_body(fn, stand_in.apply, f"does the work of {stand_in.func_name}")


def _signature_of(fn: FnSpec) -> tuple[DType, DType, bool]:
    return fn.input_dtype, fn.output_dtype, fn.stateful


def _write_forgetful(fn: FnSpec, init: Sequence[float]) -> str:
    starts = ", ".join(f"float('{value}')" for value in init)
    return f"state = [torch.full_like(field, value) for field, value in zip(state, [{starts}])]\n{fn.apply}"


def _change_body(fn: FnSpec, body: str, what: str) -> DroppedFn:
    return DroppedFn(replace(fn, apply=body.strip("\n") + "\n"), what)


def _match_fields(fn: FnSpec) -> Iterator[Sequence[int]]:
    """Input fields that have the types of the output: every choice for one field, the first for several."""
    inputs, outputs = fields_of(fn.input_dtype), fields_of(fn.output_dtype)
    choices = [[number for number, field in enumerate(inputs) if field == output] for output in outputs]
    if len(choices) == 1:
        yield from ((number,) for number in choices[0])
    elif all(choices):
        yield [numbers[0] for numbers in choices]


# -- is there any work to drop?


def _agrees_on_samples(bindings: Bindings, fn: FnSpec, changed: FnSpec) -> bool:
    """Whether the two agree on random elements."""
    bodies = [compile_body(each.apply, each.func_name).bind_names(bindings.namespace) for each in (fn, changed)]
    generator = torch.Generator().manual_seed(0)
    with default_dtype(torch.float64), torch.no_grad():
        for _ in range(SAMPLES):
            element, state = (
                [_draw_field(field, bindings.sizes, generator) for field in fields_of(dtype)]
                for dtype in (fn.input_dtype, fn.output_dtype)
            )
            if not _are_equal(*([_run_body(body, state, element) for body in bodies])):
                return False
    return True


def _draw_field(field: Field, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor:
    """Normal numbers for floats, 0 and 1 for everything else."""
    shape = element_shape(field, sizes)
    if is_floating(field) and multihot_of(field) is None:
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.randint(0, 2, shape, generator=generator).to(torch_dtype(field, wide=True))


def _run_body(
    body: Callable[[Any, Any], Any], state: Sequence[Tensor], element: Sequence[Tensor]
) -> list[Tensor] | None:
    """What the body returns; None where it fails, which is no work that could be left out."""
    try:
        returned = body([field.clone() for field in state], [field.clone() for field in element])
        return [torch.as_tensor(field) for field in returned]
    except Exception:  # an author's code, on numbers it may not be made for
        return None


def _are_equal(first: list[Tensor] | None, second: list[Tensor] | None) -> bool:
    if first is None or second is None or len(first) != len(second):
        return False
    return all(x.shape == y.shape and _have_equal_entries(x, y) for x, y in zip(first, second, strict=True))


def _have_equal_entries(first: Tensor, second: Tensor) -> bool:
    """Entry by entry; NaN, as a root of a negative number gives it, equals NaN."""
    return torch.allclose(first.double(), second.double(), rtol=0, atol=0, equal_nan=True)
