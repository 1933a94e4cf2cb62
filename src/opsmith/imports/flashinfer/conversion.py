"""A definition as a problem file, or the reason why it is none.

Axes that vary are dims; constant ones are written out, so that no shape set changes them. What a definition leaves open
(what whole numbers mean, which sizes run) is tried in a confined worker. Equal definitions and workloads give equal
problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.errors import TaskError
from opsmith.imports.flashinfer.constraints import translate_constraints
from opsmith.imports.flashinfer.data import (
    NORMAL,
    SMALL_NUMBERS,
    UNIFORM,
    NumberRange,
    choose_range,
    find_pointers,
    list_ranges,
    read_pointer,
    write_pointers,
)
from opsmith.imports.flashinfer.dataset import ReadDefinition, list_constants
from opsmith.imports.flashinfer.formats import Definition, FlashinferTensor, SafetensorsInput, ScalarInput
from opsmith.imports.flashinfer.freeing import choose_freed, free_axes, free_workloads
from opsmith.imports.flashinfer.names import ChosenNames, choose_name, choose_names
from opsmith.imports.flashinfer.reference import list_byte_casts, list_code_names, write_reference
from opsmith.imports.flashinfer.sizes import SizeRules, Sizes, choose_base, list_bench, list_shapes
from opsmith.imports.foreign_code import CodeRefusalError, check_foreign_code
from opsmith.problems.constraints import list_following
from opsmith.problems.dims import parse_dim
from opsmith.problems.dtypes import BYTES_BY_DTYPE, FLOATS, NAMES_BY_TORCH, NARROW_FLOATS
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import GENERATORS, ProblemFile, read_problem
from opsmith.problems.problem import ArrayType, InputTensor, OutputTensors, Problem, Provenance

_STYLES = ((NORMAL, False), (UNIFORM, False), (NORMAL, True), (UNIFORM, True))  # of floats; are pointers even?
CONSTANTS_FACTOR = 2  # how far constant axes alone may exceed the bytes that tensors are shrunk to

Try = Callable[[str, Sequence[Sizes]], list[str]]  # problem file and sizes -> what is wrong at each; "": nothing


class ImportRefusalError(ValueError):
    """A file that becomes no problem file; `str(error)` says why."""


@dataclass(frozen=True)
class Converted:
    """A definition as a problem file."""

    file: ProblemFile
    warnings: tuple[str, ...]
    bytes_from: int | None  # of all tensors at the first workload; None: there is none
    bytes_to: int


def convert_definition(read: ReadDefinition, source: Provenance, most_bytes: int, try_at: Try) -> Converted:
    """The problem file of a definition; `source` lacks what is found out here. Raises ImportRefusalError."""
    try:
        return _Conversion(read, source, most_bytes, try_at).convert_all()
    except CodeRefusalError as error:
        raise ImportRefusalError(f"reference: {error}") from None
    except TaskError as error:
        raise ImportRefusalError(str(error)) from None


@dataclass(frozen=True)
class _StyleTrial:
    """One way of drawing data, and what became of it."""

    data: str  # of floats
    is_even: bool  # pointers
    problem: Problem
    mistakes: Sequence[str]  # at each set; "": it runs there
    doubts: Sequence[str]  # of what was found by trying


class _Conversion:
    """One definition on its way."""

    def __init__(self, read: ReadDefinition, source: Provenance, most_bytes: int, try_at: Try) -> None:
        self._freed = choose_freed(read.definition, CONSTANTS_FACTOR * most_bytes // 2)
        self._definition: Definition = free_axes(read.definition, self._freed)
        self._workloads = free_workloads(read.workloads, self._freed)
        self._warnings: list[str] = list(read.warnings)
        self._source, self._most_bytes, self._try_at = source, most_bytes, try_at
        self._check_types()
        self._names: ChosenNames = choose_names(self._definition, list_code_names(read.definition))

    def convert_all(self) -> Converted:
        reference = write_reference(self._definition, self._names, self._freed.values())
        if any(list_byte_casts(check_foreign_code(self._definition.reference), is_last=False)):
            self._warnings.append("it rounds to fp8 on the way: right programs may differ where that rounding decides")
        constraints = self._list_constraints()
        rules = SizeRules(list(self._names.dims.values()), constraints, self._count_bytes)
        sets = [{name: workload.axes[axis] for axis, name in self._names.dims.items()} for workload in self._workloads]
        first = {self._names.dims[axis]: size for axis, size in self._freed.items()}
        base = choose_base(rules, sets[0] if sets else None, self._most_bytes, first)
        if base is None:
            raise ImportRefusalError(f"no sizes were found that keep {'; '.join(constraints)}")
        self._refuse_large(base)
        draft = self._draft_problem(reference, constraints, base)
        shapes = list_shapes(rules, base, self._most_bytes)
        draft = self._choose_data(draft, [base, *shapes.values()])
        bench = list_bench(rules, base, sets[1:], self._most_bytes)
        arguments = tuple(self._names.tensors[name] for name in self._definition.inputs)
        source = replace(self._source, arguments=arguments, sizes=sets[0] if sets and sets[0] != base else {})
        problem = replace(draft, shapes=self._keep_running(draft, shapes), source=source)
        problem = replace(problem, bench=self._keep_running(draft, bench))
        file = self._name_file(problem if len(problem.bench) > 2 else replace(problem, bench={}))
        own = self._count_bytes(sets[0]) if sets else None
        return Converted(read_problem(write_problem(file)), tuple(self._warnings), own, self._count_bytes(base))

    # -- what is refused

    def _check_types(self) -> None:
        for name, spec in {**self._definition.inputs, **self._definition.outputs}.items():
            if spec.dtype not in NAMES_BY_TORCH:
                raise ImportRefusalError(f"{name}: dtype {spec.dtype}; expected one of {', '.join(NAMES_BY_TORCH)}")
        if all(spec.shape is None for spec in self._definition.inputs.values()):
            raise ImportRefusalError("no input is a tensor")

    def _refuse_large(self, base: Sizes) -> None:
        size, limit = self._count_bytes(base), CONSTANTS_FACTOR * self._most_bytes
        if size > limit:
            sizes = f"{size / 1e6:.0f} MB at the least sizes"
            raise ImportRefusalError(f"too large: {sizes}; expected at most {limit / 1e6:.0f} MB; try: --max-bytes")
        if self._freed:
            constants = ", ".join(f"{name} = {value}" for name, value in self._freed.items())
            self._warnings.append(f"constant axes vary, for their tensors are too large: {constants}")
        if size > self._most_bytes:
            self._warnings.append(f"its constant axes alone take {size / 1e6:.1f} MB")

    # -- what is read

    def _list_constraints(self) -> tuple[str, ...]:
        texts, doubts = translate_constraints(self._definition, self._names.dims)
        pointers = find_pointers(self._definition)
        self._warnings += [f"constraint not kept: {text}" for text in doubts if read_pointer(text) is None]
        lengths = [axes[0] for name in pointers if (axes := self._write_shape(self._definition.inputs[name]))]
        free = [name for name in dict.fromkeys(lengths) if name.isidentifier() and name not in list_following(texts)]
        return (*texts, *(f"{length} >= 2" for length in free))

    def _write_shape(self, spec: FlashinferTensor) -> list[str]:
        return [self._name_size(axis) for axis in spec.shape or ()]

    def _make_type(self, spec: FlashinferTensor) -> ArrayType:
        return ArrayType(NAMES_BY_TORCH[spec.dtype], tuple(parse_dim(dim) for dim in self._write_shape(spec)))

    def _count_bytes(self, sizes: Sizes) -> int:
        specs = {**self._definition.inputs, **self._definition.outputs}.values()
        types = [self._make_type(spec) for spec in specs if spec.shape is not None]
        return sum(math.prod(type_.shape_at(sizes)) * BYTES_BY_DTYPE[type_.dtype] for type_ in types)

    def _read_scalar(self, name: str) -> int | float:
        """The first workload's value; whole numbers stay whole."""
        inputs = [workload.inputs.get(name) for workload in self._workloads]
        values = [entry.value for entry in inputs if isinstance(entry, ScalarInput)]
        is_float = NAMES_BY_TORCH[self._definition.inputs[name].dtype] in FLOATS
        if not values:
            self._warnings.append(f"{name}: no workload gives its value: it is 1")
        elif len(set(values)) > 1:
            self._warnings.append(f"{name}: {values[0]}, the first workload's; others have others")
        value = values[0] if values else 1
        return float(value) if is_float else int(value)

    # -- what is made

    def _draft_problem(self, reference: str, constraints: Sequence[str], base: Mapping[str, int]) -> Problem:
        """With data that may not be right yet."""
        tensors = {name: spec for name, spec in self._definition.inputs.items() if spec.shape is not None}
        types = {spec.dtype for spec in {**self._definition.inputs, **self._definition.outputs}.values() if spec.shape}
        narrow = {NAMES_BY_TORCH[dtype] for dtype in types} & NARROW_FLOATS
        return Problem(
            tuple(self._draft_input(name, spec) for name, spec in tensors.items()),
            (),
            tuple(
                OutputTensors(self._names.tensors[name], (self._make_type(spec),))
                for name, spec in self._definition.outputs.items()
            ),
            sizes=dict(base),
            reference=reference,
            scalars={
                self._names.tensors[name]: self._read_scalar(name)
                for name, spec in self._definition.inputs.items()
                if spec.shape is None
            },
            accumulation="fp32" if narrow else "",
            constraints=tuple(constraints),
        )

    def _draft_input(self, name: str, spec: FlashinferTensor) -> InputTensor:
        type_ = self._make_type(spec)
        data = NORMAL if type_.is_floating else "randint(0, 2)" if type_.dtype == "bool" else "randint(0, 1)"
        return _with_data(InputTensor(self._names.tensors[name], type_), data)

    def _name_file(self, problem: Problem) -> ProblemFile:
        return ProblemFile(self._names.problem, choose_name(self._definition.op_type, set()), problem)

    # -- what is tried

    def _try_problem(self, problem: Problem, sets: Sequence[Sizes]) -> list[str]:
        return self._try_at(write_problem(self._name_file(problem)), sets)

    def _choose_data(self, draft: Problem, sets: Sequence[Sizes]) -> Problem:
        """The draft with data on which its reference runs at the base, and at the most of the other sets; of equal
        ones the plainest. Raises ImportRefusalError."""
        trials = []
        for data, is_even in _STYLES if find_pointers(self._definition) else _STYLES[:2]:
            trials.append(self._try_style(draft, sets, data, is_even))
            if not any(trials[-1].mistakes):
                break
        running = [trial for trial in trials if not trial.mistakes[0]]
        mistakes = [next(filter(None, trial.mistakes)) for trial in trials if any(trial.mistakes)]
        if not running:
            random = (mistake for mistake in mistakes if "random" in mistake)
            raise ImportRefusalError(next(random, mistakes[0]))
        chosen = max(running, key=lambda trial: trial.mistakes.count(""))  # the first of equal ones
        self._warnings += chosen.doubts
        self._note_style(chosen.data, chosen.is_even, mistakes)
        return chosen.problem

    def _try_style(self, draft: Problem, sets: Sequence[Sizes], data: str, is_even: bool) -> _StyleTrial:
        doubts: list[str] = []
        rows = [_with_data(tensor, data) if tensor.type.is_floating else tensor for tensor in draft.inputs]
        problem = replace(draft, inputs=tuple(rows))
        try:
            problem = self._choose_numbers(problem, sets, is_even, doubts)
            mistakes = self._try_problem(problem, sets)
        except ImportRefusalError as error:
            mistakes = [str(error)] * len(sets)
        return _StyleTrial(data, is_even, problem, mistakes, doubts)

    def _note_style(self, data: str, is_even: bool, refusals: Sequence[str]) -> None:
        reason = f"; otherwise: {refusals[0]}" if refusals else ""
        if data == UNIFORM:
            self._warnings.append(f"floats are uniform from 0 to 1{reason}")
        if is_even:
            self._warnings.append(f"pointers are evenly spread{reason}")

    def _choose_numbers(self, draft: Problem, sets: Sequence[Sizes], is_even: bool, doubts: list[str]) -> Problem:
        """The draft with data for whole numbers."""
        pointers = {self._names.tensors[name]: axis for name, axis in find_pointers(self._definition).items()}
        for tensor in draft.inputs:
            if tensor.name in pointers and len(tensor.type.shape) == 1:
                total = self._name_size(pointers[tensor.name])
                data = write_pointers(str(tensor.type.shape[0]), total, is_even)
                draft = _replace_data(draft, tensor.name, data)
        for tensor in draft.inputs:
            if tensor.type.is_floating or tensor.type.dtype == "bool" or tensor.name in pointers:
                continue
            drawn = _replace_data(draft, tensor.name, SMALL_NUMBERS.get(tensor.type.dtype, ""))
            is_free = tensor.type.dtype in SMALL_NUMBERS and not any(self._try_problem(drawn, sets))
            draft = drawn if is_free else self._choose_range(draft, tensor, sets, doubts)
        return draft

    def _name_size(self, axis: str) -> str:
        """The dim of an axis, or its number."""
        return self._names.dims.get(axis) or str(list_constants(self._definition)[axis])

    def _choose_range(self, draft: Problem, tensor: InputTensor, sets: Sequence[Sizes], doubts: list[str]) -> Problem:
        shape = [str(dim) for dim in tensor.type.shape]

        def runs_within(number_range: NumberRange) -> bool:
            return not any(self._try_problem(_replace_data(draft, tensor.name, number_range.write_probe(shape)), sets))

        constants = sorted(set(list_constants(self._definition).values()))
        ranges = list_ranges(sets[0], constants)
        if tensor.type.dtype in SMALL_NUMBERS:
            next(ranges)  # it cannot hold that
        chosen = choose_range(ranges, runs_within)
        if chosen is None:
            raise ImportRefusalError(self._describe_failure(draft, tensor, sets))
        doubts.append(f"{tensor.name}: {chosen.data}, the largest range tried in which the reference runs")
        return _replace_data(draft, tensor.name, chosen.data)

    def _describe_failure(self, draft: Problem, tensor: InputTensor, sets: Sequence[Sizes]) -> str:
        """Why no range was found for an input: its zeros fail too, or its data lies elsewhere."""
        mistake = next(filter(None, self._try_problem(draft, sets)), "")
        where = next((own for own, name in self._names.tensors.items() if name == tensor.name), "")
        entries = [workload.inputs.get(where) for workload in self._workloads]
        is_stored = any(isinstance(entry, SafetensorsInput) for entry in entries)
        stored = " (its workloads have it in safetensors files)" if is_stored else ""
        return f"{tensor.name}: nothing says what its numbers mean{stored}, and zeros fail: {mistake}"

    def _keep_running(self, problem: Problem, sets: Mapping[str, dict[str, int]]) -> dict[str, dict[str, int]]:
        """Those at which the reference runs; a warning for each other."""
        mistakes = dict(zip(sets, self._try_problem(problem, list(sets.values())), strict=True)) if sets else {}
        for name, mistake in mistakes.items():
            if mistake:
                sizes = ", ".join(f"{dim} = {size}" for dim, size in sets[name].items())
                self._warnings.append(f"not among the sizes: {sizes}: {mistake}")
        return {name: sizes for name, sizes in sets.items() if not mistakes[name]}


def _with_data(tensor: InputTensor, data: str) -> InputTensor:
    return replace(tensor, data_gen=GENERATORS.get(data), expression="" if data in GENERATORS else data)


def _replace_data(problem: Problem, name: str, data: str) -> Problem:
    rows = [_with_data(tensor, data) if tensor.name == name else tensor for tensor in problem.inputs]
    return replace(problem, inputs=tuple(rows))
