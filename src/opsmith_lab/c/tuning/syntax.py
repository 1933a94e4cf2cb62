"""A program in C as a tree: loops, names, declarations, and texts with names exchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from opsmith.targets.c.canonical import load_parser

if TYPE_CHECKING:
    from tree_sitter import Node

FOR, BLOCK, DECLARATION, IF = "for_statement", "compound_statement", "declaration", "if_statement"
_PURE = """
fabs fmax fmin sqrt exp exp2 expm1 log log2 log10 log1p pow sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
atanh erf erfc cbrt hypot floor ceil round trunc rint nearbyint fma copysign fmod fdim
"""
PURE_FUNCTIONS = frozenset(
    {name + suffix for name in _PURE.split() for suffix in ("", "f")} | {"bf16_to_float", "float_to_bf16"}
)
_JUMPS = frozenset({"break_statement", "continue_statement", "goto_statement", "return_statement", "labeled_statement"})
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class CountedLoop:
    """`for (T v = lower; v < upper; v++)`, whose body leaves the variable alone."""

    node: Node
    variable: str
    type_text: str
    lower: Node
    upper: Node
    body: Node

    @property
    def line(self) -> int:
        return self.node.start_point[0] + 1

    @property
    def statements(self) -> list[Node]:
        return list_statements(self.body)


class SyntaxTree:
    """A program's text and tree. `is_whole`: the parser read all of it."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        self.root = load_parser().parse(self.source).root_node

    @property
    def is_whole(self) -> bool:
        return not self.root.has_error

    @cached_property
    def names(self) -> frozenset[str]:
        """Every word of the text: a new name must be none of them."""
        return frozenset(_NAME.findall(self.source.decode()))

    def make_name(self, stem: str) -> str:
        """A name that the program does not use."""
        if stem not in self.names:
            return stem
        return next(f"{stem}_{number}" for number in range(2, 1000) if f"{stem}_{number}" not in self.names)

    @cached_property
    def loops(self) -> list[CountedLoop]:
        """In the order of the text, an outer one before those in it."""
        return [loop for node in walk_nodes(self.root) if (loop := read_loop(node)) is not None]

    @cached_property
    def functions(self) -> dict[str, Node]:
        """Definitions by name."""
        nodes = (node for node in self.root.named_children if node.type == "function_definition")
        return {name: node for node in nodes if (name := find_declared_name(node)) is not None}

    @cached_property
    def pure_functions(self) -> frozenset[str]:
        """Those that give a number for numbers and do nothing else."""
        pure = set(PURE_FUNCTIONS)
        for name, node in self.functions.items():  # each before those that call it
            if _is_scalar_function(node, pure):
                pure.add(name)
        return frozenset(pure)

    def replace_ranges(self, edits: Mapping[tuple[int, int], str]) -> str:
        """The text with ranges of bytes replaced; none lies in another."""
        pieces, place = [], 0
        for (start, end), text in sorted(edits.items()):
            pieces += [self.source[place:start].decode(), text]
            place = end
        return "".join([*pieces, self.source[place:].decode()])

    def find_last_include(self) -> int:
        """The place behind the last `#include` at the top level; 0 where there is none."""
        ends = [node.end_byte for node in self.root.named_children if node.type == "preproc_include"]
        return max(ends, default=0)


def read_text(node: Node) -> str:
    return (node.text or b"").decode()


def read_range(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def walk_nodes(root: Node) -> Iterator[Node]:
    """All named nodes in the order of the text, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


def list_statements(body: Node) -> list[Node]:
    """Those of a block, or the one statement itself; comments and pragmas are none."""
    nodes = body.named_children if body.type == BLOCK else [body]
    return [node for node in nodes if node.type not in ("comment", "preproc_call")]


def exchange_names(node: Node, new_texts: Mapping[str, str]) -> str:
    """The text of a node with texts in place of variables."""
    return _exchange(node, lambda child: new_texts.get(read_text(child)) if child.type == "identifier" else None)


def exchange_nodes(node: Node, new_texts: Mapping[int, str]) -> str:
    """The text of a node with texts in place of nodes, which are named by `Node.id`."""
    return _exchange(node, lambda child: new_texts.get(child.id))


def _exchange(node: Node, find_text: Callable[[Node], str | None]) -> str:
    source, pieces, place = node.text or b"", [], 0
    stack = [node]
    while stack:
        child = stack.pop()
        text = find_text(child)
        if text is None:
            stack.extend(reversed(child.children))
            continue
        start = child.start_byte - node.start_byte
        pieces += [source[place:start].decode(), text]
        place = child.end_byte - node.start_byte
    return "".join([*pieces, source[place:].decode()])


def list_called(node: Node) -> set[str]:
    """The functions that a node calls; `(_Float16)(x)` looks like a call and is none."""
    calls = (child.named_children[0] for child in walk_nodes(node) if child.type == "call_expression")
    return {read_text(name) for name in calls if name.type != "parenthesized_expression"}


@lru_cache(maxsize=1024)
def list_names(node: Node) -> frozenset[str]:
    """The variables and functions that a node mentions."""
    return frozenset(read_text(child) for child in walk_nodes(node) if child.type == "identifier")


# -- loops


def read_loop(node: Node) -> CountedLoop | None:
    """None for what is no loop that counts up by one."""
    if node.type != FOR:
        return None
    start, test, step, body = (
        node.child_by_field_name(name) for name in ("initializer", "condition", "update", "body")
    )
    if start is None or test is None or step is None or body is None or start.type != DECLARATION:
        return None
    declarator = start.child_by_field_name("declarator")
    if (
        declarator is None
        or declarator.type != "init_declarator"
        or len(start.children_by_field_name("declarator")) > 1
    ):
        return None
    name, lower = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("value")
    left_side, upper = test.child_by_field_name("left"), test.child_by_field_name("right")
    if name is None or lower is None or left_side is None or upper is None or read_operator(test) != "<":
        return None
    variable = read_text(name)
    if read_text(left_side) != variable or not _adds_one(step, variable) or variable in find_assigned(body):
        return None
    type_node = start.child_by_field_name("type")
    return CountedLoop(node, variable, read_text(type_node) if type_node else "int64_t", lower, upper, body)


def read_operator(node: Node) -> str:
    """Of an expression with two sides, or of an assignment; "": it has none."""
    operator = node.child_by_field_name("operator")
    return read_text(operator) if operator is not None else ""


def _adds_one(step: Node, variable: str) -> bool:
    text = re.sub(r"\s+", "", read_text(step))
    return text in (f"{variable}++", f"++{variable}", f"{variable}+=1", f"{variable}={variable}+1")


def list_inner_loops(node: Node) -> list[Node]:
    """Every loop in a node that is not the node itself."""
    kinds = (FOR, "while_statement", "do_statement")
    return [child for child in walk_nodes(node) if child.type in kinds and child.id != node.id]


def has_jump(node: Node) -> bool:
    return any(child.type in _JUMPS for child in walk_nodes(node))


# -- names


def find_assigned(node: Node) -> frozenset[str]:
    """Variables that statements in a node give another value, without the counting of loops that count up."""
    return _find_assigned_in(node)


@lru_cache(maxsize=256)
def _find_assigned_in(node: Node) -> frozenset[str]:
    names = set()
    for child in walk_nodes(node):
        place = None
        if child.type == "assignment_expression":
            place = child.child_by_field_name("left")
        elif child.type == "update_expression" or _takes_address(child):
            place = child.child_by_field_name("argument")
        if place is not None and place.type == "identifier" and not _is_step(child):
            names.add(read_text(place))
    return frozenset(names)


def _takes_address(node: Node) -> bool:
    return node.type == "pointer_expression" and read_text(node).startswith("&")


def _is_step(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type != FOR:
        return False
    step = parent.child_by_field_name("update")
    return step is not None and step.id == node.id


def find_declared_name(node: Node) -> str | None:
    """The first name that a declaration or definition declares."""
    inner = node.child_by_field_name("declarator")
    while inner is not None and inner.type != "identifier":
        inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
    return read_text(inner) if inner is not None else None


@dataclass(frozen=True)
class DeclaredVariable:
    """One name of a declaration."""

    name: str
    type_text: str
    declarator: Node
    value: Node | None

    @property
    def is_scalar(self) -> bool:
        kind = self.declarator.type
        if kind == "init_declarator":
            inner = self.declarator.child_by_field_name("declarator")
            kind = inner.type if inner is not None else ""
        return kind == "identifier"


def list_declared(node: Node) -> list[DeclaredVariable]:
    """What a declaration declares; nothing for another node."""
    if node.type not in (DECLARATION, "parameter_declaration"):
        return []
    kinds = [child for child in node.named_children if child.type == "type_qualifier"]
    type_node = node.child_by_field_name("type")
    type_text = " ".join([*(read_text(kind) for kind in kinds), read_text(type_node) if type_node else ""])
    variables = []
    for declarator in node.children_by_field_name("declarator"):
        name: Node | None = declarator
        while name is not None and name.type != "identifier":
            name = name.child_by_field_name("declarator") or next(
                (child for child in name.named_children if "declarator" in child.type or child.type == "identifier"),
                None,
            )
        if name is not None:
            value = declarator.child_by_field_name("value") if declarator.type == "init_declarator" else None
            variables.append(DeclaredVariable(read_text(name), type_text, declarator, value))
    return variables


def list_all_declared(node: Node) -> list[DeclaredVariable]:
    """What is declared anywhere in a node, heads of loops included."""
    return list(_list_declared_in(node))


@lru_cache(maxsize=256)
def _list_declared_in(node: Node) -> tuple[DeclaredVariable, ...]:
    return tuple(variable for child in walk_nodes(node) for variable in list_declared(child))


def find_declaration(use: Node, name: str) -> DeclaredVariable | None:
    """What `name` means where `use` stands: the nearest declaration before it, or a parameter."""
    node = use
    while node.parent is not None:
        parent = node.parent
        for sibling in reversed(parent.children):
            if sibling.start_byte < node.start_byte:
                for variable in list_declared(sibling):
                    if variable.name == name:
                        return variable
        if parent.type == "function_definition":
            head = parent.child_by_field_name("declarator")
            parameters = _list_declared_in(head) if head is not None else ()
            return next((each for each in parameters if each.name == name), None)
        node = parent
    return None


def find_element_type(array: Node) -> str | None:
    """Of the elements of a variable that is an array or a pointer; None for another expression."""
    variable = find_declaration(array, read_text(array)) if array.type == "identifier" else None
    return variable.type_text.removeprefix("const ") if variable is not None else None


def _is_scalar_function(node: Node, pure: Set[str]) -> bool:
    """Whether no pointer goes in, nothing outside is changed, and it calls pure functions only."""
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    if (
        declarator is None
        or body is None
        or "*" in read_text(declarator)
        or "static" not in read_text(node).split()[:3]
    ):
        return False
    local = {variable.name for variable in list_all_declared(node)}
    return find_assigned(body) <= local and list_called(body) <= pure | {"__builtin_memcpy", "memcpy"}
