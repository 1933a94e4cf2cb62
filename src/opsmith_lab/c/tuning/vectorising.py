"""Innermost loops whose turns run side by side: OpenMP's `simd`, with reductions and vector forms of functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.dependence import LoopFacts, ScalarReduction, find_reductions
from opsmith_lab.c.tuning.syntax import (
    CountedLoop,
    SyntaxTree,
    find_declaration,
    list_called,
    list_inner_loops,
    read_range,
    read_text,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_VECTOR = """
sin cos exp log pow acos acosh asin asinh atan atanh atan2 cbrt cosh erf erfc exp2 expm1 hypot log10 log1p log2 sinh
tan tanh
"""
VECTOR_FUNCTIONS = frozenset(name + suffix for name in _VECTOR.split() for suffix in ("", "f"))  # of libmvec
_LANES = 8
_TWO_ARGUMENTS = frozenset({"pow", "atan2", "hypot"})
_NUMBERS = frozenset("float double int int32_t int64_t uint32_t uint64_t long unsigned".split())  # noqa: SIM905

Edits = dict[tuple[int, int], str]


@dataclass(frozen=True)
class VectorLoop:
    """An innermost loop whose turns may run side by side."""

    loop: CountedLoop
    reductions: Sequence[ScalarReduction]
    calls: frozenset[str]  # functions with a vector form that it calls

    def write_pragma(self) -> str:
        clauses = [f"reduction({each.operator} : {each.name})" for each in self.reductions]
        return " ".join(["#pragma omp simd", *clauses])


def list_vector_loops(tree: SyntaxTree, is_again: bool = False) -> Iterator[VectorLoop]:
    """Those that no pragma stands before yet; with `is_again` those as well."""
    for loop in tree.loops:
        if list_inner_loops(loop.node) or _is_short(loop) or (has_pragma(loop.node) and not is_again):
            continue
        facts = LoopFacts(tree, loop)
        reductions = find_reductions(tree, loop, facts.outer_scalars)
        if reductions is None or not all(_is_number(each, loop.body) for each in reductions):
            continue
        if facts.is_parallel([each.name for each in reductions]):
            yield VectorLoop(loop, reductions, find_vector_calls(loop.body))


def has_pragma(node: Node) -> bool:
    """Whether a pragma stands directly before it."""
    sibling = node.prev_named_sibling
    while sibling is not None and sibling.type == "comment":
        sibling = sibling.prev_named_sibling
    return sibling is not None and sibling.type == "preproc_call"


def _is_short(loop: CountedLoop) -> bool:
    """Whether it has fewer turns than a vector has lanes."""
    text = read_text(loop.upper)
    return text.isdigit() and int(text) < _LANES


def find_loop_start(node: Node) -> int:
    """Where a loop begins, or the pragma before it."""
    sibling = node.prev_named_sibling
    return sibling.start_byte if sibling is not None and sibling.type == "preproc_call" else node.start_byte


def _is_number(reduction: ScalarReduction, body: Node) -> bool:
    variable = find_declaration(body, reduction.name)
    return variable is not None and variable.is_scalar and variable.type_text in _NUMBERS


def find_vector_calls(node: Node) -> frozenset[str]:
    return frozenset(list_called(node)) & VECTOR_FUNCTIONS


def edit_vector_loop(tree: SyntaxTree, vector_loop: VectorLoop, edits: Edits) -> None:
    """A pragma before the loop, and comparisons with `?:`, which have a vector form."""
    start = vector_loop.loop.node.start_byte
    edits[start, start] = f"\n{vector_loop.write_pragma()}\n"
    for reduction in vector_loop.reductions:
        if not reduction.is_plain:
            edits[read_range(reduction.statement)] = _write_choice(tree, reduction, vector_loop.loop.body)


def _write_choice(tree: SyntaxTree, reduction: ScalarReduction, body: Node) -> str:
    variable = find_declaration(body, reduction.name)
    kind = variable.type_text if variable is not None else "float"
    sign = ">" if reduction.operator == "max" else "<"
    next_name, name = tree.make_name("next"), reduction.name
    return (
        f"{{\n{kind} {next_name} = {read_text(reduction.value)};\n"
        f"{name} = {next_name} {sign} {name} ? {next_name} : {name};\n}}"
    )


def declare_vector_functions(tree: SyntaxTree, functions: Sequence[str], edits: Edits) -> None:
    """Declares them once more, as functions that have a vector form."""
    place = tree.find_last_include()
    lines = [f"\n{write_declaration(name)}" for name in list_undeclared(tree, functions)]
    if lines:
        edits[place, place] = "\n" + "".join(lines) + "\n"


def list_undeclared(tree: SyntaxTree, functions: Iterable[str]) -> list[str]:
    """Those that the program does not declare as having a vector form."""
    text = tree.source.decode()
    return [name for name in sorted(functions) if f"{name}({_list_types(name)});" not in text]


def write_declaration(name: str) -> str:
    kind = "float" if name.endswith("f") and name != "erf" else "double"
    return f'__attribute__((simd("notinbranch"))) {kind} {name}({_list_types(name)});'


def _list_types(name: str) -> str:
    is_single = name.endswith("f") and name != "erf"
    stem = name[:-1] if is_single else name
    return ", ".join(["float" if is_single else "double"] * (1 + (stem in _TWO_ARGUMENTS)))
