"""Trials: at which shapes, with which data and in which precision must a program be right?

A task runs at several shape sets, each with several seeds in float64, where it is judged tightly, and once in the
declared precision, where it is judged against the reference's own rounding error. All draws of a set and a precision
are one trial, executed at once. Everything is prepared on first use and kept, so that a program that is wrong at the
base shape costs one trial.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from opsmith.targets.step.execution.data import (
    Bindings,
    Values,
    draw_case,
    draw_with_margins,
    draws_numbers,
    expected_values,
    jittered,
    reference_values,
    seed_of,
)
from opsmith.targets.step.execution.fns import Plans
from opsmith.targets.step.execution.precision import is_floating
from opsmith.targets.step.execution.slots import holds_multihot
from opsmith.targets.step.execution.stack import Stack
from opsmith.targets.step.execution.tolerance import Limit, declared_limit, stacked, wide_limit
from opsmith.targets.step.language.dims import Dim, DimError
from opsmith.targets.step.language.spec import DEFAULT_SIZES, TaskSpec
from opsmith.targets.step.language.types import Field, element_dims, fields_of, scalar_of
from opsmith.targets.trial import TaskFault, Trial

SHAPE_SETS: Mapping[str, Mapping[str, int]] = {
    "base": {},  # the sizes of the task file
    "unit": {"M": 1, "N": 1, "K": 1, "D": 2},  # everything minimal
    "M1": {"M": 1},
    "N1": {"N": 1},
    "K1": {"K": 1},
    "D2": {"D": 2},
    "coprime": {"M": 13, "N": 11, "K": 17, "D": 6},  # M > N, K > D
    "wide": {"M": 3, "N": 19, "K": 4, "D": 10},
    "tall": {"M": 19, "N": 3, "K": 10, "D": 4},
    "equal": {"M": 4, "N": 4, "K": 4, "D": 4},  # symbols must be told apart by name
    "tight": {"M": 3, "N": 1, "K": 2, "D": 2},
    "large": {"M": 32, "N": 64, "K": 64, "D": 64},  # tolerance and speed
}
SEEDS, BASE_SEEDS = 3, 5  # per shape set, in float64
TASKS_KEPT = 32  # tasks whose trials stay in memory


@dataclass
class Draw:
    """One shape set and seed of a task: its data in both precisions and what the reference makes of it."""

    suite: Suite
    shape_set: str
    overrides: Mapping[str, int]
    seed: int  # number within the set; of a hand-made case its place in the file
    is_case: bool = False

    @cached_property
    def _drawn(self) -> tuple[Bindings, Bindings] | TaskFault:
        """A fault is kept too: hundreds of draws may lie behind it."""
        try:
            if self.is_case:
                return draw_case(self.suite.spec, self.overrides, self.seed, self.suite.plans)
            return draw_with_margins(self.suite.spec, self.overrides, self.seed_text, self.suite.plans)
        except TaskFault as finding:
            return finding

    @property
    def _both(self) -> tuple[Bindings, Bindings]:
        if isinstance(self._drawn, TaskFault):
            raise self._drawn
        return self._drawn

    @property
    def seed_text(self) -> str:
        """What its data is drawn from."""
        return f"{self.shape_set} {self.seed}"

    @property
    def label(self) -> str:
        if not self.is_case:
            return f"{self.shape_set} seed {self.seed}"
        shape = self.suite.spec.cases[self.seed].shape
        return f"case {self.seed}{f' at {shape}' if shape else ''}"

    @property
    def declared(self) -> Bindings:
        return self._both[0]

    @property
    def wide(self) -> Bindings:
        return self._both[1]

    @cached_property
    def values(self) -> Values:
        """The reference in float64."""
        return expected_values(self.suite.spec, self.wide)

    @cached_property
    def wide_limits(self) -> list[list[Limit]]:
        rows = zip(self.suite.spec.outputs, self.values, self.suite.exact, strict=True)
        return [
            [wide_limit(output, value, exact) for value, exact in zip(values, exacts, strict=True)]
            for output, values, exacts in rows
        ]

    @cached_property
    def declared_limits(self) -> list[list[Limit]]:
        spec, suite = self.suite.spec, self.suite
        rounded = expected_values(spec, self.declared)
        exact = rounded if self.declared.random_global else self.values
        moved = expected_values(spec, jittered(spec, self.declared, seed_of(self.seed_text)))
        rows = zip(spec.outputs, exact, rounded, moved, suite.exact, strict=True)
        return [[declared_limit(output, *columns) for columns in zip(*row, strict=True)] for output, *row in rows]


@dataclass
class Case:
    """What a trial hands to the simulator and to the comparison: `Trial.data` of this target."""

    draws: Sequence[Draw] = field(repr=False)
    is_wide: bool

    @property
    def bindings(self) -> list[Bindings]:
        """Per draw. Raises TaskFault."""
        return [draw.wide if self.is_wide else draw.declared for draw in self.draws]

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.bindings[0].sizes

    @cached_property
    def stack(self) -> Stack:
        return Stack(self.bindings)

    @cached_property
    def singles(self) -> list[Case]:
        """The draws one by one."""
        return [self] if len(self.draws) == 1 else [Case([draw], self.is_wide) for draw in self.draws]

    @cached_property
    def limits(self) -> list[list[Limit]]:
        """Per output and field: the expected values, draws as first axis, and how far a result may lie from them."""
        rows = [draw.wide_limits if self.is_wide else draw.declared_limits for draw in self.draws]
        return [[stacked(limits) for limits in zip(*fields, strict=True)] for fields in zip(*rows, strict=True)]

    def run_reference(self) -> list[object]:
        """The values of every data_transform on every draw, without a check or a copy."""
        return [value for bindings in self.bindings for value in reference_values(self.draws[0].suite.spec, bindings)]

    def label(self, at: int) -> str:
        """What findings call a draw."""
        return f"{self.draws[at].label} {_precision(self.is_wide)}"


def _precision(is_wide: bool) -> str:
    return "float64" if is_wide else "declared precision"


class Suite(Sequence[Trial]):
    """All trials of one task in the order they are run: base first, large last. Raises TaskFault for a bad `global`."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.plans: Plans = {}
        self._trials = list(self._make())

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        return self._trials[at]

    @cached_property
    def exact(self) -> list[list[bool]]:
        """Per output and field: whether values are compared exactly.

        Multihots, integers and bools are, and floats that stand for a decision: those whose expected values at the base
        shape are all 0 or 1, and both occur. Other shapes do not count: where a size is 1, a quotient may be 1 as well.
        """
        values = self._trials[0].data.draws[0].values
        return [
            [_is_discrete(field, value) for field, value in zip(fields_of(output.dtype), row, strict=True)]
            for output, row in zip(self.spec.outputs, values, strict=True)
        ]

    def _make(self) -> Iterator[Trial]:
        for name, overrides in shape_sets(self.spec).items():
            draws = [Draw(self, name, overrides, seed) for seed in range(BASE_SEEDS if name == "base" else SEEDS)]
            yield from self._precisions(name, draws, draws[:1])
            if cases := self._cases("" if name == "base" else name, overrides):
                yield from self._precisions("cases" if name == "base" else f"cases of {name}", cases, cases)

    def _cases(self, shape: str, overrides: Mapping[str, int]) -> list[Draw]:
        return [
            Draw(self, "case", overrides, at, is_case=True)
            for at, case in enumerate(self.spec.cases)
            if case.shape == shape
        ]

    def _precisions(self, name: str, wide: Sequence[Draw], declared: Sequence[Draw]) -> Iterator[Trial]:
        yield from self._together(name, wide, True)
        if _has_narrow_floats(self.spec):
            yield from self._together(name, declared, False)

    def _together(self, name: str, draws: Sequence[Draw], is_wide: bool) -> Iterator[Trial]:
        """One trial of all draws; one of each where `global` draws numbers, which may be sizes."""
        for part in [[draw] for draw in draws] if draws_numbers(self.spec) else [draws]:
            yield Trial(f"{name} {_precision(is_wide)}", Case(part, is_wide), len(part))


def trials(spec: TaskSpec) -> Sequence[Trial]:
    """All trials of a task. Kept for the TASKS_KEPT tasks used last, by the identity of `spec`."""
    entry = _KEPT.get(id(spec))
    if entry is None:
        entry = _KEPT[id(spec)] = Suite(spec)  # which holds `spec`, so that its id stays its own
        if len(_KEPT) > TASKS_KEPT:
            _KEPT.popitem(last=False)
    _KEPT.move_to_end(id(spec))
    return entry


_KEPT: OrderedDict[int, Suite] = OrderedDict()


def shape_sets(spec: TaskSpec) -> dict[str, dict[str, int]]:
    """The sets that differ for this task: name -> sizes that differ from the task's own, in the order of trial:
    large last.

    A set of the task file replaces the built-in one of that name; what a set does not name keeps its base size.
    Built-in sets at which a dim of the task has no whole value are left out.
    """
    base = {**DEFAULT_SIZES, **spec.sizes}
    found: dict[str, dict[str, int]] = {}
    for name, given in sorted({**SHAPE_SETS, **spec.shapes}.items(), key=lambda pair: pair[0] == "large"):
        sizes = {key: size for key, size in given.items() if key in spec.symbols and size != base.get(key)}
        if name not in spec.shapes and not _is_whole(spec, {**base, **sizes}):
            continue
        has_cases = any(case.shape == name for case in spec.cases)
        if name == "base" or has_cases or (sizes not in found.values() and sizes):
            found[name] = sizes
    return found


def _is_whole(spec: TaskSpec, sizes: Mapping[str, int]) -> bool:
    try:
        for dim in _static_dims(spec):
            dim.value(sizes)
    except DimError:
        return False
    return True


def _static_dims(spec: TaskSpec) -> Iterator[Dim]:
    streams = [*(entry.type for entry in (*spec.inputs, *spec.parameters)), *(output.type for output in spec.outputs)]
    yield from (dim for stream in streams for dim in stream.dims)
    yield from (dim for part in _fields(spec) for dim in element_dims(part))


def _fields(spec: TaskSpec) -> Iterator[Field]:
    """Every field that the task file declares."""
    dtypes = [*(entry.dtype for entry in (*spec.inputs, *spec.parameters)), *(output.dtype for output in spec.outputs)]
    dtypes += [dtype for fn in spec.fns for dtype in (fn.input_dtype, fn.output_dtype)]
    yield from (part for dtype in dtypes for part in fields_of(dtype))


def _has_narrow_floats(spec: TaskSpec) -> bool:
    """Whether the declared precision differs from float64 anywhere; else the float64 trials say it all."""
    return any(is_floating(part) and scalar_of(part).name != "fp64" for part in _fields(spec))


def _is_discrete(field: Field, value: Tensor) -> bool:
    if not is_floating(field) or holds_multihot(field):
        return True
    ones = value == 1
    return bool((ones | (value == 0)).all()) and bool(ones.any()) and not bool(ones.all())
