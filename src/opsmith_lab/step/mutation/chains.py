"""Chains of unary primitives that lead from one type to another: longer ways through a program than single edits.

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

from opsmith.problems.dims import DimError, parse_dim
from opsmith.targets.step.language import ops
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import StreamType
from opsmith_lab.step.mutation.straight import Statement, StraightLine
from opsmith_lab.step.mutation.vocabulary import SHAPES, Application, list_applications

LONGEST = 3
CHANGING = ("Map", "Accum", "Scan", *SHAPES)


class Chains:
    """Chains over one task's functions and dims; the type of every step is worked out once."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.vocabulary = [entry for entry in list_applications(spec, products=False) if entry[0] in CHANGING]
        self._steps: dict[StreamType, dict[StreamType, list[Application]]] = {}

    def find_chains(
        self, start: StreamType, end: StreamType, longest: int = LONGEST
    ) -> Iterator[tuple[Application, ...]]:
        """Every chain of 1 to `longest` applications from type to type."""
        steps = self.list_steps(start)
        yield from ((entry,) for entry in steps.get(end, ()))
        if longest > 1:
            for middle, entries in steps.items():
                tails = list(self.find_chains(middle, end, longest - 1))
                yield from ((entry, *tail) for entry in entries for tail in tails)

    def list_steps(self, start: StreamType) -> dict[StreamType, list[Application]]:
        """The applications that are well-typed here, by what they make."""
        if start not in self._steps:
            self._steps[start] = {}
            for entry in self.vocabulary:
                result = self._infer_type(start, *entry)
                if result is not None:
                    self._steps[start].setdefault(result, []).append(entry)
        return self._steps[start]

    def _infer_type(self, stream: StreamType, op: str, arguments: tuple[tuple[str, str], ...]) -> StreamType | None:
        values: dict[str, Any] = {key: self._parse_value(key, text) for key, text in arguments}
        if op == "Reshape":
            values["sizes"] = self.spec.sizes
        try:
            if op == "Map":
                return ops.infer_map(streams=[stream], **values)
            return getattr(ops, f"infer_{op.lower()}")(x=stream, **values)  # type: ignore[no-any-return]
        except (ops.OpError, DimError):
            return None

    def _parse_value(self, key: str, text: str) -> object:
        if key == "fn":
            return self.spec.fn_table[text]
        return parse_dim(text) if key in ("n", "S") else ast.literal_eval(text)


def reroute_program(
    spec: TaskSpec, program: StraightLine, graph: Graph, longest: int = LONGEST
) -> Iterator[StraightLine]:
    """Every program in which a chain stands for a stretch of unary statements, or more in one stream."""
    names_made = (name for statement in program.statements for name in statement.targets)
    chains, kinds = Chains(spec), dict(zip([*graph.inputs, *names_made], graph.types, strict=True))
    for position, statement in enumerate(program.statements):
        for place, name in enumerate(statement.operands):
            for chain in chains.find_chains(kinds[name], kinds[name], longest):
                names = (*statement.operands[:place], "X", *statement.operands[place + 1 :])
                reading = replace(statement, operands=names)
                yield program.with_statements(position, position + 1, *_write_chain(chain, name, "X"), reading)
    for position, stop in _find_stretches(program):
        start, end = program.statements[position].operands[0], program.statements[stop - 1].targets[0]
        for chain in chains.find_chains(kinds[start], kinds[end], longest):
            yield program.with_statements(position, stop, *_write_chain(chain, start, end))


def _find_stretches(program: StraightLine) -> Iterator[tuple[int, int]]:
    """First and end of every run of unary statements that each read the one before."""
    count = len(program.statements)
    bounds = ((start, stop) for start in range(count) for stop in range(start + 1, count + 1))
    yield from ((start, stop) for start, stop in bounds if _is_chain(program.statements[start:stop]))


def _is_chain(stretch: tuple[Statement, ...]) -> bool:
    """Whether each statement reads the one before, and nothing else."""
    alone = all(len(statement.operands) == len(statement.targets) == 1 for statement in stretch)
    return alone and all(later.operands == earlier.targets for earlier, later in pairwise(stretch))


def _write_chain(chain: tuple[Application, ...], start: str, end: str) -> list[Statement]:
    names = [start, *(f"C{number}" for number in range(1, len(chain))), end]
    return [
        Statement((names[number + 1],), op, arguments, (names[number],)) for number, (op, arguments) in enumerate(chain)
    ]
