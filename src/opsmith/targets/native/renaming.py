"""Names of a program's own, numbered in the order in which they are declared, each in its scope.

For C and languages like it, on the tree of a parser that expands no macros: what macros mention keeps its name, and a
program whose macros are more than constants and expressions in brackets is not to be renamed at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opsmith.targets.native.tokens import LogicalLine, Token, TokenKind, split_lines

if TYPE_CHECKING:
    from tree_sitter import Node

_SCOPES = frozenset(
    {"function_definition", "compound_statement", "for_statement", "preproc_function_def", "template_declaration"}
)
_DECLARATIONS = frozenset(
    {"declaration", "parameter_declaration", "optional_parameter_declaration", "function_definition"}
)
_TAGGED = frozenset({"struct_specifier", "union_specifier", "enum_specifier"})
_OPAQUE = frozenset({"attribute_specifier", "string_literal", "char_literal", "comment"})  # no names of variables
_NAMES = frozenset({"identifier", "type_identifier"})  # `a * b;` looks like a declaration
_WRAPPERS = frozenset(
    {"pointer_declarator", "array_declarator", "function_declarator", "parenthesized_declarator", "init_declarator"}
    | {"attributed_declarator", "reference_declarator"}
)
_VALUES = frozenset({TokenKind.NUMBER, TokenKind.TEXT})
_CONSTANT_MARKS = frozenset({"(", ")", "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~"})
_STATEMENT_MARKS = frozenset({";", "{", "}", "#"})  # of more than an expression, or of texts of arguments
PRAGMA_WORDS = """
omp GCC ivdep unroll parallel for simd sections section single critical atomic barrier ordered master masked flush
task taskwait taskloop teams target data private firstprivate lastprivate shared reduction schedule static dynamic
guided auto runtime collapse nowait num_threads default none if safelen simdlen aligned linear inscan inclusive
exclusive scan proc_bind close spread copyin copyprivate read write update capture seq_cst acquire release relaxed
monotonic nonmonotonic declare threadprivate inbranch notinbranch uniform final untied mergeable depend in out inout
map to from tofrom min max loop bind
"""


def join_tokens(lines: list[LogicalLine], new_names: Mapping[int, str]) -> str:
    """All tokens with one blank between them; a directive has a line to itself."""
    pieces = []
    for line in lines:
        text = " ".join(new_names.get(token.place, token.text) for token in line.tokens)
        pieces.append(f"\n{text}\n" if line.is_directive else text)
    return " ".join(pieces)


def find_fixed_names(lines: list[LogicalLine], pragma_words: str = PRAGMA_WORDS) -> frozenset[str]:
    """Names that directives mention: what a macro stands for is not seen in the tree, nor what a pragma means.

    A macro's own parameters are not meant by it.
    """
    names = set(pragma_words.split())
    for line in lines:
        if line.is_directive and [token.text for token in line.tokens[1:2]] not in (["include"], ["pragma"]):
            is_macro = line.tokens[1:] and line.tokens[1].text == "define"
            own = {token.text for token in _split_macro(line.tokens[2:])[0]} if is_macro else set()
            names.update(token.text for token in line.tokens if token.kind is TokenKind.NAME and token.text not in own)
    return frozenset(names)


def has_plain_macros(lines: list[LogicalLine]) -> bool:
    """Whether every macro stands for a constant or for an expression in brackets."""
    return all(_is_constant(macro) or _is_expression(macro) for macro in _list_macros(lines))


def _list_macros(lines: list[LogicalLine]) -> list[Sequence[Token]]:
    """Name and body of each macro that is defined."""
    directives = (line.tokens for line in lines if line.is_directive)
    return [tokens[2:] for tokens in directives if tokens[1:] and tokens[1].text == "define"]


def _is_constant(macro: Sequence[Token]) -> bool:
    """Whether it stands for a number or text: neither for a declaration, as the parser might take it, nor for code."""
    has_value = any(token.kind in _VALUES for token in macro[1:])
    return has_value and all(token.kind in _VALUES or token.text in _CONSTANT_MARKS for token in macro[1:])


def _is_expression(macro: Sequence[Token]) -> bool:
    """Whether it stands for one expression in brackets, which declares nothing."""
    body = [token.text for token in _split_macro(macro)[1]]
    depth = 0
    for place, text in enumerate(body, 1):
        depth += (text == "(") - (text == ")")
        if depth == 0 and place < len(body):  # also where no bracket opens it
            return False
    return bool(body) and body[-1] == ")" and depth == 0 and not _STATEMENT_MARKS.intersection(body)


def _split_macro(macro: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]]:
    """The names of its parameters, and its body; a bracket that touches the name opens a list of parameters."""
    is_function = len(macro) > 1 and macro[1].text == "(" and macro[1].place == macro[0].place + len(macro[0].text)
    if not is_function:
        return (), macro[1:]
    end = next((place for place, token in enumerate(macro) if token.text == ")"), len(macro))
    return [token for token in macro[2:end] if token.kind is TokenKind.NAME], macro[end + 1 :]


@dataclass
class Renaming:
    """Walks a tree once, without recursion: a chain of operators is as deep as it is long."""

    fixed: frozenset[str]  # names that stay
    shows_file: bool = True  # whether others see names of the file that are not static, so that these stay too
    new_names: dict[int, str] = field(default_factory=dict)  # by the place of a name
    _scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])  # innermost last: name -> new name
    _declared: dict[int, int] = field(default_factory=dict)  # place of a name that is declared there -> scope
    _tags: set[int] = field(default_factory=set)  # places of names of structs, unions and enums
    _count: int = 0

    @property
    def names_of_file(self) -> Mapping[str, str]:
        """New names by the old ones of what is declared outside of functions."""
        return self._scopes[0]

    def walk_tree(self, root: Node) -> None:
        stack: list[Node | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:
                self._scopes.pop()
            elif node.type in _NAMES:
                self._rename(read_node(node), node.start_byte)
            elif node.type == "preproc_arg":
                self._rename_words(node)
            elif node.type not in _OPAQUE:
                stack.extend(self._enter_node(node))

    def _enter_node(self, node: Node) -> Iterator[Node | None]:
        """Its children, the last first; before them None where it opens a scope, which ends behind them."""
        if node.type in _DECLARATIONS:
            self._note_declared(node)
        if node.type in _TAGGED and (tag := node.child_by_field_name("name")) is not None:
            self._tags.add(tag.start_byte)
        if node.type in _SCOPES or (node.type == "function_declarator" and not _is_definition(node)):
            self._scopes.append({})
            yield None
        if node.type == "preproc_params":
            self._declared.update({name.start_byte: len(self._scopes) - 1 for name in node.named_children})
        yield from reversed(node.children)

    def _note_declared(self, node: Node) -> None:
        """Only what nobody outside sees gets a new name."""
        specifiers = {read_node(child) for child in node.children if child.type == "storage_class_specifier"}
        is_template = node.parent is not None and node.parent.type == "template_declaration"
        scope = len(self._scopes) - (2 if is_template else 1)  # a template's parameters have a scope of their own
        is_local = scope > 0
        if self.shows_file and ("extern" in specifiers or not (is_local or "static" in specifiers)):
            return
        for name, is_function in _list_declared(node):
            if not (is_local and is_function and node.type == "declaration"):
                self._declared[name.start_byte] = scope

    def _rename(self, name: str, place: int) -> None:
        if name in self.fixed or place in self._tags:
            return
        if place in self._declared:
            scope = self._scopes[self._declared[place]]
            if name not in scope:
                scope[name] = f"${self._count}"  # no program has such names
                self._count += 1
        new_name = next((scope[name] for scope in reversed(self._scopes) if name in scope), None)
        if new_name is not None:
            self.new_names[place] = new_name

    def _rename_words(self, node: Node) -> None:
        """The text of a directive: the variables that a pragma mentions."""
        for line in split_lines(read_node(node)):
            for token in line.tokens:
                if token.kind is TokenKind.NAME:
                    self._rename(token.text, node.start_byte + token.place)


def read_node(node: Node) -> str:
    return (node.text or b"").decode()


def _is_definition(declarator: Node) -> bool:
    """Whether it declares the function whose body follows, and so opens no scope beside the function's."""
    node = declarator.parent
    while node is not None and node.type in _WRAPPERS and node.type != "function_declarator":
        node = node.parent
    return node is not None and node.type == "function_definition"


def _list_declared(node: Node) -> Iterator[tuple[Node, bool]]:
    """The names that a declaration declares, and whether each is a function."""
    for declarator in node.children_by_field_name("declarator"):
        inner: Node | None = declarator
        wrapper = ""
        while inner is not None and inner.type in _WRAPPERS:
            wrapper = inner.type
            inner = inner.child_by_field_name("declarator") or next(
                (child for child in inner.named_children if child.type in _WRAPPERS | _NAMES), None
            )
        if inner is not None and inner.type in _NAMES:
            yield inner, wrapper == "function_declarator"
