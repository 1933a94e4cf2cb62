"""Every program that differs from a right one by a single edit.

An edit replaces one primitive, argument, function or stream, exchanges two names or two statements, drops, doubles or
inserts a statement, or returns something else. Most are not well-typed; that is for the checker to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from opsmith.targets.step.language.spec import TaskSpec
from opsmith_lab.step.mutation.straight import Statement, StraightLine
from opsmith_lab.step.mutation.vocabulary import PAIRS, UNARY, Application, list_applications

NEW, SPARE = "X", "X_"  # what an edit names the streams that it makes


@dataclass(frozen=True)
class Edit:
    """A program and the kind of edit that made it."""

    kind: str  # primitive, argument, function, stream, order, drop, double, insert or return
    program: StraightLine


def edit_program(spec: TaskSpec, program: StraightLine) -> Iterator[Edit]:
    """All single edits of a program of the task, some of them equal to each other or to the program."""
    vocabulary = list_applications(spec)
    inputs = tuple(entry.name for entry in spec.inputs)
    for place, statement in enumerate(program.statements):
        scope = _names_in_scope(program, inputs, place)
        for kind, changed in _change_statement(statement, vocabulary, scope):
            yield Edit(kind, program.with_statements(place, place + 1, changed))
        yield from (Edit("drop", dropped) for dropped in _drop_statement(program, place))
        yield from (Edit("double", doubled) for doubled in _double_statement(program, place))
    for place, (first, second) in enumerate(pairwise(program.statements)):
        yield Edit("order", program.with_statements(place, place + 2, second, first))
    yield from (Edit("insert", inserted) for inserted in _insert_applications(program, vocabulary))
    everything = _names_in_scope(program, inputs, len(program.statements))
    yield from (
        Edit("return", replace(program, returned=names)) for names in _change_names(program.returned, everything)
    )


def _names_in_scope(program: StraightLine, inputs: Sequence[str], place: int) -> tuple[str, ...]:
    """The streams that statement `place` may read."""
    return (*inputs, *(name for statement in program.statements[:place] for name in statement.targets))


# -------------------------------------------------------------------- within a statement
def _change_statement(
    statement: Statement, vocabulary: Sequence[Application], scope: Sequence[str]
) -> Iterator[tuple[str, Statement]]:
    for op, arguments in vocabulary:
        if op == statement.op:
            yield from _change_arguments(statement, arguments)
        else:
            changed = replace(statement, op=op, arguments=arguments)
            yield from (("primitive", replace(changed, operands=names)) for names in _fit_operands(changed, scope))
    yield from (("stream", replace(statement, operands=names)) for names in _change_names(statement.operands, scope))
    targets = statement.targets
    yield from (("order", replace(statement, targets=swapped)) for swapped in _swap_names(targets))


def _change_arguments(statement: Statement, arguments: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, Statement]]:
    """The statement with these arguments, if one of them is another."""
    changed_keys = [key for key, value in arguments if value != statement.argument_text(key)]
    if len(changed_keys) == 1:
        yield "function" if changed_keys == ["fn"] else "argument", replace(statement, arguments=arguments)


def _fit_operands(changed: Statement, scope: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Operands for another primitive: the same; each alone; and, where it wants a pair, with each stream in scope."""
    yield changed.operands
    if len(changed.operands) > 1 and changed.op in UNARY:
        yield from ((name,) for name in changed.operands)
    if len(changed.operands) == 1 and changed.op in PAIRS:
        yield from (pair for name in scope for pair in ((changed.operands[0], name), (name, changed.operands[0])))


def _change_names(names: tuple[str, ...], scope: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """One name replaced, left out, or added, or two exchanged."""
    for place in range(len(names)):
        yield from ((*names[:place], name, *names[place + 1 :]) for name in scope)
        if len(names) > 1:
            yield (*names[:place], *names[place + 1 :])
    yield from (added for name in scope for added in ((name, *names), (*names, name)))
    yield from _swap_names(names)


def _swap_names(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for first, second in combinations(range(len(names)), 2):
        swapped = list(names)
        swapped[first], swapped[second] = names[second], names[first]
        yield tuple(swapped)


# -------------------------------------------------------------------- between statements
def _drop_statement(program: StraightLine, place: int) -> Iterator[StraightLine]:
    """Without one statement: what read its results reads one of its operands."""
    statement = program.statements[place]
    shortened = program.with_statements(place, place + 1)
    for operand in statement.operands:
        changed = shortened
        for target in statement.targets:
            changed = changed.rewire_from(place, target, operand)
        yield changed


def _double_statement(program: StraightLine, place: int) -> Iterator[StraightLine]:
    """One statement applied to its own result, in the place of each operand."""
    statement = program.statements[place]
    for target in statement.targets:
        first = replace(statement, targets=tuple(NEW if name == target else f"{name}_" for name in statement.targets))
        for operand in statement.operands:
            yield program.with_statements(place, place + 1, first, statement.rename_operand(operand, NEW))


def _insert_applications(program: StraightLine, vocabulary: Sequence[Application]) -> Iterator[StraightLine]:
    """One more unary statement before each single use of a stream."""
    for op, arguments in vocabulary:
        if op in UNARY:
            targets = (NEW, SPARE) if op == "Copy" else (NEW,)
            yield from _insert_statement(program, Statement(targets, op, arguments, ()))


def _insert_statement(program: StraightLine, new: Statement) -> Iterator[StraightLine]:
    for place, statement in enumerate(program.statements):
        for slot, name in enumerate(statement.operands):
            reading = replace(statement, operands=_put_new(statement.operands, slot))
            yield program.with_statements(place, place + 1, replace(new, operands=(name,)), reading)
    end = len(program.statements)
    for slot, name in enumerate(program.returned):
        longer = program.with_statements(end, end, replace(new, operands=(name,)))
        yield replace(longer, returned=_put_new(program.returned, slot))


def _put_new(names: tuple[str, ...], place: int) -> tuple[str, ...]:
    return (*names[:place], NEW, *names[place + 1 :])
