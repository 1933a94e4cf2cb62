"""The canonical form of a C program: equal for programs that differ in names, comments and layout only.

Locals, parameters (of macros too) and static functions and variables get names in the order in which they are declared,
each in its scope; all that is seen outside (`kernel`, types, fields, labels) keeps its own, as does every other name
that a macro mentions. The parser expands no macros, so that a program whose macros are more than constants and
expressions in brackets keeps all its names, as does one that it cannot read: two programs that differ are never given
one form, and some that do not differ are given two.

Needs the extra `c` (tree-sitter, which reads no header).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from opsmith.errors import UsageError
from opsmith.targets.native.tokens import LogicalLine, Token, TokenKind, join_splices, split_lines

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

NO_PARSER = "the language C: its parser is not installed; try: pip install 'opsmith[c]'"

_SCOPES = frozenset({"function_definition", "compound_statement", "for_statement", "preproc_function_def"})
_DECLARATIONS = frozenset({"declaration", "parameter_declaration", "function_definition"})
_TAGGED = frozenset({"struct_specifier", "union_specifier", "enum_specifier"})
_OPAQUE = frozenset({"attribute_specifier", "string_literal", "char_literal", "comment"})  # no names of variables
_NAMES = frozenset({"identifier", "type_identifier"})  # `a * b;` looks like a declaration
_WRAPPERS = frozenset(
    {"pointer_declarator", "array_declarator", "function_declarator", "parenthesized_declarator", "init_declarator"}
    | {"attributed_declarator"}
)
_VALUES = frozenset({TokenKind.NUMBER, TokenKind.TEXT})
_CONSTANT_MARKS = frozenset({"(", ")", "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~"})
_STATEMENT_MARKS = frozenset({";", "{", "}", "#"})  # of more than an expression, or of texts of arguments
_PRAGMA_WORDS = """
omp GCC ivdep unroll parallel for simd sections section single critical atomic barrier ordered master masked flush
task taskwait taskloop teams target data private firstprivate lastprivate shared reduction schedule static dynamic
guided auto runtime collapse nowait num_threads default none if safelen simdlen aligned linear inscan inclusive
exclusive scan proc_bind close spread copyin copyprivate read write update capture seq_cst acquire release relaxed
monotonic nonmonotonic declare threadprivate inbranch notinbranch uniform final untied mergeable depend in out inout
map to from tofrom min max loop bind
"""


def write_canonical(source: str) -> str:
    """The canonical form of a text that `check_source` lets pass. Raises UsageError where there is no parser."""
    text = "".join(character if character.isascii() else "?" for character in join_splices(source))
    lines = split_lines(join_splices(source))
    tree = load_parser().parse(text.encode())
    if tree.root_node.has_error or not all(
        _is_constant(macro) or _is_expression(macro) for macro in _list_macros(lines)
    ):
        return _join_tokens(lines, {})
    renaming = _Renaming(_find_fixed_names(lines))
    renaming.walk_tree(tree.root_node)
    return _join_tokens(lines, renaming.new_names)


def list_inner_names(source: str) -> dict[int, str]:
    """Names that nobody outside sees, by their places in the joined source. None of a program that keeps its names, or
    is no ASCII. Raises UsageError where there is no parser."""
    text = join_splices(source)
    lines = split_lines(text)
    tree = load_parser().parse(text.encode())
    if not text.isascii() or tree.root_node.has_error or not all(map(_is_value, _list_macros(lines))):
        return {}
    renaming = _Renaming(_find_fixed_names(lines))
    renaming.walk_tree(tree.root_node)
    matches = (re.compile(r"\w+").match(text, place) for place in renaming.new_names)
    return {match.start(): match[0] for match in matches if match is not None}


def _join_tokens(lines: list[LogicalLine], new_names: Mapping[int, str]) -> str:
    """All tokens with one blank between them; a directive has a line to itself."""
    pieces = []
    for line in lines:
        text = " ".join(new_names.get(token.place, token.text) for token in line.tokens)
        pieces.append(f"\n{text}\n" if line.is_directive else text)
    return " ".join(pieces)


@cache
def load_parser() -> Parser:
    """Raises UsageError."""
    try:
        import tree_sitter_c  # noqa: PLC0415  (an extra)
        from tree_sitter import Language, Parser  # noqa: PLC0415
    except ImportError:
        raise UsageError(NO_PARSER) from None
    return Parser(Language(tree_sitter_c.language()))


def _find_fixed_names(lines: list[LogicalLine]) -> frozenset[str]:
    """Names that directives mention: what a macro stands for is not seen in the tree, nor what a pragma means.

    A macro's own parameters are not meant by it.
    """
    names = set(_PRAGMA_WORDS.split())
    for line in lines:
        if line.is_directive and [token.text for token in line.tokens[1:2]] not in (["include"], ["pragma"]):
            is_macro = line.tokens[1:] and line.tokens[1].text == "define"
            own = {token.text for token in _split_macro(line.tokens[2:])[0]} if is_macro else set()
            names.update(token.text for token in line.tokens if token.kind is TokenKind.NAME and token.text not in own)
    return frozenset(names)


def _list_macros(lines: list[LogicalLine]) -> list[Sequence[Token]]:
    """Name and body of each macro that is defined."""
    directives = (line.tokens for line in lines if line.is_directive)
    return [tokens[2:] for tokens in directives if tokens[1:] and tokens[1].text == "define"]


def _is_value(macro: Sequence[Token]) -> bool:
    return _is_constant(macro) or _is_expression(macro)


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
class _Renaming:
    """Walks a tree once, without recursion: a chain of operators is as deep as it is long."""

    fixed: frozenset[str]
    new_names: dict[int, str] = field(default_factory=dict)  # by the place of a name
    _scopes: list[dict[str, str]] = field(default_factory=lambda: [{}])  # innermost last: name -> new name
    _declared: dict[int, int] = field(default_factory=dict)  # place of a name that is declared there -> scope
    _tags: set[int] = field(default_factory=set)  # places of names of structs, unions and enums
    _count: int = 0

    def walk_tree(self, root: Node) -> None:
        stack: list[Node | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:
                self._scopes.pop()
            elif node.type in _NAMES:
                self._rename(_read_text(node), node.start_byte)
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
        specifiers = {_read_text(child) for child in node.children if child.type == "storage_class_specifier"}
        is_local = len(self._scopes) > 1
        if "extern" in specifiers or not (is_local or "static" in specifiers):
            return
        for name, is_function in _list_declared(node):
            if not (is_local and is_function and node.type == "declaration"):
                self._declared[name.start_byte] = len(self._scopes) - 1

    def _rename(self, name: str, place: int) -> None:
        if name in self.fixed or place in self._tags:
            return
        if place in self._declared:
            self._declare_name(name, self._scopes[self._declared[place]])
        new_name = next((scope[name] for scope in reversed(self._scopes) if name in scope), None)
        if new_name is not None:
            self.new_names[place] = new_name

    def _declare_name(self, name: str, scope: dict[str, str]) -> None:
        if name not in scope:
            scope[name] = f"${self._count}"  # no program has such names
            self._count += 1

    def _rename_words(self, node: Node) -> None:
        """The text of a directive: the variables that a pragma mentions."""
        for line in split_lines(_read_text(node)):
            for token in line.tokens:
                if token.kind is TokenKind.NAME:
                    self._rename(token.text, node.start_byte + token.place)


def _read_text(node: Node) -> str:
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
