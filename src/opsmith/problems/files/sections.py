"""Sections that all authors' files have: shape sets, hand-made inputs, and the check that every dim is whole there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from opsmith.problems.constraints import ConstraintError, list_symbols, satisfies_constraint
from opsmith.problems.dims import Dim, DimError
from opsmith.problems.files.entries import Entry, describe_node, is_name
from opsmith.problems.files.nodes import Findings, Located
from opsmith.problems.problem import CaseSpec

MAX_SHAPES = 32  # sets of one file, at each of which every dim is checked
MAX_SIZE = 2**31 - 1  # of one axis


def read_shapes(top: Entry, sizes: Mapping[str, int], key: str = "shapes") -> dict[str, dict[str, int]]:
    """The shape sets under a key of the file: name -> symbol -> size."""
    node = top.get(key)
    if node is None:
        return {}
    names = tuple(node.value) if isinstance(node.value, dict) else ()
    if len(names) > MAX_SHAPES:
        top.report_error(
            node, key, f"{len(names)} sets", f"at most {MAX_SHAPES}", "keep those that tell programs apart"
        )
        return {}
    sets = Entry(top.findings, top.names, node, key, names or ("a name for each set",))
    return {name: _read_shape(sets, name, sizes) for name in names}


def _read_shape(sets: Entry, name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    node = sets.need_value(name, "sizes, such as {M: 3}")
    if not re.fullmatch(r"[\w-]{1,40}", name, re.ASCII):
        sets.report_error(node, name[:40], repr(name[:40]), "a short name of letters, digits, _ and -")
    if node is None:
        return {}
    symbols = tuple(sorted({*sizes, *sets.names.symbols}))
    chosen = Entry(Findings(""), sets.names, node, "", symbols)  # unknown symbols are errors, not warnings
    if not isinstance(node.value, dict):
        sets.report_error(node, name, describe_node(node), "sizes, such as {M: 3}")
    for symbol in chosen.extra:
        sets.report_error(node, name, f"the symbol {symbol}", f"one of {', '.join(symbols)}")
    shape = {}
    for symbol in node.value if isinstance(node.value, dict) else ():
        size = chosen.get(symbol) if symbol in symbols else None
        if size is not None and (type(size.value) is not int or not 1 <= size.value <= MAX_SIZE):
            sets.report_error(size, f"{name}.{symbol}", describe_node(size), f"an int from 1 to {MAX_SIZE}")
        elif size is not None:
            shape[symbol] = size.value
    return shape


def read_cases(top: Entry, shapes: Mapping[str, Any]) -> tuple[CaseSpec, ...]:
    """Hand-made inputs: texts, or one of the file's shape sets with a text."""
    cases = [_read_case(top, node, f"cases[{number}]", shapes) for number, node in enumerate(top.list_few("cases"))]
    return tuple(case for case in cases if case is not None)


def _read_case(top: Entry, node: Located, place: str, shapes: Mapping[str, Any]) -> CaseSpec | None:
    shape, code = "", node
    if isinstance(node.value, dict):
        if len(node.value) != 1 or not node.value.keys() <= shapes.keys():
            sets = f"one of {', '.join(shapes)}" if shapes else "a shape set"
            remedy = "name the set under `shapes`, also where a built-in one is meant, e.g. shapes: {many: {M: 40}}"
            mistake = f"a mapping with {', '.join(list(node.value)[:5])}"
            top.report_error(node, place, mistake, f"a text, or {sets} with a text", remedy)
            return None
        ((shape, code),) = node.value.items()
    text = top.read_value(code, place)
    return None if text is None else CaseSpec(text, shape)


def read_constraints(top: Entry, sizes: Mapping[str, int], sets: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """Comparisons of dims, each of which holds at the base sizes and at every set."""
    rows = enumerate(top.list_few("constraints"))
    texts = [_read_constraint(top, node, f"constraints[{number}]", sizes, sets) for number, node in rows]
    return tuple(text for text in texts if text is not None)


def _read_constraint(
    top: Entry, node: Located, place: str, sizes: Mapping[str, int], sets: Mapping[str, Mapping[str, int]]
) -> str | None:
    expected = "a comparison of dims and whole numbers, such as len_indptr == batch_size + 1"
    text = " ".join(node.value.split()) if isinstance(node.value, str) else ""
    try:
        symbols = list_symbols(text)
    except ConstraintError as error:
        top.report_error(node, place, f"{describe_node(node)}: {error}" if text else describe_node(node), expected)
        return None
    if unknown := sorted(symbols - set(sizes)):
        top.report_error(node, place, f"the name {unknown[0]}", f"dims: {', '.join(sizes)}")
        return None
    for name, chosen in {"": {}, **sets}.items():
        if not satisfies_constraint(text, {**sizes, **chosen}):
            where = f"shape {name}" if name else "the base sizes"
            top.report_error(node, place, f"{text}, which does not hold at {where}", "sizes that keep it")
            return None
    return text


def check_dim(
    findings: Findings,
    dim: Dim,
    node: Located,
    where: str,
    sizes: Mapping[str, int],
    reported: set[str],
    remedy: str = "{}_value = 3 in `global`",
) -> None:
    """A finding where a dim has no whole value, and one for each symbol without a size; `remedy` gives it one."""
    for symbol in sorted(dim.symbols - set(sizes) - reported):
        if is_name(symbol):
            expected = f"a size for {symbol}; known: {', '.join(sorted(sizes))}"
            findings.add_error(node, where, f"the symbol {symbol}", expected, remedy.format(symbol))
        reported.add(symbol)
    if dim.symbols <= set(sizes) and str(dim) not in reported:
        try:
            dim.value(sizes)
        except DimError as error:
            findings.add_error(node, where, str(error), "a whole number at these sizes")
            reported.add(str(dim))
