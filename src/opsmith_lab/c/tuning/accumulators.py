"""A sum over a loop as several sums side by side, more than fill one vector, so that no addition waits for the last."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith_lab.c.tuning.dependence import ScalarReduction
from opsmith_lab.c.tuning.syntax import (
    SyntaxTree,
    exchange_names,
    find_declaration,
    list_statements,
    read_text,
)
from opsmith_lab.c.tuning.vectorising import Edits, VectorLoop, declare_vector_functions, find_loop_start

_IDENTITIES = {"+": "0", "*": "1"}


def split_accumulators(tree: SyntaxTree, vector_loop: VectorLoop, count: int) -> str:
    """The loop in blocks of `count` turns, each with partial results of its own, and what is over behind it."""
    loop, names = vector_loop.loop, {each.name: tree.make_name(f"{each.name}_parts") for each in vector_loop.reductions}
    place, start = tree.make_name(f"{loop.variable}_place"), tree.make_name(f"{loop.variable}_start")
    turn = f"for (int64_t {place} = 0; {place} < {count}; {place}++) {{"
    lines = [_declare_parts(tree, each, names[each.name], count) for each in vector_loop.reductions]
    lines += ["#pragma omp simd", turn]
    lines += [
        f"{names[each.name]}[{place}] = {_IDENTITIES.get(each.operator, each.name)};" for each in vector_loop.reductions
    ]
    lines += ["}", f"{loop.type_text} {start} = {read_text(loop.lower)};"]
    lines += [f"for (; {start} + {count} <= {read_text(loop.upper)}; {start} += {count}) {{", "#pragma omp simd", turn]
    lines += [f"{loop.type_text} {loop.variable} = {start} + {place};"]
    spread = {name: f"{names_of}[{place}]" for name, names_of in names.items()}
    lines += [*_write_body(tree, vector_loop, spread), "}", "}", vector_loop.write_pragma(), turn]
    lines += [_gather_parts(each, f"{names[each.name]}[{place}]") for each in vector_loop.reductions]
    lines += ["}", f"for ({loop.type_text} {loop.variable} = {start}; {loop.variable} < {read_text(loop.upper)}; "]
    lines[-1] += f"{loop.variable}++) {{"
    lines += [*_write_body(tree, vector_loop, {}), "}"]
    edits: Edits = {(find_loop_start(loop.node), loop.node.end_byte): "{\n" + "\n".join(lines) + "\n}"}
    declare_vector_functions(tree, sorted(vector_loop.calls), edits)
    return tree.replace_ranges(edits)


def _declare_parts(tree: SyntaxTree, reduction: ScalarReduction, parts: str, count: int) -> str:
    variable = find_declaration(reduction.statement, reduction.name)
    kind = variable.type_text if variable is not None else "float"
    return f"{kind} {parts}[{count}];"


def _write_body(tree: SyntaxTree, vector_loop: VectorLoop, spread: dict[str, str]) -> Sequence[str]:
    lines = []
    choices = {each.statement.id: each for each in vector_loop.reductions if not each.is_plain}
    for statement in list_statements(vector_loop.loop.body):
        choice = choices.get(statement.id)
        if choice is None:
            lines.append(exchange_names(statement, spread))
        else:
            lines.append(_write_choice(tree, choice, spread.get(choice.name, choice.name)))
    return lines


def _write_choice(tree: SyntaxTree, reduction: ScalarReduction, place: str) -> str:
    variable = find_declaration(reduction.statement, reduction.name)
    kind = variable.type_text if variable is not None else "float"
    next_name, sign = tree.make_name("next"), ">" if reduction.operator == "max" else "<"
    return (
        f"{kind} {next_name} = {read_text(reduction.value)};\n"
        f"{place} = {next_name} {sign} {place} ? {next_name} : {place};"
    )


def _gather_parts(reduction: ScalarReduction, part_text: str) -> str:
    if reduction.is_plain:
        return f"{reduction.name} {reduction.operator}= {part_text};"
    sign = ">" if reduction.operator == "max" else "<"
    return f"{reduction.name} = {part_text} {sign} {reduction.name} ? {part_text} : {reduction.name};"
