"""What the outputs of all passes say of a program: is it right, and does it depend on what it should not?

Every pass is compared with the expected values as `problems.compare` does it. Passes of one artefact must agree to the
last bit where sums have one order: one thread, and no flags that let a compiler reorder. Imports torch: in a task's
worker only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from opsmith.problems.compare import Agreement, Clues, compare_outputs, take_larger
from opsmith.problems.precision import dtype_of
from opsmith.problems.problem import ArrayType
from opsmith.records import WHOLE_RUN, Diagnostic, Stage
from opsmith.targets.native.layout import Damage, LayoutError, Overstaffing, read_outputs
from opsmith.targets.native.task import STATE
from opsmith.targets.native.trials import NativeTrialData
from opsmith.targets.trial import TrialResult

USER_CALLS = "calls as a user makes them: again and again, in memory of the heap that is used again"
_HUGE = {"fp16": 3e4, "int32": 2**30, "int64": 2**30}  # hardly an output; canaries and first values of memory are
_HUGE_FLOAT = 1e29

Results = list[list[Tensor]]  # per output and tensor, draws as first axis


def judge_outputs(name: str, data: NativeTrialData, outputs: bytes | memoryview) -> TrialResult:
    """The result of a trial of this name. Raises TaskFault."""
    try:
        passes = read_outputs(data.layout, outputs)
    except LayoutError as error:
        remedy = "leave descriptors and memory that are not the program's alone"
        return TrialResult(Stage.RUN, (Diagnostic("RUN", name, str(error), WHOLE_RUN, remedy),))
    if isinstance(passes, Damage):
        return TrialResult(Stage.RUN, (_describe_damage(data, passes),))
    if isinstance(passes, Overstaffing):
        return TrialResult(Stage.RUN, (_describe_overstaffing(data, passes),))
    return _compare_passes(data, [bytes(pass_) for pass_ in passes])


def judge_pass(name: str, data: NativeTrialData, outputs: bytes) -> TrialResult:
    """The result of a trial whose program ran once on every draw. Raises TaskFault."""
    expected = data.layout.outputs_size
    if len(outputs) != expected:
        finding = Diagnostic("RUN", name, f"{len(outputs)} bytes of outputs", f"{expected} bytes", "write every output")
        return TrialResult(Stage.RUN, (finding,))
    agreement = _compare_pass(data, outputs)
    return TrialResult(Stage.MATCH, agreement.errors, agreement.max_abs_error)


def judge_calls(name: str, data: NativeTrialData, outputs: bytes) -> TrialResult:
    """The result of calls that a process of the program's own made: `deployed`. Raises TaskFault."""
    size = data.layout.outputs_size
    calls = [outputs[number * size : (number + 1) * size] for number in range(len(outputs) // size)]
    agreements = [_compare_pass(data, call) for call in dict.fromkeys(calls)]
    errors = next((agreement.errors for agreement in agreements if agreement.errors), ())
    if errors or (data.options.has_order and len(set(calls)) > 1):
        given = "other outputs than when it was judged, or than at the call before"
        finding = Diagnostic(STATE.kind, USER_CALLS, given, STATE.expected, STATE.remedy)
        return TrialResult(Stage.MATCH, (finding, *errors))
    return TrialResult(Stage.MATCH)


def _compare_passes(data: NativeTrialData, passes: Sequence[bytes]) -> TrialResult:
    distinct = list(dict.fromkeys(passes))
    agreements = [_compare_pass(data, outputs) for outputs in distinct]
    worst: float | None = None
    for agreement in agreements:
        worst = agreement.max_abs_error if worst is None else take_larger(worst, agreement.max_abs_error or 0.0)
    errors = next((agreement.errors for agreement in agreements if agreement.errors), ())
    findings = (*_list_disagreements(data, passes, bool(errors)), *errors)
    return TrialResult(Stage.MATCH, findings, worst, undecided=data.undecided)


def _compare_pass(data: NativeTrialData, outputs: bytes) -> Agreement:
    results = read_results(data, outputs)
    errors = tuple(_find_odd_bools(data, results))
    if errors:
        return Agreement(errors, None)
    rows = [
        [tensor.view(dtype_of(type_.dtype)) for tensor, type_ in zip(row, output.types, strict=True)]
        for output, row in zip(data.problem.outputs, results, strict=True)
    ]
    return compare_outputs(data.problem, data.limits, rows, data.label, clues=Clues(data.draws))


def read_results(data: NativeTrialData, outputs: bytes) -> Results:
    """The tensors of a pass; bools as bytes."""
    draws = len(data.draws)
    table = torch.frombuffer(bytearray(outputs), dtype=torch.uint8).view(draws, -1)
    sizes, start, rows = iter(data.layout.draws[0].outputs), 0, []
    for output in data.problem.outputs:
        row = []
        for type_ in output.types:
            size = next(sizes)
            row.append(_shape_tensor(table[:, start : start + size], type_, data))
            start += size
        rows.append(row)
    return rows


def _shape_tensor(numbers: Tensor, type_: ArrayType, data: NativeTrialData) -> Tensor:
    dtype = torch.uint8 if type_.dtype == "bool" else dtype_of(type_.dtype)
    return (
        numbers.clone(memory_format=torch.contiguous_format).view(dtype).view(len(numbers), *type_.shape_at(data.sizes))
    )


def _find_odd_bools(data: NativeTrialData, results: Results) -> Iterator[Diagnostic]:
    for output, row in zip(data.problem.outputs, results, strict=True):
        for name, type_, tensor in zip(output.tensor_names, output.types, row, strict=True):
            if type_.dtype == "bool" and bool((tensor > 1).any()):
                place = (tensor > 1).nonzero()[0].tolist()
                where = f"output {name} at index {place[1:]}, {data.label(place[0])}"
                yield Diagnostic("DATA", where, str(int(tensor[tuple(place)])), "0 or 1", "write 0 or 1 to bools")


# -- what a program depends on


def _list_disagreements(data: NativeTrialData, passes: Sequence[bytes], is_wrong: bool) -> Iterator[Diagnostic]:
    """One finding at most. Programs that differ within limits are sound where sums have no order."""
    kinds = data.layout.passes
    has_order = data.options.has_order
    for number in range(1, len(passes)):
        is_bound = has_order and kinds[number].variant == kinds[0].variant
        if passes[number] != passes[0] and (is_bound or is_wrong):
            finding = _describe_disagreement(data, passes[0], passes[number])
            if finding is not None:
                yield finding
                return


def _describe_disagreement(data: NativeTrialData, first: bytes, second: bytes) -> Diagnostic | None:
    """Where two passes differ first, and what may be behind it."""
    results = (read_results(data, first), read_results(data, second))
    for output, *rows in zip(data.problem.outputs, *results, strict=True):
        for name, type_, one, two in zip(output.tensor_names, output.types, *rows, strict=True):
            differing = (one != two) & ~(one.isnan() & two.isnan())
            if bool(differing.any()):
                place = differing.nonzero()[0].tolist()
                values = [tensor[tuple(place)].item() for tensor in (one, two)]
                where = f"output {name} ({type_.label}) at index {place[1:]}, {data.label(place[0])}"
                is_odd = any(_is_odd(value, type_) for value in values)
                return _explain_disagreement(data, where, values, is_odd)
    return None


def _is_odd(value: float, type_: ArrayType) -> bool:
    """Whether it looks like memory that nobody wrote to."""
    return not math.isfinite(value) or abs(value) > _HUGE.get(type_.dtype, _HUGE_FLOAT)


def _explain_disagreement(data: NativeTrialData, where: str, values: Sequence[float], is_odd: bool) -> Diagnostic:
    first, second = (f"{value:.9g}" if isinstance(value, float) else str(value) for value in values)
    given = f"{first} in one run, {second} in another, for the same inputs"
    words = data.options.disagreement
    if is_odd and words.memory_remedy:
        return Diagnostic("MEMORY", where, given, words.expected, words.memory_remedy)
    return Diagnostic(words.kind, where, given, words.expected, words.remedy)


def _describe_overstaffing(data: NativeTrialData, finding: Overstaffing) -> Diagnostic:
    return Diagnostic(
        "RUN",
        data.label(finding.draw),
        f"a team of {finding.threads} threads",
        f"at most {data.layout.threads}: the task's `threads`",
        "leave out num_threads, or ask for omp_get_max_threads() at most",
    )


def _describe_damage(data: NativeTrialData, damage: Damage) -> Diagnostic:
    """The finding on a write beside an output."""
    outputs = [pair for output in data.problem.outputs for pair in zip(output.tensor_names, output.types, strict=True)]
    name, type_ = outputs[damage.output]
    side = "behind its end" if damage.is_behind else "before its begin"
    distance = f"{damage.distance} bytes " if damage.distance else "right "
    shape = "x".join(map(str, type_.shape_at(data.sizes))) or "one number"
    return Diagnostic(
        "RUN",
        f"output {name} ({type_.label}), {data.label(damage.draw)}",
        f"a write {distance}{side}",
        f"writes to its {shape} entries",
        "check loop bounds and the last, incomplete group of a row; store full vectors only where they fit",
    )
