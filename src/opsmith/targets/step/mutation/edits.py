"""Every program that differs from a right one by a single edit.

An edit replaces one primitive, argument, function or stream, exchanges two names or two statements, drops, doubles or
inserts a statement, or returns something else. Most are not well-typed; that is for the checker to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.mutation.straight import Statement, StraightLine
from opsmith.targets.step.mutation.vocabulary import PAIRS, UNARY, Application, applications

NEW, SPARE = "X", "X_"  # what an edit names the streams that it makes


@dataclass(frozen=True)
class Edit:
    """A program and the kind of edit that made it."""

    kind: str  # primitive, argument, function, stream, order, drop, double, insert or return
    program: StraightLine


def edits(spec: TaskSpec, program: StraightLine) -> Iterator[Edit]:
    """All single edits of a program of the task, some of them equal to each other or to the program."""
    vocabulary = applications(spec)
    inputs = tuple(entry.name for entry in spec.inputs)
    for at, statement in enumerate(program.statements):
        scope = _scope(program, inputs, at)
        for kind, changed in _changed(statement, vocabulary, scope):
            yield Edit(kind, program.with_statements(at, at + 1, changed))
        yield from (Edit("drop", dropped) for dropped in _dropped(program, at))
        yield from (Edit("double", doubled) for doubled in _doubled(program, at))
    yield from (Edit("order", exchanged) for exchanged in _exchanged(program))
    yield from (Edit("insert", inserted) for inserted in _inserted(program, vocabulary))
    everything = _scope(program, inputs, len(program.statements))
    yield from (Edit("return", replace(program, returned=names)) for names in _other(program.returned, everything))


def _scope(program: StraightLine, inputs: Sequence[str], at: int) -> tuple[str, ...]:
    """The streams that statement `at` may read."""
    return (*inputs, *(name for statement in program.statements[:at] for name in statement.targets))


# -------------------------------------------------------------------- within a statement
def _changed(
    statement: Statement, vocabulary: Sequence[Application], scope: Sequence[str]
) -> Iterator[tuple[str, Statement]]:
    for op, arguments in vocabulary:
        if op == statement.op:
            yield from _reargued(statement, arguments)
        else:
            changed = replace(statement, op=op, arguments=arguments)
            yield from (("primitive", replace(changed, operands=names)) for names in _arities(changed, scope))
    yield from (("stream", replace(statement, operands=names)) for names in _other(statement.operands, scope))
    targets = statement.targets
    yield from (("order", replace(statement, targets=swapped)) for swapped in _swaps(targets))


def _reargued(statement: Statement, arguments: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, Statement]]:
    """The statement with these arguments, if one of them is another."""
    other = [key for key, value in arguments if value != statement.argument(key)]
    if len(other) == 1:
        yield "function" if other == ["fn"] else "argument", replace(statement, arguments=arguments)


def _arities(changed: Statement, scope: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Operands for another primitive: the same; each alone; and, where it wants a pair, with each stream in scope."""
    yield changed.operands
    if len(changed.operands) > 1 and changed.op in UNARY:
        yield from ((name,) for name in changed.operands)
    if len(changed.operands) == 1 and changed.op in PAIRS:
        yield from (pair for name in scope for pair in ((changed.operands[0], name), (name, changed.operands[0])))


def _other(names: tuple[str, ...], scope: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """One name replaced, left out, or added, or two exchanged."""
    for at in range(len(names)):
        yield from ((*names[:at], name, *names[at + 1 :]) for name in scope)
        if len(names) > 1:
            yield (*names[:at], *names[at + 1 :])
    yield from (added for name in scope for added in ((name, *names), (*names, name)))
    yield from _swaps(names)


def _swaps(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for left, right in combinations(range(len(names)), 2):
        swapped = list(names)
        swapped[left], swapped[right] = names[right], names[left]
        yield tuple(swapped)


# -------------------------------------------------------------------- between statements
def _dropped(program: StraightLine, at: int) -> Iterator[StraightLine]:
    """Without one statement: what read its results reads one of its operands."""
    statement = program.statements[at]
    rest = program.with_statements(at, at + 1)
    for operand in statement.operands:
        changed = rest
        for target in statement.targets:
            changed = changed.rewired(at, target, operand)
        yield changed


def _doubled(program: StraightLine, at: int) -> Iterator[StraightLine]:
    """One statement applied to its own result, in the place of each operand."""
    statement = program.statements[at]
    for target in statement.targets:
        first = replace(statement, targets=tuple(_fresh(name, target) for name in statement.targets))
        for operand in statement.operands:
            yield program.with_statements(at, at + 1, first, statement.renamed(operand, NEW))


def _fresh(name: str, chosen: str) -> str:
    return NEW if name == chosen else f"{name}_"


def _exchanged(program: StraightLine) -> Iterator[StraightLine]:
    """Two neighbouring statements in the other order."""
    for at, (first, second) in enumerate(zip(program.statements, program.statements[1:], strict=False)):
        yield program.with_statements(at, at + 2, second, first)


def _inserted(program: StraightLine, vocabulary: Sequence[Application]) -> Iterator[StraightLine]:
    """One more unary statement before each single use of a stream."""
    for op, arguments in vocabulary:
        if op in UNARY:
            targets = (NEW, SPARE) if op == "Copy" else (NEW,)
            yield from _inserted_one(program, Statement(targets, op, arguments, ()))


def _inserted_one(program: StraightLine, new: Statement) -> Iterator[StraightLine]:
    for at, statement in enumerate(program.statements):
        for place, name in enumerate(statement.operands):
            reading = replace(statement, operands=_put(statement.operands, place))
            yield program.with_statements(at, at + 1, replace(new, operands=(name,)), reading)
    end = len(program.statements)
    for place, name in enumerate(program.returned):
        longer = program.with_statements(end, end, replace(new, operands=(name,)))
        yield replace(longer, returned=_put(program.returned, place))


def _put(names: tuple[str, ...], place: int) -> tuple[str, ...]:
    return (*names[:place], NEW, *names[place + 1 :])
