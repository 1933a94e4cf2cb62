"""Draws: the data of one shape set and seed, what the reference makes of it, and how far a result may lie from that.

Everything is made on first use and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from opsmith.problems.bindings import Bindings
from opsmith.problems.decisions import Unclear, find_unclear
from opsmith.problems.distributions import Shaping
from opsmith.problems.drawing import draw_case, draw_with_margins, jitter_data, make_seed
from opsmith.problems.faults import TaskFault
from opsmith.problems.narrowing import differs_from, run_raised
from opsmith.problems.problem import ATTEMPTS, Problem
from opsmith.problems.reference import Values, compute_expected, run_unchecked
from opsmith.problems.tolerance import Limit, make_declared_limit, make_narrowed_limit, make_wide_limit, stack_limits

Limits = list[list[Limit]]  # per output and tensor
KnownT = TypeVar("KnownT")
SHAPED_ATTEMPTS = 2  # draws of one distribution before it is given up


class Standard(Protocol):
    """What all draws of a problem have in common; its first draw at the base shape decides it."""

    @property
    def problem(self) -> Problem: ...

    @property
    def exact(self) -> list[list[bool]]:
        """Per output and tensor: whether values are compared exactly."""

    @property
    def asks_narrow(self) -> bool:
        """Whether the reference asks for less than float64."""


@dataclass
class Draw:
    """One shape set and seed of a problem: its data in both precisions and what the reference makes of it."""

    attempts: ClassVar[int] = ATTEMPTS
    standard: Standard = field(repr=False)
    shape_set: str
    overrides: Mapping[str, int]
    seed: int  # number within the set; of a hand-made case its place in the file
    is_case: bool = False
    shaping: Shaping | None = None  # None: the data is as the problem declares it

    @property
    def problem(self) -> Problem:
        return self.standard.problem

    @cached_property
    def _data(self) -> tuple[Bindings, Bindings] | TaskFault:
        """A fault is kept too: hundreds of draws may lie behind it."""
        try:
            if self.is_case:
                return draw_case(self.problem, self.overrides, self.seed)
            draws = (self.problem, self.overrides, self.seed_text)
            if self.shaping is None:
                return draw_with_margins(*draws, self.attempts, self.find_unclear)
            return draw_with_margins(*draws, SHAPED_ATTEMPTS, self.find_unclear, self.shaping)
        except TaskFault as fault:
            return fault

    def find_unclear(self, declared: Bindings, wide: Bindings) -> Unclear | None:
        """Why no program can be judged on this data; None: it can. Raises TaskFault."""
        return find_unclear(self.problem, declared, wide, self.round_data(declared))

    def round_data(self, declared: Bindings) -> Bindings | None:
        """The numbers that right programs compute with where they round; None: they are judged in float64 alone."""
        return declared if self.seed == 0 and self.problem.has_narrow_floats else None

    @property
    def _both(self) -> tuple[Bindings, Bindings]:
        if isinstance(self._data, TaskFault):
            raise self._data
        return self._data

    @property
    def seed_text(self) -> str:
        """What its data is drawn from."""
        return f"{self.shape_set} {self.seed}{f' {self.shaping}' if self.shaping else ''}"

    @property
    def label(self) -> str:
        if self.shaping is not None:
            return f"{self.shaping.kind} data at {self.shape_set}"
        if not self.is_case:
            return f"{self.shape_set} seed {self.seed}"
        shape = self.problem.cases[self.seed].shape
        return f"case {self.seed}{f' at {shape}' if shape else ''}"

    @property
    def declared(self) -> Bindings:
        """The data as declared. Raises TaskFault."""
        return self._both[0]

    @property
    def wide(self) -> Bindings:
        """The same numbers in float64. Raises TaskFault."""
        return self._both[1]

    @cached_property
    def values(self) -> Values:
        """The reference in float64."""
        return compute_expected(self.problem, self.wide)

    def remember(self, compute: Callable[[Draw], KnownT]) -> KnownT:
        """What a function says of this draw; it is asked once."""
        if compute not in self._known:
            self._known[compute] = compute(self)
        known: KnownT = self._known[compute]
        return known

    @cached_property
    def _known(self) -> dict[Callable[[Draw], Any], Any]:
        return {}

    @cached_property
    def raised_values(self) -> tuple[Values | None, bool]:
        """The reference with float64 throughout, None where it fails so, and whether it asks for less."""
        names = {**self.wide.namespace, **self.wide.input_data}
        return run_raised(lambda: compute_expected(self.problem, self.wide), names)

    @cached_property
    def narrowed_outputs(self) -> frozenset[int]:
        """The outputs, by number, whose reference computes with less than float64."""
        if not self.standard.asks_narrow:
            return frozenset()
        raised, _ = self.raised_values
        return frozenset(
            number
            for number, row in enumerate(self.values)
            if raised is None or any(differs_from(*pair) for pair in zip(row, raised[number], strict=True))
        )

    @cached_property
    def wide_limits(self) -> Limits:
        """Those of float64, or the declared ones for outputs whose reference computes with less."""
        return [
            self.narrowed_limits[number] if number in self.narrowed_outputs else row
            for number, row in enumerate(self._full_limits)
        ]

    @cached_property
    def _full_limits(self) -> Limits:
        rows = zip(self.problem.outputs, self.values, self.standard.exact, strict=True)
        return [
            [make_wide_limit(output, value, exact) for value, exact in zip(values, exacts, strict=True)]
            for output, values, exacts in rows
        ]

    @cached_property
    def narrowed_limits(self) -> Limits:
        """In float64, of outputs that depend on code that computes with less."""
        rows = zip(self._full_limits, self.declared_limits, strict=True)
        return [[make_narrowed_limit(*pair) for pair in zip(*row, strict=True)] for row in rows]

    @cached_property
    def declared_limits(self) -> Limits:
        """Those of the declared precision."""
        rounded = compute_expected(self.problem, self.declared)
        exact = rounded if self.declared.random_global else self.values
        jittered = jitter_data(self.problem, self.declared, make_seed(self.seed_text))
        moved = compute_expected(self.problem, jittered)
        rows = zip(self.problem.outputs, exact, rounded, moved, self.standard.exact, strict=True)
        return [[make_declared_limit(output, *columns) for columns in zip(*row, strict=True)] for output, *row in rows]


DrawT = TypeVar("DrawT", bound=Draw)


@dataclass
class TrialData(Generic[DrawT]):
    """Draws of one shape set in one precision, which a program must pass together."""

    draws: Sequence[DrawT] = field(repr=False)
    is_wide: bool

    @property
    def bindings(self) -> Sequence[Bindings]:
        """Per draw. Raises TaskFault."""
        return [draw.wide if self.is_wide else draw.declared for draw in self.draws]

    @property
    def sizes(self) -> Mapping[str, int]:
        return self.bindings[0].sizes

    @cached_property
    def limits(self) -> Limits:
        """Per output and tensor: the expected values, draws as first axis, and how far a result may lie from them."""
        return stack_rows([draw.wide_limits if self.is_wide else draw.declared_limits for draw in self.draws])

    @cached_property
    def undecided(self) -> int:
        """How many entries of discrete outputs are not judged."""
        marks = (limit.undecided for row in self.limits for limit in row)
        return sum(int(mark.sum()) for mark in marks if mark is not None)

    def run_reference(self) -> list[object]:
        """The values of every reference on every draw, without a check or a copy."""
        pairs = zip(self.draws, self.bindings, strict=True)
        return [value for draw, bindings in pairs for value in run_unchecked(draw.problem, bindings)]

    def label(self, number: int) -> str:
        """What findings call a draw."""
        return f"{self.draws[number].label} {name_precision(self.is_wide)}"


def stack_rows(draws: Sequence[Limits]) -> Limits:
    """The limits of several draws as one."""
    return [[stack_limits(limits) for limits in zip(*tensors, strict=True)] for tensors in zip(*draws, strict=True)]


def name_precision(is_wide: bool) -> str:
    return "float64" if is_wide else "declared precision"
