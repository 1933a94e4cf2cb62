"""The static guardian: insert Copy so that a program obeys the affine rule, and touch nothing else.

Where every extra consumption is written out as an expression of its own, the text is edited in place: Copies after the
statement that made the stream, and one copy's name at each use. Where it is not (loops, comprehensions, streams inside
a variable), the program is written anew as the straight line it unrolls to, with Copies.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence

from opsmith.targets.step.language.affine import copy_lines, copy_names
from opsmith.targets.step.language.build import AbstractStream
from opsmith.targets.step.language.check import Report, check_program
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.program import dedent_program, parse_program
from opsmith.targets.step.language.spec import TaskSpec

Edit = tuple[int, int, int, str]  # line (from 1), first and last column, replacement


def insert_copies(spec: TaskSpec, source: str) -> str | None:
    """The program with Copies inserted; None unless affine findings are all that is wrong with it."""
    report = check_program(spec, source)
    if not report.errors or any(error.kind != "AFFINE" for error in report.errors):
        return None
    for rewritten in (_edit_source(source, report), _unroll_program(spec, report)):
        if rewritten is not None and not check_program(spec, rewritten).errors:
            return rewritten
    return None


# -------------------------------------------------------------------- in place
def _edit_source(source: str, report: Report) -> str | None:
    text = dedent_program(source)
    tree, lines = parse_program(text), text.split("\n")
    used_names = set(re.findall(r"\w+", source))
    written = Counter(id(use.place) for stream in report.streams for use in stream.uses)
    edits: list[Edit] = []
    inserts: list[tuple[int, list[str]]] = []
    for stream in report.streams:
        if len(stream.uses) < 2:
            continue
        place = _end_of_statement(tree, stream)
        if place is None or any(written[id(use.place)] > 1 for use in stream.uses):
            return None
        names = fresh_copies(stream.name, len(stream.uses), used_names)
        inserts.append((place, copy_lines(stream.name, names)))
        for use, name in zip(stream.uses, use_names(names), strict=True):
            if use.place is None or use.place.end_col_offset is None or use.place.lineno != use.place.end_lineno:
                return None
            edits.append((use.place.lineno, use.place.col_offset, use.place.end_col_offset, name))
    return _apply_edits(lines, edits, inserts)


def _end_of_statement(tree: ast.Module, stream: AbstractStream) -> int | None:
    """The line after which the Copies go; 0 for an input, None where no statement at top level names the stream."""
    if stream.line is None:
        return 0
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and statement.lineno <= stream.line <= (statement.end_lineno or 0):
            names = [node.id for node in ast.walk(statement.targets[0]) if isinstance(node, ast.Name)]
            return statement.end_lineno if stream.name in names else None
    return None


def fresh_copies(name: str, uses: int, used_names: set[str]) -> list[str]:
    """Names of the copies that so many uses need, which nothing else has; they are added to those used."""
    stem = name
    while any(candidate in used_names for candidate in copy_names(stem, uses)):
        stem += "_"
    names = copy_names(stem, uses)
    used_names.update(names)
    return names


def use_names(names: Sequence[str]) -> list[str]:
    """One name per use: the first result of every Copy, and the last Copy's second."""
    return [*names[::2], names[-1]]


def _apply_edits(lines: list[str], edits: list[Edit], inserts: list[tuple[int, list[str]]]) -> str:
    for line, first, last, name in sorted(edits, reverse=True):
        text = lines[line - 1].encode()
        lines[line - 1] = (text[:first] + name.encode() + text[last:]).decode()
    for after, added in sorted(inserts, key=lambda insert: insert[0], reverse=True):
        lines[after:after] = added
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------- anew
def _unroll_program(spec: TaskSpec, report: Report) -> str | None:
    """The straight line that the program unrolls to, with Copies; its streams are named S0, S1, ... in order."""
    graph = report.unrolled
    return (
        None if graph is None else straight_line(graph, {stream.number: len(stream.uses) for stream in report.streams})
    )


def straight_line(graph: Graph, uses: dict[int, int]) -> str:
    """A program text for a graph: one application per line, Copies where `uses` of a stream number exceed one."""
    names = {number: [name] for number, name in enumerate(graph.inputs)}
    own = dict(enumerate(graph.inputs))
    text: list[str] = []
    for number in range(len(graph.inputs)):
        text += _write_copies(own[number], uses.get(number, 0), names, number)
    for node in graph.nodes:
        arguments = [names[stream].pop(0) for stream in node.operands]
        results = [f"T{stream}" for stream in node.results]
        own |= dict(zip(node.results, results, strict=True))
        is_list = node.op == "Partition" and len(results) == 1
        keywords = ", ".join(f"{key}={value}" for key, value in node.list_arguments())
        call = f"step.{node.op}({keywords}).apply({write_argument(node.op, arguments)})"
        text.append(f"{f'[{results[0]}]' if is_list else ', '.join(results)} = {call}")
        for stream in node.results:
            names[stream] = [own[stream]]
            text += _write_copies(own[stream], uses.get(stream, 0), names, stream)
    returned = ", ".join(own[stream] for stream in graph.outputs)
    return "\n".join([*text, f"return {returned}", ""])


def _write_copies(name: str, uses: int, names: dict[int, list[str]], number: int) -> list[str]:
    if uses < 2:
        return []
    copies = copy_names(name, uses)
    names[number] = use_names(copies)
    return copy_lines(name, copies)


def write_argument(op: str, names: Sequence[str]) -> str:
    """What an application takes; Merge's streams are a list before its index."""
    if op == "Merge":
        return f"([{', '.join(names[:-1])}], {names[-1]})"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"
