"""Other ways to write a right program, which the verdict must accept as well.

Renamed locals, independent statements in another order, exchanged operands of a fn that commutes, pairs zipped before
the Map, and Copies handed out in another order. All keep the meaning by construction.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.types import fields_of
from opsmith.targets.step.mutation.fn_laws import exchangeable
from opsmith.targets.step.mutation.straight import Statement, StraightLine

ORDERS = 8  # random topological orders tried


@dataclass(frozen=True)
class Variant:
    """A program and what was changed."""

    kind: str  # names, order, operands, zip or copies
    program: StraightLine


def variants(spec: TaskSpec, program: StraightLine) -> Iterator[Variant]:
    """Variants of a program of the task; the orders are the same every time."""
    yield Variant("names", _renamed(program))
    rng = random.Random(0)
    orders = {_reordered(program, rng) for _ in range(ORDERS)} - {program}
    yield from (Variant("order", changed) for changed in sorted(orders, key=str))
    for at, statement in enumerate(program.statements):
        yield from (Variant("operands", program.with_statements(at, at + 1, new)) for new in _operands(spec, statement))
        if statement.op == "Map" and len(statement.operands) > 1:
            yield Variant("zip", program.with_statements(at, at + 1, *_zipped_first(statement)))
        if statement.op == "Copy":
            exchanged = replace(statement, targets=statement.targets[::-1])
            yield Variant("copies", program.with_statements(at, at + 1, exchanged))


def _renamed(program: StraightLine) -> StraightLine:
    made = [name for statement in program.statements for name in statement.targets]
    names = {name: f"stream_{len(made) - at}" for at, name in enumerate(made)}
    statements = [
        replace(
            statement, targets=_translated(names, statement.targets), operands=_translated(names, statement.operands)
        )
        for statement in program.statements
    ]
    return StraightLine(tuple(statements), _translated(names, program.returned))


def _translated(names: dict[str, str], given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in given)


def _reordered(program: StraightLine, rng: random.Random) -> StraightLine:
    """The statements in a random order in which each comes after those that make its operands."""
    left, done = list(program.statements), []
    pending = {name for statement in left for name in statement.targets}
    while left:
        ready = [statement for statement in left if not pending & set(statement.operands)]
        chosen = rng.choice(ready)
        left.remove(chosen)
        done.append(chosen)
        pending -= set(chosen.targets)
    return replace(program, statements=tuple(done))


def _operands(spec: TaskSpec, statement: Statement) -> Iterator[Statement]:
    """A Map of streams of one field each, with two of them exchanged that its fn treats alike."""
    fn = spec.fn_table.get(statement.argument("fn") or "")
    if fn is None or statement.op != "Map" or len(statement.operands) != len(fields_of(fn.input_dtype)):
        return
    for i, j in exchangeable(fn):
        names = list(statement.operands)
        names[i], names[j] = names[j], names[i]
        yield replace(statement, operands=tuple(names))


def _zipped_first(statement: Statement) -> list[Statement]:
    """Zips of the operands from left to right, then the Map of one stream."""
    made, name = [], statement.operands[0]
    for number, operand in enumerate(statement.operands[1:]):
        made.append(Statement((f"Z{number}",), "Zip", (), (name, operand)))
        name = f"Z{number}"
    return [*made, replace(statement, operands=(name,))]
