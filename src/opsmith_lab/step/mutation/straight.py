"""A program as a straight line of applications, which are what there is to edit.

Every program unrolls to one. A text that is straight already keeps its names; any other is written anew.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.copies import straight_line, write_argument
from opsmith.targets.step.language.program import dedent_program
from opsmith.targets.step.language.spec import TaskSpec

Arguments = tuple[tuple[str, str], ...]  # keyword and text of its value


@dataclass(frozen=True)
class Statement:
    """`targets = step.op(arguments).apply(operands)`; Merge's operands are its streams, then the index."""

    targets: tuple[str, ...]
    op: str
    arguments: Arguments
    operands: tuple[str, ...]

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={value}" for key, value in self.arguments)
        return (
            f"{', '.join(self.targets)} = step.{self.op}({arguments}).apply({write_argument(self.op, self.operands)})"
        )

    def argument_text(self, key: str) -> str | None:
        return dict(self.arguments).get(key)

    def rename_operand(self, old: str, new: str) -> Statement:
        """The statement that reads `new` where this one reads `old`."""
        return replace(self, operands=tuple(new if name == old else name for name in self.operands))


@dataclass(frozen=True)
class StraightLine:
    """A program: statements, and the names it returns."""

    statements: tuple[Statement, ...]
    returned: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.statements), f"return {', '.join(self.returned)}", ""])

    def with_statements(self, start: int, stop: int, *new: Statement) -> StraightLine:
        """The program with statements start .. stop - 1 replaced by the new ones."""
        return replace(self, statements=(*self.statements[:start], *new, *self.statements[stop:]))

    def rewire_from(self, start: int, old: str, new: str) -> StraightLine:
        """The program in which the statements from `start` on, and the return, read `new` instead of `old`."""
        later = [statement.rename_operand(old, new) for statement in self.statements[start:]]
        returned = tuple(new if name == old else name for name in self.returned)
        return StraightLine((*self.statements[:start], *later), returned)


def read_straight(spec: TaskSpec, source: str) -> StraightLine:
    """A right program as a straight line. Raises ValueError for one that is not right."""
    try:
        return _read_program(source)
    except _NotStraight:
        graph = check_program(spec, source).graph
    if graph is None:
        raise ValueError("the program to mutate: given one that the checker refuses; expected a right one")
    return _read_program(straight_line(graph, {}))


class _NotStraight(Exception):
    """A loop, a nested application, or a value in a variable."""


def _read_program(source: str) -> StraightLine:
    *statements, last = ast.parse(f"def body():\n{_indent_source(source)}").body[0].body  # type: ignore[attr-defined]
    if not isinstance(last, ast.Return) or last.value is None:
        raise _NotStraight
    return StraightLine(tuple(_read_statement(statement) for statement in statements), _list_names(last.value))


def _indent_source(source: str) -> str:
    return "\n".join(" " + line for line in dedent_program(source).split("\n"))


def _read_statement(node: ast.stmt) -> Statement:
    """`T = step.Op(k=v).apply(X)` with names for targets and operands."""
    match node:
        case ast.Assign(
            targets=[target],
            value=ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr=op), keywords=keywords), attr="apply"),
                args=[argument],
            ),
        ):
            arguments = tuple((str(keyword.arg), ast.unparse(keyword.value)) for keyword in keywords)
            return Statement(_list_names(target), op, arguments, _list_names(argument))
    raise _NotStraight


def _list_names(node: ast.expr) -> tuple[str, ...]:
    """The names in a name, a tuple or a list, from left to right."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(name for element in node.elts for name in _list_names(element))
    raise _NotStraight
