"""Does every function matter? The file's own program must be refused when one of its functions does nothing.

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

from opsmith.records import Outcome, Task
from opsmith.targets.audited import Finding, Judge, State
from opsmith.targets.step import STEP
from opsmith.targets.step.audit.material import Material
from opsmith.targets.step.execution.authored import compile_body
from opsmith.targets.step.execution.precision import default_dtype, is_floating, torch_dtype
from opsmith.targets.step.execution.slots import holds_multihot
from opsmith.targets.step.ir import write_spec
from opsmith.targets.step.language.spec import Fn, TaskSpec
from opsmith.targets.step.language.types import DType, Field, fields_of, layout

SAMPLES = 4  # elements on which a fn is compared with one that does nothing


@dataclass(frozen=True)
class Dropped:
    """A fn that does not do its work, and what to call that."""

    fn: Fn
    what: str
    may_pass: bool = False  # the task need not tell it apart


def check_functions(material: Material, task: Task, source: str | None, judge: Judge) -> Iterator[Finding]:
    """A finding per fn that may be dropped, and notes; or why nothing could be dropped."""
    if source is None:
        found = "needs an `impl` that passes"
        yield Finding("functions", State.UNCHECKED, "nothing", found, "an `impl` that passes")
        return
    fns, used = material.spec.fns, used_fns(task, source)
    dropped = [
        finding for fn in fns if fn.func_name in used for finding in _findings(material, task, source, fn, judge)
    ]
    yield from dropped
    yield from (_unused(fn) for fn in fns if fn.func_name not in used)
    if all(finding.state is State.NOTE for finding in dropped):
        yield Finding("functions", State.FINE, f"{len(used)} needed")


def used_fns(task: Task, source: str) -> frozenset[str]:
    """The func_names that a right program applies."""
    graph = STEP.check(task, source).program.report.graph
    return frozenset(node.fn.func_name for node in graph.nodes if node.fn is not None)


def _unused(fn: Fn) -> Finding:
    found = f"the file's own program does not use {fn.func_name}"
    return Finding("functions", State.NOTE, fn.func_name, found, "fine if it is there to mislead; else remove it")


def _findings(material: Material, task: Task, source: str, fn: Fn, judge: Judge) -> Iterator[Finding]:
    """What passes without the fn's work, or a note that there was no way to leave it out."""
    judged = 0
    for dropped in (*dropped_forms(fn), *_exchanged_forms(material.spec, fn)):
        if _same_on_samples(material, fn, dropped.fn):
            continue
        verdict = judge(_with_fn(material.spec, task, dropped.fn), source)
        judged += verdict.outcome is not Outcome.UNJUDGED
        if verdict.passed:
            yield _survivor(dropped, verdict.trials)
    if not judged:
        found = "it returns what it is given, or cannot be run without its work: whether it matters was not seen"
        yield Finding("functions", State.NOTE, fn.func_name, found)


def _survivor(dropped: Dropped, trials: int) -> Finding:
    tried = f"{dropped.fn.func_name} {dropped.what}"
    if dropped.may_pass:
        found = f"passes all {trials} trials: no trial gives it two elements that count"
        return Finding("functions", State.NOTE, tried, found, "fine if the task is so; else `cases` with more")
    found = f"the file's own program passes all {trials} trials"
    remedy = f"data or `cases` for which {dropped.fn.func_name} matters"
    return Finding("functions", State.FAULTY, tried, found, remedy)


def _with_fn(spec: TaskSpec, task: Task, fn: Fn) -> Task:
    """The task with this fn in place of its namesake; the reference does not see it."""
    fns = tuple(fn if other.func_name == fn.func_name else other for other in spec.fns)
    return replace(task, text=write_spec(replace(spec, fns=fns)))


# -- fns that do less

_ZEROS = """
def work(state, input):
{body}
return [torch.zeros_like(torch.as_tensor(field)) for field in work(None, input)]
"""


def dropped_forms(fn: Fn) -> Iterator[Dropped]:
    """The fn as it would be if it did nothing."""
    if fn.init is None:
        for places in _matching_fields(fn):
            chosen = ", ".join(f"input[{at}]" for at in places)
            yield _dropped(fn, f"return [{chosen}]", f"returns {chosen}")
        yield _dropped(fn, _ZEROS.format(body=textwrap.indent(fn.apply, "    ")), "returns zeros")
        return
    kept = ", ".join(f"state[{at}]" for at in range(len(fn.init)))
    yield _dropped(fn, f"return [{kept}]", "returns its state unchanged")
    yield replace(_dropped(fn, _forgetting(fn, fn.init), "forgets its state"), may_pass=True)


def _exchanged_forms(spec: TaskSpec, fn: Fn) -> Iterator[Dropped]:
    """The fn with the body of each other one that could stand in its place."""
    for other in spec.fns:
        if other is not fn and _kind(other) == _kind(fn):
            yield _dropped(fn, other.apply, f"does the work of {other.func_name}")


def _kind(fn: Fn) -> tuple[DType, DType, bool]:
    return fn.input_dtype, fn.output_dtype, fn.stateful


def _forgetting(fn: Fn, init: Sequence[float]) -> str:
    starts = ", ".join(f"float('{value}')" for value in init)
    return f"state = [torch.full_like(field, value) for field, value in zip(state, [{starts}])]\n{fn.apply}"


def _dropped(fn: Fn, body: str, what: str) -> Dropped:
    return Dropped(replace(fn, apply=body.strip("\n") + "\n"), what)


def _matching_fields(fn: Fn) -> Iterator[Sequence[int]]:
    """Input fields that have the types of the output: every choice for one field, the first for several."""
    given = fields_of(fn.input_dtype)
    choices = [[at for at, field in enumerate(given) if field == wanted] for wanted in fields_of(fn.output_dtype)]
    if len(choices) == 1:
        yield from ((at,) for at in choices[0])
    elif all(choices):
        yield [places[0] for places in choices]


# -- is there any work to drop?


def _same_on_samples(material: Material, fn: Fn, other: Fn) -> bool:
    """Whether the two agree on random elements."""
    bindings = material.bindings(material.wide[0])
    bodies = [compile_body(each.apply, each.func_name).bind(bindings.namespace) for each in (fn, other)]
    generator = torch.Generator().manual_seed(0)
    with default_dtype(torch.float64), torch.no_grad():
        for _ in range(SAMPLES):
            element, state = (
                [_sample(field, bindings.sizes, generator) for field in fields_of(dtype)]
                for dtype in (fn.input_dtype, fn.output_dtype)
            )
            if not _agree(*([_value(body, state, element) for body in bodies])):
                return False
    return True


def _sample(field: Field, sizes: Mapping[str, int], generator: torch.Generator) -> Tensor:
    """Normal numbers for floats, 0 and 1 for everything else."""
    shape = layout(field, sizes)
    if is_floating(field) and not holds_multihot(field):
        return torch.randn(shape, generator=generator, dtype=torch.float64)
    return torch.randint(0, 2, shape, generator=generator).to(torch_dtype(field, wide=True))


def _value(body: Callable[[Any, Any], Any], state: Sequence[Tensor], element: Sequence[Tensor]) -> list[Tensor] | None:
    """What the body returns; None where it fails, which is no work that could be left out."""
    try:
        returned = body([field.clone() for field in state], [field.clone() for field in element])
        return [torch.as_tensor(field) for field in returned]
    except Exception:  # an author's code, on numbers it may not be made for
        return None


def _agree(first: list[Tensor] | None, second: list[Tensor] | None) -> bool:
    if first is None or second is None or len(first) != len(second):
        return False
    return all(x.shape == y.shape and _equal(x, y) for x, y in zip(first, second, strict=True))


def _equal(first: Tensor, second: Tensor) -> bool:
    """Entry by entry; NaN, as a root of a negative number gives it, equals NaN."""
    return torch.allclose(first.double(), second.double(), rtol=0, atol=0, equal_nan=True)
