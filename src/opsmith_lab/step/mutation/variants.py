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
from opsmith_lab.step.mutation.fn_laws import find_exchangeable
from opsmith_lab.step.mutation.straight import Statement, StraightLine

ORDERS = 8  # random topological orders tried


@dataclass(frozen=True)
class Rewrite:
    """A program and what was changed."""

    kind: str  # names, order, operands, zip or copies
    program: StraightLine


def rewrite_program(spec: TaskSpec, program: StraightLine) -> Iterator[Rewrite]:
    """Rewrites of a program of the task; the orders are the same every time."""
    yield Rewrite("names", _rename_targets(program))
    rng = random.Random(0)
    orders = {_reorder_statements(program, rng) for _ in range(ORDERS)} - {program}
    yield from (Rewrite("order", changed) for changed in sorted(orders, key=str))
    for place, statement in enumerate(program.statements):
        yield from (
            Rewrite("operands", program.with_statements(place, place + 1, new))
            for new in _exchange_operands(spec, statement)
        )
        if statement.op == "Map" and len(statement.operands) > 1:
            yield Rewrite("zip", program.with_statements(place, place + 1, *_zip_first(statement)))
        if statement.op == "Copy":
            exchanged = replace(statement, targets=statement.targets[::-1])
            yield Rewrite("copies", program.with_statements(place, place + 1, exchanged))


def _rename_targets(program: StraightLine) -> StraightLine:
    targets = [name for statement in program.statements for name in statement.targets]
    names = {name: f"stream_{len(targets) - number}" for number, name in enumerate(targets)}
    statements = [
        replace(
            statement,
            targets=_translate_names(names, statement.targets),
            operands=_translate_names(names, statement.operands),
        )
        for statement in program.statements
    ]
    return StraightLine(tuple(statements), _translate_names(names, program.returned))


def _translate_names(names: dict[str, str], originals: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in originals)


def _reorder_statements(program: StraightLine, rng: random.Random) -> StraightLine:
    """The statements in a random order in which each comes after those that make its operands."""
    waiting, ordered = list(program.statements), []
    pending = {name for statement in waiting for name in statement.targets}
    while waiting:
        ready = [statement for statement in waiting if not pending & set(statement.operands)]
        chosen = rng.choice(ready)
        waiting.remove(chosen)
        ordered.append(chosen)
        pending -= set(chosen.targets)
    return replace(program, statements=tuple(ordered))


def _exchange_operands(spec: TaskSpec, statement: Statement) -> Iterator[Statement]:
    """A Map of streams of one field each, with two of them exchanged that its fn treats alike."""
    fn = spec.fn_table.get(statement.argument_text("fn") or "")
    if fn is None or statement.op != "Map" or len(statement.operands) != len(fields_of(fn.input_dtype)):
        return
    for i, j in find_exchangeable(fn):
        names = list(statement.operands)
        names[i], names[j] = names[j], names[i]
        yield replace(statement, operands=tuple(names))


def _zip_first(statement: Statement) -> list[Statement]:
    """Zips of the operands from left to right, then the Map of one stream."""
    zips, name = [], statement.operands[0]
    for number, operand in enumerate(statement.operands[1:]):
        zips.append(Statement((f"Z{number}",), "Zip", (), (name, operand)))
        name = f"Z{number}"
    return [*zips, replace(statement, operands=(name,))]
