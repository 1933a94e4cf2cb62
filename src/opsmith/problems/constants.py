"""Constants: references with a small constant left out, another in its place, or added elsewhere.

A wrong program that gives the same differs from the reference by no more than that.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from itertools import islice

from opsmith.problems.authored import parse_code
from opsmith.problems.draws import Draw
from opsmith.problems.faults import TaskFault
from opsmith.problems.problem import OutputTensors, Problem
from opsmith.problems.reference import Values, compute_expected, label_texts

SMALL = 1e-2  # what is smaller stands in a formula so that nothing is divided by zero
MOST_CHANGES, MOST_NUMBERS = 64, 1 << 24  # that are tried for one draw, and that inputs have in all of them together
OTHERS = (1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)  # what may stand in its place


@dataclass(frozen=True)
class ChangedProblem:
    """A problem with another reference, and how it differs: `without its 1e-05 in line 1`."""

    change: str
    problem: Problem


def compute_changed(draw: Draw) -> tuple[tuple[str, Values], ...]:
    """How a constant was changed and what the reference gives then, wherever it gives numbers.

    Of references with many constants or much data not all is tried: it is but a hint.
    """
    data = draw.declared if draw.declared.random_global else draw.wide
    most = min(MOST_CHANGES, MOST_NUMBERS // max(1, sum(tensor.numel() for tensor in data.input_data.values())))
    values: list[tuple[str, Values]] = []
    for changed in islice(change_constants(draw.problem), most):
        with contextlib.suppress(TaskFault):
            values.append((changed.change, compute_expected(changed.problem, data)))
    return tuple(values)


def change_constants(problem: Problem) -> Iterator[ChangedProblem]:
    """The problem with each small constant of its reference changed, one at a time. Raises TaskFault."""
    scalars = {name: value for name, value in problem.scalars.items() if _is_small(value)}
    for name, value in scalars.items():
        for words, number in _list_others(value):
            yield ChangedProblem(f"{words} ({name})", replace(problem, scalars={**problem.scalars, name: number}))
    for label, text in label_texts(problem).items():
        tree = parse_code("TASK", text, label)
        for change in _change_tree(tree, scalars.keys()):
            yield ChangedProblem(change, _replace_text(problem, text, ast.unparse(ast.fix_missing_locations(tree))))


def _is_small(value: object) -> bool:
    return isinstance(value, float) and 0 < abs(value) < SMALL


def _list_others(value: float) -> Iterator[tuple[str, float]]:
    yield f"without its {value:g}", 0.0
    yield from ((f"with {number:g} in place of {value:g}", number) for number in OTHERS if number != value)


def _change_tree(tree: ast.Module, names: Set[str]) -> Iterator[str]:
    """Change a tree in place, each time from what it was."""
    for node in list(ast.walk(tree)):
        match node:
            case ast.Constant(value=float(value)) if _is_small(value):
                for words, node.value in _list_others(value):
                    yield f"{words} in line {node.lineno}"
                node.value = value
            case ast.Call(args=[ast.BinOp(op=ast.Add(), right=ast.Constant() | ast.Name() as constant) as total]):
                if _is_small(getattr(constant, "value", None)) or getattr(constant, "id", "") in names:
                    moved = ast.BinOp(ast.Call(node.func, [total.left], node.keywords), ast.Add(), constant)
                    SwapNode(node, moved).visit(tree)
                    yield f"with {ast.unparse(constant)} added behind {ast.unparse(node.func)} in line {node.lineno}"
                    SwapNode(moved, node).visit(tree)


class SwapNode(ast.NodeTransformer):
    """One node, by identity, replaced."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _replace_text(problem: Problem, old: str, new: str) -> Problem:
    """The problem with another text in the place of one of its reference."""

    def replace_in(output: OutputTensors) -> OutputTensors:
        return replace(output, references=tuple(new if text == old else text for text in output.references))

    reference = new if problem.reference == old else problem.reference
    return replace(problem, reference=reference, outputs=tuple(map(replace_in, problem.outputs)))
