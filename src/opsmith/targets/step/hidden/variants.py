"""Variants: the graphs that a program has at the sizes that were looked at, and where it has which.

Graphs are equal when what their outputs are made of is: primitives, functions, whole numbers, symbolic dims. Names,
lines, Copies and what no output needs do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opsmith.targets.step.hidden.bounded import WHOLE, Allowance
from opsmith.targets.step.hidden.many import ProgramTrace, is_divisible, trace_program
from opsmith.targets.step.hidden.points import (
    LARGEST,
    Array,
    Points,
    draw_points,
    every_size,
    find_changing_sizes,
    is_quotient,
    own_point,
)
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec

MAX_TRACES = 16  # runs of a program's text beside the first
UNEXPLAINED = 6  # parts in which the points that are left are tried
MAX_STEPS = 30_000  # of all runs beside the first, in steps of the interpreter
MAX_OPERATIONS = 1000  # on sizes, of a program that is looked at elsewhere
MAX_NUMBERS = 2**21  # that a run computes for all points
CHUNK = 2**18  # sizes of one symbol that are looked at together
MAX_SEARCHED = 2**27  # numbers that are computed to look at every size

Key = tuple[Any, ...]


@dataclass(frozen=True)
class GraphVariant:
    """A graph of a program, and which points have it. `key` None: it has none there, for it breaks a rule.

    `is_held`: whether that is held against it. It is not where a dim of its own graph has no whole value.
    """

    key: Key | None
    is_held: bool
    points: Points
    here: Array = field(repr=False)

    @property
    def trial_rank(self) -> int:
        """How early it is tried."""
        return int(self.points.trial_rank[self.here].min())

    def list_places(self, limit: int) -> list[dict[str, int]]:
        """The sizes at which to try it, the best first; the last has the fewest numbers."""
        where = np.flatnonzero(self.here)
        first = where[np.argsort(self.points.trial_rank[where], kind="stable")[: limit - 1]]
        product = np.prod([column[where].astype(float) for column in self.points.columns], axis=0)
        chosen = dict.fromkeys([*map(int, first), int(where[product.argmin()])])
        return [self.points.overrides_at(number) for number in chosen]


@dataclass(frozen=True)
class Survey:
    """What was seen of a program: its variants; the first is that at the task's own sizes."""

    variants: tuple[GraphVariant, ...]

    @property
    def is_flagged(self) -> bool:
        """Whether the program is another one at another size."""
        return bool(self.other_programs)

    @property
    def other_programs(self) -> list[GraphVariant]:
        """Those that are other programs, the best to try first."""
        first = self.variants[0]
        different = [variant for variant in self.variants if variant.key != first.key and variant.is_held]
        return sorted(different, key=lambda variant: variant.trial_rank)


def depends_on_sizes(graph: Graph, spec: TaskSpec) -> bool:
    """Whether the graph could be another one at other sizes of the task; if not, it is the same at all."""
    names = find_changing_sizes(spec).keys()
    if not names.isdisjoint(graph.reads):
        return True
    return any(node.dim is not None and is_quotient(node.dim) for node in graph.nodes)


def survey_sizes(spec: TaskSpec, source: str, seed: int) -> Survey:
    """Look at a program at points that are drawn from `seed`, and where all look alike, at every size of a symbol."""
    first = trace_program(spec, source, own_point(spec), 0)
    explorer = _Explorer(spec, source, first)
    looked_at = draw_points(spec, seed, first.constants)
    if first.operations > MAX_OPERATIONS:  # nothing is known of any other point
        only = np.arange(len(looked_at)) == 0
        return Survey((GraphVariant(_trace_key(first), True, looked_at, only), *_list_unexplained(looked_at, ~only)))
    variants = explorer.list_variants(looked_at.thin_out(MAX_NUMBERS // max(1, first.operations)))
    for chunk in explorer.list_unseen() if len(variants) == 1 else ():
        variants = explorer.list_variants(chunk)
        if len(variants) > 1:
            break
    return Survey(tuple(variants))


class _Explorer:
    """Runs a program's text with one point after the other in control, until every point has been explained."""

    def __init__(self, spec: TaskSpec, source: str, first: ProgramTrace) -> None:
        self.spec, self.source, self.first = spec, source, first
        self.steps = MAX_STEPS

    def list_variants(self, points: Points) -> list[GraphVariant]:
        """One for every run: other points with the same graph may stand in another."""
        unexplained = np.ones(len(points), dtype=bool)
        variants: list[GraphVariant] = []
        for control in self._choose_controls(points, unexplained):
            allowance = self._limit_run() if variants else WHOLE
            traced = trace_program(self.spec, self.source, points, control, allowance)
            self.steps -= traced.extent.steps if variants else 0
            variants.append(
                GraphVariant(
                    _trace_key(traced),
                    self._is_held(traced, points.sizes_at(control)),
                    points,
                    unexplained & traced.agrees,
                )
            )
            unexplained &= ~traced.agrees
        return [*variants, *_list_unexplained(points, unexplained)]

    def _is_held(self, traced: ProgramTrace, sizes: Mapping[str, int]) -> bool:
        own = self.first.graph
        return traced.graph is not None or own is None or is_divisible(own, sizes)

    def _choose_controls(self, points: Points, remaining: Array) -> Iterator[int]:
        """The task's own point, then those that nothing explains yet: in turn the next, and one far away."""
        yield 0
        for number in range(MAX_TRACES):
            unexplained = np.flatnonzero(remaining)
            if not len(unexplained) or self.steps < 0:
                return
            ranks = points.trial_rank[unexplained]
            place = 0 if number % 3 < 2 else len(ranks) * number // (MAX_TRACES + 3)
            yield int(unexplained[np.argpartition(ranks, place)[place]])

    def _limit_run(self) -> Allowance:
        """A program that is far longer elsewhere need not be followed to its end to be another one."""
        return Allowance(2 * self.first.extent.steps + 1000, 2 * self.first.extent.applications + 64)

    def list_unseen(self) -> Iterator[Points]:
        """Every size of each symbol that the program reads, as far as that is cheap."""
        graph = self.first.graph
        names = [] if graph is None else [name for name in find_changing_sizes(self.spec) if name in graph.reads]
        if self.first.operations == 0 or self.first.operations * len(names) * LARGEST > MAX_SEARCHED:
            return
        for name in names:
            for start in range(1, LARGEST + 1, CHUNK):
                yield every_size(self.spec, name, start, min(LARGEST, start + CHUNK - 1))


def _list_unexplained(points: Points, remaining: Array) -> Iterator[GraphVariant]:
    """Points that no run explained, the near ones apart from the far ones. Nobody knows which program is there."""
    where = np.flatnonzero(remaining)
    for number, group in enumerate(np.array_split(where[np.argsort(points.trial_rank[where])], UNEXPLAINED)):
        if len(group):
            here = np.zeros_like(remaining)
            here[group] = True
            yield GraphVariant(("unknown", number), True, points, here)


def _trace_key(traced: ProgramTrace) -> Key | None:
    return None if traced.graph is None else make_key(traced.graph)


def make_key(graph: Graph) -> Key:
    """Equal for graphs whose outputs are made alike."""
    numbers: dict[int, int] = {graph.values[number]: number for number in range(len(graph.inputs))}
    rows: list[Any] = []
    needed = _find_needed(graph)
    for node in graph.distinct:
        values = [graph.values[stream] for stream in node.results]
        if needed.isdisjoint(values):
            continue
        operands = tuple(numbers[graph.values[stream]] for stream in node.operands)
        rows.append((node.op, node.fn.func_name if node.fn else "", node.ints, node.dim, operands, node.compare_index))
        for value in values:
            numbers.setdefault(value, len(numbers))
    return (*rows, tuple(numbers[graph.values[stream]] for stream in graph.outputs))


def _find_needed(graph: Graph) -> set[int]:
    """The value numbers of what the outputs are made of, themselves included."""
    needed = {graph.values[stream] for stream in graph.outputs}
    for node in reversed(graph.distinct):
        if not needed.isdisjoint(graph.values[stream] for stream in node.results):
            needed.update(graph.values[stream] for stream in node.operands)
    return needed
