"""Which chains of unary primitives lead from one type to another? Longer ways through a program than single edits.

Most single edits are not well-typed, so they never reach the question of values. A chain replaces a stretch of a
program, from any stream to any stream made from it by unary primitives alone, or is inserted into one stream, by up to
`LONGEST` applications of equal types at both ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from opsmith.targets.step.language import ops
from opsmith.targets.step.language.dims import DimError, parse_dim
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import StreamType
from opsmith.targets.step.mutation.straight import Statement, StraightLine
from opsmith.targets.step.mutation.vocabulary import SHAPES, Application, applications

LONGEST = 3
CHANGING = ("Map", "Accum", "Scan", *SHAPES)


class Chains:
    """Chains over one task's functions and dims; the type of every step is worked out once."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.vocabulary = [entry for entry in applications(spec, products=False) if entry[0] in CHANGING]
        self._steps: dict[StreamType, dict[StreamType, list[Application]]] = {}

    def between(self, start: StreamType, end: StreamType, longest: int = LONGEST) -> Iterator[tuple[Application, ...]]:
        """Every chain of 1 to `longest` applications from type to type."""
        steps = self.steps(start)
        yield from ((entry,) for entry in steps.get(end, ()))
        if longest > 1:
            for made, entries in steps.items():
                rests = list(self.between(made, end, longest - 1))
                yield from ((entry, *rest) for entry in entries for rest in rests)

    def steps(self, start: StreamType) -> dict[StreamType, list[Application]]:
        """The applications that are well-typed here, by what they make."""
        if start not in self._steps:
            self._steps[start] = {}
            for entry in self.vocabulary:
                made = self._result(start, *entry)
                if made is not None:
                    self._steps[start].setdefault(made, []).append(entry)
        return self._steps[start]

    def _result(self, given: StreamType, op: str, arguments: tuple[tuple[str, str], ...]) -> StreamType | None:
        values: dict[str, Any] = {key: self._value(key, text) for key, text in arguments}
        if op == "Reshape":
            values["sizes"] = self.spec.sizes
        try:
            if op == "Map":
                return ops.map_(streams=[given], **values)
            return getattr(ops, op.lower())(x=given, **values)  # type: ignore[no-any-return]
        except (ops.OpError, DimError):
            return None

    def _value(self, key: str, text: str) -> object:
        if key == "fn":
            return self.spec.fn_table[text]
        return parse_dim(text) if key in ("n", "S") else ast.literal_eval(text)


def rerouted(spec: TaskSpec, program: StraightLine, graph: Graph, longest: int = LONGEST) -> Iterator[StraightLine]:
    """Every program in which a chain stands for a stretch of unary statements, or more in one stream."""
    chains, kinds = Chains(spec), _types(program, graph)
    for at, statement in enumerate(program.statements):
        for place, name in enumerate(statement.operands):
            for chain in chains.between(kinds[name], kinds[name], longest):
                names = (*statement.operands[:place], "X", *statement.operands[place + 1 :])
                reading = replace(statement, operands=names)
                yield program.with_statements(at, at + 1, *_written(chain, name, "X"), reading)
    for at, stop in _stretches(program):
        start, end = program.statements[at].operands[0], program.statements[stop - 1].targets[0]
        for chain in chains.between(kinds[start], kinds[end], longest):
            yield program.with_statements(at, stop, *_written(chain, start, end))


def _stretches(program: StraightLine) -> Iterator[tuple[int, int]]:
    """First and end of every run of unary statements that each read the one before."""
    count = len(program.statements)
    bounds = ((at, stop) for at in range(count) for stop in range(at + 1, count + 1))
    yield from ((at, stop) for at, stop in bounds if _is_chain(program.statements[at:stop]))


def _types(program: StraightLine, graph: Graph) -> dict[str, StreamType]:
    names = [*graph.inputs, *(name for statement in program.statements for name in statement.targets)]
    return dict(zip(names, graph.types, strict=True))


def _is_chain(stretch: tuple[Statement, ...]) -> bool:
    """Whether each statement reads the one before, and nothing else."""
    alone = all(len(statement.operands) == len(statement.targets) == 1 for statement in stretch)
    return alone and all(later.operands == earlier.targets for earlier, later in pairwise(stretch))


def _written(chain: tuple[Application, ...], start: str, end: str) -> list[Statement]:
    names = [start, *(f"C{number}" for number in range(1, len(chain))), end]
    return [Statement((names[at + 1],), op, arguments, (names[at],)) for at, (op, arguments) in enumerate(chain)]
