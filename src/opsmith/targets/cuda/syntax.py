"""The parser of CUDA programs, and the kernels that one defines. Needs the extra `cuda` (tree-sitter)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from opsmith.errors import UsageError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

NO_PARSER = "the language CUDA: its parser is not installed; try: pip install 'opsmith[cuda]'"
_POINTERS = frozenset({"pointer_declarator", "array_declarator", "abstract_pointer_declarator"})
_HOLDERS = frozenset({"linkage_specification", "declaration_list", "template_declaration", "translation_unit"})
_CONDITIONALS = frozenset({"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"})


@dataclass(frozen=True)
class KernelParameter:
    """One parameter as it is written."""

    name: str  # "": it has none
    type: str  # without qualifiers and stars: `float`, `unsigned long long`
    is_pointer: bool  # one star, as arrays have
    is_const: bool  # what it points to may not be written
    is_plain: bool  # nothing but a name, stars and qualifiers: what else there is, only a compiler reads

    def __str__(self) -> str:
        const, star = "const " if self.is_const else "", " *" if self.is_pointer else " "
        return f"{const}{self.type}{star}{self.name}".strip()


@dataclass(frozen=True)
class KernelHead:
    """A kernel's name and parameters, as they are written."""

    name: str
    parameters: tuple[KernelParameter, ...]
    line: int  # of its name, from 1
    is_template: bool


@cache
def load_parser() -> Parser:
    """Raises UsageError."""
    try:
        import tree_sitter_cuda  # noqa: PLC0415  (an extra)
        from tree_sitter import Language, Parser  # noqa: PLC0415
    except ImportError:
        raise UsageError(NO_PARSER) from None
    return Parser(Language(tree_sitter_cuda.language()))


def parse_program(source: str) -> Node:
    """The tree of a text, whatever it holds. Raises UsageError where there is no parser."""
    return load_parser().parse(source.encode("utf-8", "replace")).root_node


def read_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def list_kernels(source: str) -> list[KernelHead]:
    """Those that a text defines, outside of namespaces and classes. Raises UsageError where there is no parser."""
    definitions = _walk_functions(parse_program(source))
    return [head for node, is_template in definitions for head in _read_head(node, is_template)]


def is_kernel(function: Node) -> bool:
    """Whether a definition or declaration is one of a kernel."""
    return any(child.type == "__global__" for child in function.children)


def _walk_functions(root: Node) -> Iterator[tuple[Node, bool]]:
    """The definitions of kernels, and whether each is a template."""
    stack = [(root, False)]
    while stack:
        node, is_template = stack.pop()
        if node.type == "function_definition" and is_kernel(node):
            yield node, is_template
        elif node.type in _HOLDERS | _CONDITIONALS:
            is_template = is_template or node.type == "template_declaration"
            stack.extend((child, is_template) for child in reversed(node.children))


def _read_head(function: Node, is_template: bool) -> Iterator[KernelHead]:
    declarator = function.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    parameters = declarator.child_by_field_name("parameters") if declarator is not None else None
    if name is not None and parameters is not None:
        rows = tuple(_read_parameter(child) for child in parameters.named_children if child.type != "comment")
        is_void = len(rows) == 1 and rows[0].type == "void" and not rows[0].is_pointer
        yield KernelHead(read_text(name), () if is_void else rows, name.start_point[0] + 1, is_template)


def _read_parameter(node: Node) -> KernelParameter:
    type_node = node.child_by_field_name("type")
    words = [read_text(child) for child in node.children if child.type == "type_qualifier"]
    declarator = node.child_by_field_name("declarator")
    stars = 0
    while declarator is not None and declarator.type in _POINTERS:
        stars += 1
        declarator = declarator.child_by_field_name("declarator")
    name = read_text(declarator) if declarator is not None and declarator.type == "identifier" else ""
    is_plain = node.type == "parameter_declaration" and stars <= 1 and (declarator is None or bool(name))
    text = " ".join(read_text(type_node).split()) if type_node is not None else ""
    return KernelParameter(name, text, stars == 1, "const" in words, is_plain)
