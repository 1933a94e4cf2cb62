"""Pieces of Python text for generated scripts: types, dims and shapes as expressions, author's code re-indented."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterable, Mapping, Sequence

from opsmith.problems.dims import Dim
from opsmith.targets.step.ir.code import SIZE_SUFFIX
from opsmith.targets.step.language.types import Buffer, DType, Field, Multihot, Scalar, Tuple, array_shape


def type_code(dtype: DType) -> str:
    """An element type as an expression of `step`.

    >>> from opsmith.targets.step.language.types import parse_type
    >>> print(type_code(parse_type(["fp32", "Buffer(fp32, [D, 2])"])))
    step.STuple((step.Scalar("fp32"), step.Buffer(step.Scalar("fp32"), [D, 2])))
    """
    if isinstance(dtype, Tuple):
        return f"step.STuple(({', '.join(type_code(field) for field in dtype.fields)}))"
    if isinstance(dtype, Scalar):
        return f'step.Scalar("{dtype.name}")'
    if isinstance(dtype, Multihot):
        return f"step.Multihot({type_code(dtype.scalar)}, {dim_code(dtype.length)})"
    assert isinstance(dtype, Buffer)
    return f"step.Buffer({type_code(dtype.elem)}, {dims_code(dtype.dims)})"


def dims_code(dims: Iterable[Dim]) -> str:
    return f"[{', '.join(dim_code(dim) for dim in dims)}]"


def dim_code(dim: Dim, suffix: str = "", divide: str = "/") -> str:
    """A dim as an expression; `suffix` turns symbols into sizes. A quotient is built on a symbol, never on ints."""
    top = [name + suffix for name, power in dim.powers for _ in range(power)]
    top += [str(dim.coefficient.numerator)] if dim.coefficient.numerator != 1 or not top else []
    bottom = [name + suffix for name, power in dim.powers for _ in range(-power)]
    bottom += [str(dim.coefficient.denominator)] if dim.coefficient.denominator != 1 else []
    product = " * ".join(top)
    divisor = f"({' * '.join(bottom)})" if len(bottom) > 1 else "".join(bottom)
    return f"{product} {divide} {divisor}" if bottom else product


def shape_code(field: Field, dims: Sequence[Dim]) -> str:
    """The sizes of a stream's tensor, outermost first.

    >>> from opsmith.targets.step.language.types import FP32, parse_dims
    >>> shape_code(FP32, parse_dims(["D/2", "N*K", 1]))
    '1, K_value * N_value, D_value // 2'
    """
    return ", ".join(dim_code(dim, SIZE_SUFFIX, "//") for dim in array_shape(field, dims))


def class_name(label: str, reserved: frozenset[str]) -> str:
    """The label, changed where the script or Python needs the name."""
    return f"{label}_" if label in reserved or hasattr(builtins, label) else label


def assigned_names(texts: Iterable[str]) -> frozenset[str]:
    """The names that texts bind at their top level, each text being a module."""
    names: set[str] = set()
    for text in texts:
        table = symtable.symtable(text, "text", "exec")
        names |= {entry.get_name() for entry in table.get_symbols() if entry.is_assigned() or entry.is_imported()}
    return frozenset(names)


def indent_text(text: str, width: int) -> str:
    """The text moved to the right; lines inside multi-line strings, and blank ones, stay as they are."""
    lines = text.split("\n")
    string_lines = _string_lines(text)
    moved = [
        line if number in string_lines or not line.strip() else " " * width + line
        for number, line in enumerate(lines, 1)
    ]
    return "\n".join(moved)


def _string_lines(text: str) -> set[int]:
    """Lines that begin inside a string literal."""
    numbers: set[int] = set()
    body = "\n".join(f" {line}" for line in text.split("\n"))  # whatever its statements are
    for node in ast.walk(ast.parse(f"def f():\n{body}")):
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(getattr(node, "value", ""), str):
            numbers.update(range(node.lineno, (node.end_lineno or node.lineno)))
    return numbers


def function_text(name: str, captured: Sequence[str], body: str, parameters: Sequence[str] = ()) -> str:
    """A function with this body; `captured` names keep the value they have outside until the body assigns them."""
    keywords = ["*", *(f"{entry}={entry}" for entry in captured)] if captured else []
    return f"def {name}({', '.join([*parameters, *keywords])}):\n{indent_text(body, 4)}"


def bind_value(text: str, name: str) -> str:
    """A text whose last statement has a value, rewritten so that `name` holds it.

    >>> print(bind_value("x = 2\\nx + 1  # three\\n", "y"), end="")
    x = 2
    y = (x + 1)  # three
    """
    last = ast.parse(text).body[-1]
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name):
        return f"{text}{name} = {last.targets[0].id}\n"
    start, end = (
        _find_offset(text, last.lineno, last.col_offset),
        _find_offset(text, last.end_lineno or 1, last.end_col_offset or 0),
    )
    return f"{text[:start]}{name} = ({text[start:end]}){text[end:]}"


def _find_offset(text: str, line: int, column: int) -> int:
    """The position of a line and a UTF-8 column, as `ast` counts them."""
    lines = text.split("\n")
    return sum(len(row) + 1 for row in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())


def pinned_global(text: str, pins: Mapping[str, str]) -> str:
    """`global` with the line `pins[place]` after every top-level statement that may store at that place."""
    if not text:
        return ""
    lines, after = text.rstrip("\n").split("\n"), dict[int, list[str]]()
    for statement in ast.parse(text).body:
        stored = _stored_names(statement)
        rows = [row for place, row in pins.items() if place in stored]
        after.setdefault(statement.end_lineno or 1, []).extend(rows)
    return (
        "\n".join(row for number, line in enumerate(lines, 1) for row in (line, *_missing_rows(after, number, line)))
        + "\n"
    )


def _missing_rows(after: Mapping[int, Sequence[str]], number: int, line: str) -> list[str]:
    """The rows to come after a line that does not say the same itself."""
    return [row for row in after.get(number, ()) if row != line.strip()]


def _stored_names(statement: ast.stmt) -> set[str]:
    """Names that a statement stores, and `ctx[X]`."""
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Subscript) and isinstance(node.ctx, ast.Store):
            names.add(ast.unparse(node))
    return names
