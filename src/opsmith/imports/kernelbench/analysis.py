"""One KernelBench file, made into a problem file: the whole way, in a confined worker."""

from __future__ import annotations

import contextlib
import re
import resource
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from opsmith.imports.foreign_code import CodeRefusalError
from opsmith.imports.kernelbench.axes import Sizes
from opsmith.imports.kernelbench.drafting import (
    FUNCTIONAL,
    LOADED,
    MOST_ARGUMENTS,
    ChosenSets,
    ProblemDraft,
    check_arguments,
    find_bounds,
    is_weight,
    write_signed_cases,
)
from opsmith.imports.kernelbench.examination import INPUT_PASSES, MOST_WEIGHTS, Examination, examine_module, run_copies
from opsmith.imports.kernelbench.sampling import (
    CPU,
    META,
    Instance,
    ModuleFailureError,
    ModuleRefusalError,
    Sample,
    list_leaves,
    open_module,
    sample_module,
)
from opsmith.imports.kernelbench.sizes import (
    AxisPlan,
    ModuleSampler,
    SizeVariation,
    WorkLimits,
    choose_bench,
    choose_sets,
    grow_sizes,
    keep_sound,
    shrink_sizes,
)
from opsmith.imports.kernelbench.source import ModuleSource, read_module
from opsmith.imports.serving import serve_requests
from opsmith.imports.trial import try_problem
from opsmith.problems.bindings import Bindings
from opsmith.problems.drawing import draw_case, draw_data, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.problem import CaseSpec, Problem
from opsmith.problems.reference import compute_expected
from opsmith.records import to_json

JUDGED = WorkLimits(bytes_moved=1 << 19, operations=25_000_000)  # of the base sizes, where verdicts are given
JUDGED_FLOOR = 8
LARGEST = WorkLimits(bytes_moved=64 << 20, operations=4_000_000_000)  # of what cannot be made smaller
MOST_DOUBLINGS = 12  # of sizes that are examples
SMALL = (64, 32, 16)  # what sizes are halved to where torch's meta device does not do
SLOW_S = 0.15  # a sample on the meta device that takes longer is taken on numbers, where these are few
_RECURRENT = re.compile(r"\bnn\.(?:GRU|LSTM|RNN)\b")  # for which the meta device takes every step in Python
OTHER_VALUES = "as a function of its weights it gives others"
CLOSE = 1e-3  # relative to the largest output: the reference beside the module itself


def answer_request(request: Mapping[str, Any]) -> dict[str, Any]:
    """Of a module: a draft, or why there is none. Of a drafted problem file: what it does at sizes (`trial`)."""
    return try_problem(request) if "sets" in request else analyse_module(request)


def analyse_module(request: Mapping[str, Any]) -> dict[str, Any]:
    """A draft, or why there is none: {"refusal": ...}."""
    limits = WorkLimits(request["max_bytes"], request["max_operations"])
    try:
        answer = _ModuleAnalysis(
            read_module(request["text"]), request["name"], request["group"], limits, request.get("grows", False)
        ).describe_problem()
    except (ModuleRefusalError, CodeRefusalError, ModuleFailureError) as error:
        answer = {"refusal": f"{error}{_explain_device(str(error))}"}
    except TaskFault as fault:
        answer = {"refusal": f"its reference: {fault.diagnostic.given}"}
    except RuntimeError as error:  # of torch, at sizes that it cannot hold
        answer = {"refusal": f"it could not be examined: {str(error).splitlines()[0][:200]}"}
    except MemoryError:
        answer = {"refusal": "it needs more memory than a worker has"}
    return {**answer, "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _explain_device(message: str) -> str:
    return "; it asks for cuda, which is not there" if "CUDA" in message or "cuda" in message else ""


class _ModuleAnalysis:
    """`grows`: the file's own sizes are examples, and larger ones are timed."""

    def __init__(self, source: ModuleSource, name: str, group: str, limits: WorkLimits, grows: bool) -> None:
        self._source, self._name, self._group, self._limits, self._grows = source, name, group, limits, grows
        self._own = {constant.name: constant.value for constant in source.constants}
        self._device = META
        self._sampler = ModuleSampler(self._take_sample)
        self._warnings = ["it asks for cuda: its tensors are on the processor"] if source.is_moved else []

    def _take_sample(self, sizes: Sizes) -> Sample | None:
        try:
            return sample_module(self._source, sizes, self._device)
        except (ModuleFailureError, ModuleRefusalError):
            return None

    def describe_problem(self) -> dict[str, Any]:
        start = self._find_start()
        large = shrink_sizes(self._sampler, start, self._limits)
        sample = self._need_sample(large)
        if sample.parameters > MOST_WEIGHTS:
            raise ModuleRefusalError(f"{sample.parameters} parameters; expected at most {MOST_WEIGHTS}")
        if self._limits.measure_excess(sample) > 2:
            size = f"{sample.bytes_moved / 2**20:.0f} MiB and {sample.operations:.1e} operations"
            if LARGEST.measure_excess(sample) > 1:
                raise ModuleRefusalError(f"too large: {size} at the smallest sizes that work")
            self._warnings.append(f"larger than was asked for: {size} at the smallest sizes that work")
        base = shrink_sizes(self._sampler, large, JUDGED, JUDGED_FLOOR)
        return self._describe_at(base, start, large)

    def _describe_at(self, base: Sizes, start: Sizes, large: Sizes) -> dict[str, Any]:
        """At these base sizes, or at larger ones where so small ones hide what the module does."""
        warnings = list(self._warnings)
        try:
            return self._describe_soundly(base, start, large)
        except ModuleRefusalError as error:
            if OTHER_VALUES not in str(error):
                raise
            for sizes in self._list_other_sizes(base):
                self._warnings = list(warnings)
                with contextlib.suppress(ModuleRefusalError, ModuleFailureError, TaskFault):
                    return self._describe_soundly(sizes, start, large)
            raise

    def _describe_soundly(self, base: Sizes, start: Sizes, large: Sizes) -> dict[str, Any]:
        base, facts = self._restore_constants(large, *self._examine_soundly(base))
        if not check_arguments([*(tensor.keys for tensor in facts.inputs), *(leaf.keys for leaf in facts.constants)]):
            raise ModuleRefusalError("its inputs lie in a mapping; expected tensors, tuples and lists")
        self._use_numbers_if_slow(base)
        weights = {f"weight {state.name}" for state in facts.state if is_weight(state)}
        rigid = weights if len(weights) > MOST_ARGUMENTS else ()
        plan = SizeVariation(self._sampler, base, self._list_unused(facts, base), rigid).plan_sizes()
        facts = self._settle_bounds(facts, plan, base)
        draft = self._draft_problem(plan, facts, self._choose_sets(plan, base, large))
        return self._describe_draft(draft, plan, start, large)

    # -- sizes

    def _find_start(self) -> Sizes:
        """Its own sizes, or smaller ones where only numbers say what it does. Raises ModuleFailureError."""
        if _RECURRENT.search(self._source.text):
            return self._find_small_start()
        try:
            sample_module(self._source, self._own, META)
        except ModuleFailureError as error:
            if not error.needs_data:
                raise
            return self._find_small_start()
        return self._own

    def _find_small_start(self) -> Sizes:
        self._device = CPU
        last: Exception = ModuleRefusalError("no sizes at which it works")
        for limit in SMALL:
            sizes = {name: _halve_until(size, limit) for name, size in self._own.items()}
            try:
                sample_module(self._source, sizes, CPU)
            except ModuleFailureError as failure:
                last = failure
                continue
            return sizes
        raise last

    def _need_sample(self, sizes: Sizes) -> Sample:
        sample = self._sampler.sample(sizes)
        if sample is None:
            sample_module(self._source, sizes, self._device)
            raise ModuleRefusalError("it fails now and then")
        return sample

    def _use_numbers_if_slow(self, base: Sizes) -> None:
        """Recurrent networks take seconds on the meta device, and milliseconds on few numbers."""
        if self._sampler.latest > SLOW_S:
            self._device = CPU
            self._sampler = ModuleSampler(self._take_sample)
            self._need_sample(base)

    def _choose_sets(self, plan: AxisPlan, base: Sizes, large: Sizes) -> ChosenSets:
        fixed = {name: base[name] for name in plan.fixed}
        limit = WorkLimits(8 * JUDGED.bytes_moved, 8 * JUDGED.operations)
        shapes, large = choose_sets(self._sampler, plan, base, limit), {**large, **fixed}
        if self._grows:
            large = grow_sizes(self._sampler, plan, base, self._limits, MOST_DOUBLINGS)
            shapes |= keep_sound(self._sampler, plan, {"larger": _halve_sizes(plan, base, large)}, self._limits, [base])
        bench = choose_bench(self._sampler, plan, base, large, self._limits, self._grows)
        return ChosenSets(base, shapes, bench if len(bench) >= 3 else {})

    def _restore_constants(self, large: Sizes, base: Sizes, facts: Examination) -> tuple[Sizes, Examination]:
        """With the file's own value of every integer that no tensor of the problem shows, as far as these are sound."""
        unused, restored = self._list_unused(facts, base), base
        for name, size in base.items():
            if size != self._own[name] and self._device == META and self._is_unseen(name, unused, restored, large):
                restored = {**restored, name: self._own[name]}
        if restored == base:
            return base, facts
        second = examine_module(self._source, restored)
        return (base, facts) if _is_degenerate(second) and not _is_degenerate(facts) else (restored, second)

    def _is_unseen(self, name: str, unused: Collection[str], base: Sizes, large: Sizes) -> bool:
        """Whether the file's own value changes no tensor of the problem, and too little of its work to be too large."""
        change = {name: self._own[name]}
        sample, largest = (self._sampler.sample({**sizes, **change}) for sizes in (base, large))
        if sample is None or largest is None or self._limits.measure_excess(largest) > 1:
            return False
        shapes = self._need_sample(base).shapes
        return all(sample.shapes.get(label) == shape for label, shape in shapes.items() if label not in unused)

    def _list_unused(self, facts: Examination, base: Sizes) -> set[str]:
        """The labels of state that no program is given."""
        weights = {f"weight {state.name}" for state in facts.state if is_weight(state)}
        return {label for label in self._need_sample(base).shapes if label.startswith("weight ")} - weights

    # -- facts

    def _examine_soundly(self, base: Sizes) -> tuple[Sizes, Examination]:
        """At sizes at which its answers are not degenerate, where smaller ones made them so."""
        facts = examine_module(self._source, base)
        if not _is_degenerate(facts):
            return base, facts
        for sizes in self._list_other_sizes(base):
            try:
                second = examine_module(self._source, sizes)
            except (ModuleFailureError, ModuleRefusalError):
                continue
            if not _is_degenerate(second):
                return sizes, second
        return base, facts

    def _list_other_sizes(self, base: Sizes) -> list[Sizes]:
        """Sizes less small; numbers of groups and the like made smaller as well."""
        sample = self._need_sample(base)
        most = max(32.0, 8 * JUDGED.measure_excess(sample))
        choices: list[Sizes] = []
        for factor in (2, 4):
            sizes = {name: min(size * factor, self._own[name]) for name, size in base.items()}
            if (larger := self._sampler.sample(sizes)) and JUDGED.measure_excess(larger) <= most:
                choices.append(sizes)
        for name, size in base.items():
            for divisor in (8, 4, 2):
                sizes = {**base, name: size // divisor}
                is_whole = size % divisor == 0 and size > divisor
                if is_whole and (smaller := self._sampler.sample(sizes)) and smaller.shapes == sample.shapes:
                    choices.append(sizes)
        return choices

    def _settle_bounds(self, facts: Examination, plan: AxisPlan, base: Sizes) -> Examination:
        """Bounds of randint that move with sizes are left to the module's own code."""
        drawn = [tensor for tensor in facts.inputs if find_bounds(tensor) is not None]
        if not drawn:
            return facts
        moving = set()
        for name in plan.dims:
            sizes = {**base, name: base[name] * 2}
            if self._sampler.sample(sizes) is None:
                continue
            moved = examine_module(self._source, sizes)
            pairs = zip(facts.inputs, moved.inputs, strict=True)
            moving |= {own.keys for own, tensor in pairs if find_bounds(own) != find_bounds(tensor)}
        inputs = [replace(tensor, generator=None) if tensor.keys in moving else tensor for tensor in facts.inputs]
        return replace(facts, inputs=inputs)

    # -- the problem

    def _draft_problem(self, plan: AxisPlan, facts: Examination, sets: ChosenSets) -> ProblemDraft:
        """The first style of reference that gives the module's own outputs. Raises ModuleRefusalError and TaskFault."""
        self._warnings += facts.warnings
        difference = ""
        for style in (FUNCTIONAL, LOADED):
            draft = ProblemDraft(self._name, self._source, plan, facts, sets, style, self._group)
            difference = self._compare_reference(draft)
            if not difference:
                problem = draft.file.problem
                running = {
                    name: sizes for name, sizes in sets.shapes.items() if _runs_at(problem, problem.shapes[name])
                }
                sets = replace(sets, shapes=running)  # without those of which the reference makes nothing
                cases = self._add_cases(problem)
                return ProblemDraft(self._name, self._source, plan, facts, sets, style, self._group, cases)
        raise ModuleRefusalError(difference)

    def _compare_reference(self, draft: ProblemDraft) -> str:
        """How the reference differs from the module on the same numbers; "": it does not."""
        problem = draft.file.problem
        declared = draw_data(problem, {}, 1)
        expected = compute_expected(problem, widen_data(problem, declared, 1))
        instance = open_module(self._source, draft.base, CPU, seed=7)
        _load_numbers(instance, draft, declared)
        outputs = [leaf.value for leaf in run_copies(instance)]
        for output, (wide,) in zip(outputs, expected, strict=True):
            if wide.is_floating_point() and not _is_close(output, wide):
                return f"{OTHER_VALUES}: is a random tensor no parameter and no buffer?"
        return ""

    def _add_cases(self, problem: Problem) -> tuple[CaseSpec, ...]:
        """A hand-made input where only its own data lets an input pass as the output."""
        warning = f"degenerate: {INPUT_PASSES}"
        cases = write_signed_cases(problem) if warning in self._warnings else ()
        if not cases or not _changes_inputs(replace(problem, cases=cases)):
            return ()
        changed = f"{INPUT_PASSES} for what it draws: a case with numbers of both signs was added"
        self._warnings = [changed if text == warning else text for text in self._warnings]
        return cases

    def _describe_draft(self, draft: ProblemDraft, plan: AxisPlan, start: Sizes, large: Sizes) -> dict[str, Any]:
        if len(draft.file.problem.bench) < 3:
            self._warnings.append("its sizes do not vary enough for three sizes to be timed")
        own = self._sampler.sample(start) if start == self._own else None
        varying = {*draft.dims, *(name for name, dim in plan.ties.items() if dim in draft.dims)}
        fixed = [name for name, size in self._own.items() if size > 1 and name not in varying]
        changed = {name: draft.base[name] for name in fixed if draft.base[name] != self._own[name]}
        constants = ", ".join(f"{name} is {size}, not {self._own[name]}" for name, size in changed.items())
        self._warnings += [f"another constant: {constants}"] if constants else []
        self._warnings += [f"{name} is {dim}" for name, dim in plan.ties.items() if dim in draft.dims]
        return {
            "text": write_problem(draft.file),
            "source": to_json(draft.provenance),
            "dims": draft.dims,
            "fixed": fixed,
            "base": dict(draft.base),
            "warnings": self._warnings,
            "own_bytes": own.bytes_moved if own is not None else None,
            "own_operations": own.operations if own is not None else None,
            "large_bytes": self._need_sample(large).bytes_moved,
            "large_operations": self._need_sample(large).operations,
            "is_shrunk": {**start, **large} != self._own,
        }


def _halve_until(size: int, limit: int) -> int:
    while size > limit:
        size //= 2
    return size


def _halve_sizes(plan: AxisPlan, base: Sizes, large: Sizes) -> Sizes:
    """Odd multiples of the grains, halfway from the base sizes to these, as powers go."""
    middle = {name: round((base[name] * large[name]) ** 0.5) for name in plan.dims}
    grains = {name: plan.grains.get(name, 1) for name in plan.dims}
    return {**base, **{name: grain * (max(1, middle[name] // grain) | 1) for name, grain in grains.items()}}


def _is_degenerate(facts: Examination) -> bool:
    return any(warning.startswith("degenerate") for warning in facts.warnings)


def _load_numbers(instance: Instance, draft: ProblemDraft, bindings: Bindings) -> None:
    """The draw's weights and inputs in place of the module's own."""
    with torch.no_grad():
        for name, keys in draft.provenance.weights.items():
            own = [instance.state[key] for key in keys.split()]
            parts = torch.split(bindings.input_data[name].reshape(-1), [tensor.numel() for tensor in own])
            for tensor, part in zip(own, parts, strict=True):
                tensor.copy_(part.view(tensor.shape))
    numbers = [bindings.input_data[tensor.name] for tensor in draft.file.problem.inputs]
    leaves = [leaf.value for leaf in list_leaves(instance.arguments) if isinstance(leaf.value, Tensor)]
    for leaf, number in zip(leaves, numbers, strict=False):
        leaf.copy_(number)


def _is_close(output: Any, wide: Tensor) -> bool:
    if not isinstance(output, Tensor) or output.shape != wide.shape:
        return False
    scale = float(wide.nan_to_num(posinf=0.0, neginf=0.0).abs().max()) if wide.numel() else 0.0
    allowed = max(CLOSE, 64 * torch.finfo(output.dtype).eps) * (scale + 1e-30)
    return torch.allclose(output.double(), wide, rtol=CLOSE, atol=allowed, equal_nan=True)


def _changes_inputs(problem: Problem) -> bool:
    """Whether the reference runs on the problem's case, and gives something else than any input."""
    try:
        _, wide = draw_case(problem, {}, 0)
        ((expected,), *_) = compute_expected(problem, wide)
    except TaskFault:
        return False
    tensors = [tensor for tensor in wide.input_data.values() if tensor.shape == expected.shape]
    return not any(_is_close(tensor, expected) for tensor in tensors)


def _runs_at(problem: Problem, sizes: Sizes) -> bool:
    try:
        compute_expected(problem, widen_data(problem, draw_data(problem, sizes, 1), 1))
    except TaskFault:
        return False
    return True


serve_modules = partial(serve_requests, answer_request)
