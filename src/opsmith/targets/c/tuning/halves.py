"""Numbers of 16 bits widened and narrowed by whole numbers: what compilers do one at a time then runs in vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsmith.targets.c.tuning.syntax import (
    SyntaxTree,
    exchange_nodes,
    find_declaration,
    read_operator,
    read_range,
    read_text,
    walk_nodes,
)
from opsmith.targets.c.tuning.vectorising import Edits

if TYPE_CHECKING:
    from tree_sitter import Node

HALF = "_Float16"
_BITS = "typedef uint16_t {bits} __attribute__((may_alias));"
_WIDEN = """
static inline float {widen}(uint16_t bits)
{{
uint32_t shifted = (uint32_t)(bits & 0x7fffu) << 13;
float number;
memcpy(&number, &shifted, sizeof number);
number *= 0x1p112f;
uint32_t result;
memcpy(&result, &number, sizeof result);
result = shifted >= 0x0f800000u ? shifted | 0x7f800000u : result;
result |= (uint32_t)(bits & 0x8000u) << 16;
memcpy(&number, &result, sizeof number);
return number;
}}
"""
_NARROW = """
static inline uint16_t {narrow}(float number)
{{
uint32_t bits;
memcpy(&bits, &number, sizeof bits);
uint32_t sign = bits >> 16 & 0x8000u;
bits &= 0x7fffffffu;
float small;
memcpy(&small, &bits, sizeof small);
small += 0.5f;
uint32_t tiny;
memcpy(&tiny, &small, sizeof tiny);
tiny -= 0x3f000000u;
uint32_t normal = (bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13;
uint32_t result = bits < 0x38800000u ? tiny : normal;
result = bits >= 0x47800000u ? (bits > 0x7f800000u ? 0x7e00u : 0x7c00u) : result;
return (uint16_t)(sign | result);
}}
"""


def list_half_uses(tree: SyntaxTree) -> list[Node]:
    """Casts of elements to float, and assignments to elements of numbers that are cast to 16 bits."""
    return [node for node in walk_nodes(tree.root) if _is_widening(node) or _is_narrowing(node)]


def replace_halves(tree: SyntaxTree) -> str:
    uses = list_half_uses(tree)
    names = {stem: tree.make_name(stem) for stem in ("widen_half", "narrow_half", "half_bits")}
    texts: dict[int, str] = {}
    for node in uses:
        if _is_widening(node):
            texts[node.id] = f"{names['widen_half']}({_write_bits(node.named_children[-1], names['half_bits'], {})})"
    edits: Edits = {}
    for node in uses:
        if _is_narrowing(node):
            edits[read_range(node)] = _write_narrowing(node, names, texts)
        elif not _is_in_narrowing(node):
            edits[read_range(node)] = texts[node.id]
    place = tree.find_last_include()
    edits[place, place] = _write_functions(tree, uses, names)
    return tree.replace_ranges(edits)


def _write_functions(tree: SyntaxTree, uses: list[Node], names: dict[str, str]) -> str:
    include = "" if "<string.h>" in tree.source.decode() else "\n#include <string.h>"
    widen = _WIDEN.format(widen=names["widen_half"]) if any(map(_is_widening, uses)) else ""
    narrow = _NARROW.format(narrow=names["narrow_half"]) if any(map(_is_narrowing, uses)) else ""
    return f"{include}\n\n{_BITS.format(bits=names['half_bits'])}\n{widen}{narrow}"


def _write_narrowing(node: Node, names: dict[str, str], texts: dict[int, str]) -> str:
    place, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert place is not None
    assert value is not None
    number = exchange_nodes(value.named_children[-1], texts)
    return f"{_write_bits(place, names['half_bits'], texts)} = {names['narrow_half']}({_strip_bracket(number)})"


def _strip_bracket(text: str) -> str:
    """Without the brackets around all of it."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def _write_bits(element: Node, bits: str, texts: dict[int, str]) -> str:
    """An element as a whole number."""
    array = element.child_by_field_name("argument")
    assert array is not None
    const = "const " if "const" in _find_type(array) else ""
    return exchange_nodes(element, {**texts, array.id: f"(({const}{bits} *){read_text(array)})"})


def _is_widening(node: Node) -> bool:
    kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if node.type != "cast_expression" or kind is None or value is None or read_text(kind) != "float":
        return False
    return _is_half_element(value)


def _is_narrowing(node: Node) -> bool:
    place, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "assignment_expression" or read_operator(node) != "=" or place is None or value is None:
        return False
    is_cast = value.type in ("cast_expression", "call_expression") and read_text(value).startswith(f"({HALF})")
    return is_cast and _is_half_element(place)


def _is_in_narrowing(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if _is_narrowing(parent):
            return True
        parent = parent.parent
    return False


def _is_half_element(node: Node) -> bool:
    array = node.child_by_field_name("argument")
    is_element = node.type == "subscript_expression" and array is not None and array.type == "identifier"
    return is_element and array is not None and HALF in _find_type(array).split()


def _find_type(name: Node) -> str:
    variable = find_declaration(name, read_text(name))
    return variable.type_text if variable is not None else ""
