"""Numbers of 16 bits widened and narrowed by whole numbers: what compilers do one at a time then runs in vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.syntax import (
    SyntaxTree,
    exchange_nodes,
    find_declaration,
    read_operator,
    read_range,
    read_text,
    walk_nodes,
)
from opsmith_lab.c.tuning.vectorising import Edits

if TYPE_CHECKING:
    from tree_sitter import Node

HALF = "_Float16"
_BITS = "typedef uint16_t {bits} __attribute__((may_alias));"
_CASTS = """
static inline float {make}(uint32_t bits)
{{
float number;
memcpy(&number, &bits, sizeof number);
return number;
}}

static inline uint32_t {read}(float number)
{{
uint32_t bits;
memcpy(&bits, &number, sizeof bits);
return bits;
}}
"""
_WIDEN = """
static inline float {widen}(uint16_t half)
{{
uint32_t shifted = (uint32_t)(half & 0x7fffu) << 13;
uint32_t scaled = {read}({make}(shifted) * 0x1p112f);
uint32_t bits = shifted >= 0x0f800000u ? shifted | 0x7f800000u : scaled;
return {make}(bits | (uint32_t)(half & 0x8000u) << 16);
}}
"""
_NARROW = """
static inline uint16_t {narrow}(float number)
{{
uint32_t bits = {read}(number) & 0x7fffffffu, sign = {read}(number) >> 16 & 0x8000u;
uint32_t tiny = {read}({make}(bits) + 0.5f) - 0x3f000000u;
uint32_t normal = (bits + 0xfffu + (bits >> 13 & 1u) - 0x38000000u) >> 13;
uint32_t large = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
uint32_t result = bits < 0x38800000u ? tiny : normal;
return (uint16_t)(sign | (bits >= 0x47800000u ? large : result));
}}
"""
_STEMS = {
    "widen": "widen_half",
    "narrow": "narrow_half",
    "bits": "half_bits",
    "make": "make_number",
    "read": "read_bits",
}


def list_half_uses(tree: SyntaxTree) -> list[Node]:
    """Casts of elements to float, and assignments to elements of numbers that are cast to 16 bits."""
    return [node for node in walk_nodes(tree.root) if _is_widening(node) or _is_narrowing(node)]


def replace_halves(tree: SyntaxTree) -> str:
    uses = list_half_uses(tree)
    names = {role: tree.make_name(stem) for role, stem in _STEMS.items()}
    texts: dict[int, str] = {}
    for node in uses:
        if _is_widening(node):
            texts[node.id] = f"{names['widen']}({_write_bits(node.named_children[-1], names['bits'], {})})"
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
    texts = [_CASTS, *[_WIDEN] * any(map(_is_widening, uses)), *[_NARROW] * any(map(_is_narrowing, uses))]
    functions = "".join(text.format(**names) for text in texts)
    return f"{include}\n\n{_BITS.format(**names)}\n{functions}"


def _write_narrowing(node: Node, names: dict[str, str], texts: dict[int, str]) -> str:
    place, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert place is not None
    assert value is not None
    number = exchange_nodes(value.named_children[-1], texts)
    return f"{_write_bits(place, names['bits'], texts)} = {names['narrow']}({_strip_bracket(number)})"


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
