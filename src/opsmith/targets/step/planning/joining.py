"""One program out of several: those of a split's parts, with names of their own, bound to each other's results.

A value that several parts take is copied, so that each has a stream of its own: the affine rule holds across parts.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.errors import TaskError
from opsmith.splits import PlanNode, Split
from opsmith.targets.step.language.affine import copy_lines
from opsmith.targets.step.language.check import check_program
from opsmith.targets.step.language.copies import fresh_copies, insert_copies, use_names
from opsmith.targets.step.language.expressions import stored_names
from opsmith.targets.step.language.program import dedent_program, parse_program
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.step.language.values import BUILTINS
from opsmith.targets.step.planning.statements import list_names


@dataclass(frozen=True)
class PartProgram:
    """A program for one part of a split, and the task of that part."""

    node: PlanNode
    spec: TaskSpec
    source: str


def join_parts(spec: TaskSpec, split: Split, programs: Sequence[PartProgram]) -> str:
    """A program for the whole task, from right ones for its parts, in their order. Raises TaskError.

    Shapes  every border has the type and dims that its part's task declares, in all parts
    """
    joiner = _Joiner(spec, split)
    for program in programs:
        joiner.add_part(program)
    text = "\n".join([*joiner.rows, f"return {', '.join(joiner.streams[name] for name in split.outputs)}", ""])
    report = check_program(spec, text)
    if report.errors and (mended := insert_copies(spec, text)) is not None:
        return mended
    if report.errors:
        raise TaskError(f"parts that cannot be joined: {report.errors[0]}", report.errors)
    return text


class _Joiner:
    """The rows of a joined program, and the stream that stands for each value of the split."""

    def __init__(self, spec: TaskSpec, split: Split) -> None:
        self.rows: list[str] = []
        self.streams = {tensor.name: tensor.name for tensor in spec.inputs}
        self._takers = {name: sum(node.takes.count(name) for node in split.nodes) for name in _list_values(spec, split)}
        self._copies: dict[str, list[str]] = {}
        self._used = {*BUILTINS, *self.streams, *spec.fn_table, *_list_sizes(spec)}
        for tensor in spec.inputs:
            self._copy_value(tensor.name)

    def add_part(self, program: PartProgram) -> None:
        """The rows of a part: what it takes bound to its names, its statements, what it gives."""
        tree = _parse_body(program)
        self._used |= {name for statement in tree for name in list_names(statement)}
        takes = program.node.takes
        own = dict.fromkeys([*takes, *(name for statement in tree for name in stored_names(statement)[0])])
        renamed = {name: self._name_freshly(f"{program.node.name}_{name}") for name in own}
        self.rows += [f"{renamed[name]} = {self._copies[name].pop(0)}" for name in takes]
        visible = {*program.spec.fn_table, *_list_sizes(program.spec)}
        self.rows += [f"{renamed[name]} = {name}" for name in own if name in visible and name not in takes]
        renamer = _Renamer(renamed)
        self.rows += [ast.unparse(renamer.visit(statement)) for statement in tree[:-1]]
        self._bind_results(program, renamer.visit(tree[-1]))

    def _bind_results(self, program: PartProgram, ending: ast.Return) -> None:
        assert ending.value is not None
        borders = [border.name for border in program.node.gives]
        for name in borders:
            self.streams[name] = self._name_freshly(name)
        targets = ", ".join(self.streams[name] for name in borders)
        is_list = len(borders) == 1 and _returns_list(program)
        self.rows.append(f"{f'[{targets}]' if is_list else targets} = {ast.unparse(ending.value)}")
        for name in borders:
            self._copy_value(name)

    def _copy_value(self, name: str) -> None:
        """One stream for each part that takes a value."""
        stream, uses = self.streams[name], self._takers[name]
        self._copies[name] = [stream]
        if uses < 2:
            return
        copies = fresh_copies(stream, uses, self._used)
        self._copies[name] = use_names(copies)
        self.rows += copy_lines(stream, copies)

    def _name_freshly(self, name: str) -> str:
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


def _parse_body(program: PartProgram) -> list[ast.stmt]:
    """The statements of a program without docstrings, a return last. Raises TaskError."""
    try:
        tree = ast.parse(dedent_program(program.source))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"the program of part {program.node.name} does not parse: {error}") from None
    body = [statement for statement in tree.body if not _is_text(statement)]
    if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
        raise TaskError(f"the program of part {program.node.name} has no return of streams at its end")
    return body


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _returns_list(program: PartProgram) -> bool:
    """Whether a program for one output returns a list or tuple of it: it does if that can be unpacked."""
    tree = parse_program(dedent_program(program.source))
    ending = tree.body[-1]
    assert isinstance(ending, ast.Return)
    assert ending.value is not None
    names = {name for statement in tree.body for name in list_names(statement)}
    single = "single"
    while single in names:
        single += "_"
    rows = [ast.unparse(statement) for statement in tree.body[:-1]]
    unpacked = "\n".join([*rows, f"[{single}] = {ast.unparse(ending.value)}", f"return {single}"])
    return not any(error.kind == "LANG" for error in check_program(program.spec, unpacked).errors)


def _list_values(spec: TaskSpec, split: Split) -> list[str]:
    return [*(tensor.name for tensor in spec.inputs), *(border.name for node in split.nodes for border in node.gives)]


def _list_sizes(spec: TaskSpec) -> list[str]:
    """Symbols and sizes: names that every program sees."""
    symbols = {*spec.sizes, *spec.problem.symbols}
    return sorted({*symbols, *(f"{symbol}_value" for symbol in symbols)})
