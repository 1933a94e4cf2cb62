"""Which loops may run in any order, or several turns at once, as far as their subscripts show it.

Arrays of other names are other memory, as the signature's `restrict` says; a pointer that is declared with an offset
into an array is that array. Where that is not enough, a loop counts as one whose turns depend on each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.polynomials import ONE, Polynomial, make_constant, read_polynomial
from opsmith_lab.c.tuning.syntax import (
    CountedLoop,
    SyntaxTree,
    exchange_names,
    find_assigned,
    find_declaration,
    has_jump,
    list_all_declared,
    list_called,
    list_names,
    read_loop,
    read_operator,
    read_text,
    walk_nodes,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MAXIMA = frozenset({"fmaxf", "fmax"})
MINIMA = frozenset({"fminf", "fmin"})


@dataclass(frozen=True)
class ArrayUse:
    """A place where an element of an array is read or written."""

    array: str
    subscripts: tuple[Polynomial, ...]
    is_write: bool
    is_read: bool


@dataclass(frozen=True)
class ScalarReduction:
    """A number that every turn of a loop adds to, or compares with: `statement` does so with `value`."""

    name: str
    operator: str  # + * max min
    statement: Node
    value: Node
    is_plain: bool  # `+=`, as OpenMP writes it


class LoopFacts:
    """What is known of one loop's body."""

    def __init__(self, tree: SyntaxTree, loop: CountedLoop) -> None:
        self.tree, self.loop = tree, loop
        self.local = {variable.name for variable in list_all_declared(loop.body)}
        self.assigned = find_assigned(loop.body)
        self.counters = {each.variable: each for node in walk_nodes(loop.body) if (each := read_loop(node)) is not None}
        self.uses = list_array_uses(tree, loop.body)

    @property
    def outer_scalars(self) -> frozenset[str]:
        """Variables of outside that a turn gives another value."""
        return self.assigned - self.local

    def is_parallel(self, apart: Sequence[str] = ()) -> bool:
        """Whether no turn needs what another one wrote. `apart`: scalars that somebody else sees to."""
        if self.uses is None or has_jump(self.loop.body) or self.outer_scalars - set(apart):
            return False
        written = {use.array for use in self.uses if use.is_write} - self.local
        return all(self._is_spread([use for use in self.uses if use.array == array]) for array in written)

    @property
    def overwrites_only(self) -> bool:
        """Whether running a turn twice does no harm: no array of outside is both read and written."""
        if self.uses is None:
            return False
        read = {use.array for use in self.uses if use.is_read}
        return not read & ({use.array for use in self.uses if use.is_write} - self.local)

    def _is_spread(self, uses: Sequence[ArrayUse]) -> bool:
        """Whether two turns never meet in one array."""
        count = len(uses[0].subscripts)
        if any(len(use.subscripts) != count for use in uses):
            return False
        return any(self._is_apart([use.subscripts[place] for use in uses]) for place in range(count))

    def _is_apart(self, subscripts: Sequence[Polynomial]) -> bool:
        ranges = [self._find_range(subscript) for subscript in subscripts]
        strides = [subscript.find_factor(self.loop.variable) for subscript in subscripts]
        stride = strides[0]
        if stride is None or any(each != stride for each in strides):
            return False
        return all(
            mine is not None and theirs is not None and self._never_meets(stride, mine, theirs)
            for mine, theirs in product(ranges, repeat=2)
        )

    def _never_meets(
        self, stride: Polynomial, mine: tuple[Polynomial, Polynomial], theirs: tuple[Polynomial, Polynomial]
    ) -> bool:
        """Within one stride of each other, or so far apart that the whole loop lies between them."""
        if (stride - (mine[1] - theirs[0])).is_positive() and (stride - (theirs[1] - mine[0])).is_positive():
            return True
        if mine == theirs:
            return False
        lower, upper = (self._read_bound(node) for node in (self.loop.lower, self.loop.upper))
        way = stride * (upper - lower - ONE)
        return (mine[0] - theirs[1] - way).is_positive() or (theirs[0] - mine[1] - way).is_positive()

    def _find_range(self, subscript: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """The least and the largest that it is in one turn, without the loop's own part; None: that is not seen."""
        own = subscript.find_factor(self.loop.variable)
        if own is None:
            return None
        low = subscript - own * Polynomial({(self.loop.variable,): 1})
        span = make_constant(0)
        for name in filter(low.mentions, sorted(self.counters)):
            factor, inner = low.find_factor(name), self.counters[name]
            lower, upper = self._read_bound(inner.lower), self._read_bound(inner.upper)
            if factor is None or not factor.is_positive():
                return None
            low = low - factor * Polynomial({(name,): 1}) + factor * lower
            span = span + factor * (upper - lower - ONE)
        varying = self.local | self.assigned | {self.loop.variable}
        if any(low.mentions(name) or span.mentions(name) for name in varying):
            return None
        return low, low + span

    def _read_bound(self, node: Node) -> Polynomial:
        return read_polynomial(node, find_function_assigned(node))


def find_function_assigned(node: Node) -> frozenset[str]:
    """Variables that the function around a node gives another value anywhere."""
    function = node
    while function.parent is not None and function.type != "function_definition":
        function = function.parent
    return find_assigned(function)


# -- arrays


def list_array_uses(tree: SyntaxTree, body: Node) -> list[ArrayUse] | None:
    """None where memory is used in a way that is not seen: through pointers, fields or functions."""
    assigned = find_function_assigned(body)
    uses = []
    if not list_called(body) <= tree.pure_functions:
        return None
    for node in walk_nodes(body):
        if node.type in ("field_expression", "asm_statement", "comma_expression", "pointer_expression"):
            return None
        if node.type == "subscript_expression" and not _is_inner_subscript(node):
            use = _read_use(node, assigned)
            if use is None:
                return None
            uses.append(use)
    return uses


def _is_inner_subscript(node: Node) -> bool:
    parent = node.parent
    array = parent.child_by_field_name("argument") if parent is not None else None
    return parent is not None and parent.type == "subscript_expression" and array is not None and array.id == node.id


def _read_use(node: Node, assigned: frozenset[str]) -> ArrayUse | None:
    subscripts: list[Polynomial] = []
    array: Node | None = node
    while array is not None and array.type == "subscript_expression":
        index = array.child_by_field_name("index")
        if index is None:
            return None
        subscripts.insert(0, read_polynomial(index, assigned))
        array = array.child_by_field_name("argument")
    if array is not None and array.type == "parenthesized_expression":
        array = array.named_children[0]
    if array is not None and array.type == "cast_expression":
        array = array.child_by_field_name("value")
    if array is None or array.type != "identifier":
        return None
    name, offset = resolve_pointer(array, assigned)
    if offset is not None:
        subscripts[0] = subscripts[0] + offset
    is_write, is_update = _find_direction(node)
    return ArrayUse(name, tuple(subscripts), is_write, is_update or not is_write)


def resolve_pointer(node: Node, assigned: frozenset[str]) -> tuple[str, Polynomial | None]:
    """The array that a name points into, and how far: for `const float *row = x + m * N;` x and m * N."""
    name = read_text(node)
    variable = find_declaration(node, name)
    value = variable.value if variable is not None and name not in assigned else None
    if value is None or value.type != "binary_expression" or read_operator(value) != "+":
        return name, None
    left_side, right = value.child_by_field_name("left"), value.child_by_field_name("right")
    if left_side is None or right is None or left_side.type not in ("identifier", "binary_expression"):
        return name, None
    if left_side.type == "binary_expression":
        return name, None
    base, offset = resolve_pointer(left_side, assigned)
    own = read_polynomial(right, assigned)
    return base, own if offset is None else own + offset


def _find_direction(node: Node) -> tuple[bool, bool]:
    """Whether it is written, and whether it is read as well by what writes it."""
    parent = node.parent
    if parent is None:
        return False, False
    left_side = parent.child_by_field_name("left")
    if parent.type == "assignment_expression" and left_side is not None and left_side.id == node.id:
        return True, read_operator(parent) != "="
    return parent.type == "update_expression", parent.type == "update_expression"


# -- reductions


def find_reductions(tree: SyntaxTree, loop: CountedLoop, names: Collection[str]) -> list[ScalarReduction] | None:
    """How each of these scalars is gathered over a loop; None where one is used in another way."""
    reductions = []
    for name in sorted(names):
        statements = [node for node in walk_nodes(loop.body) if _is_simple(node) and name in list_names(node)]
        reduction = read_reduction(tree, name, statements[0]) if len(statements) == 1 else None
        if reduction is None or _count_uses(loop.body, name) > _count_uses(reduction.statement, name):
            return None
        reductions.append(reduction)
    return reductions


def _count_uses(node: Node, name: str) -> int:
    return sum(child.type == "identifier" and read_text(child) == name for child in walk_nodes(node))


def _is_simple(node: Node) -> bool:
    if node.type in ("expression_statement", "declaration"):
        return not (node.parent is not None and _is_guarded_assignment(node.parent))
    return _is_guarded_assignment(node)


def _is_guarded_assignment(node: Node) -> bool:
    """`if (value > s) s = value;` with or without braces."""
    return node.type == "if_statement" and _read_guarded(node) is not None


def _read_guarded(node: Node) -> tuple[Node, Node] | None:
    """Condition and assignment of an `if` whose body is that assignment alone."""
    condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    if condition is None or body is None or node.child_by_field_name("alternative") is not None:
        return None
    inner = body.named_children if body.type == "compound_statement" else [body]
    if len(inner) != 1 or inner[0].type != "expression_statement" or not inner[0].named_children:
        return None
    assignment = inner[0].named_children[0]
    if assignment.type != "assignment_expression" or read_operator(assignment) != "=":
        return None
    test = condition.named_children[0] if condition.type == "parenthesized_expression" else condition
    return (test, assignment) if test.type == "binary_expression" and read_operator(test) in ("<", ">") else None


def read_reduction(tree: SyntaxTree, name: str, statement: Node) -> ScalarReduction | None:
    if statement.type == "if_statement":
        guarded = _read_guarded(statement)
        return _read_choice(name, statement, *guarded) if guarded is not None else None
    if statement.type != "expression_statement" or not statement.named_children:
        return None
    assignment = statement.named_children[0]
    if assignment.type != "assignment_expression":
        return None
    left_side, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if left_side is None or right is None or read_text(left_side) != name:
        return None
    operator = {"+=": "+", "-=": "+", "*=": "*"}.get(read_operator(assignment))
    if operator is not None and name not in list_names(right):
        return ScalarReduction(name, operator, statement, right, True)
    return _read_assigned(tree, name, statement, right) if read_operator(assignment) == "=" else None


def _read_assigned(tree: SyntaxTree, name: str, statement: Node, right: Node) -> ScalarReduction | None:
    """`s = s + value`, `s = fmaxf(s, value)`, `s = value > s ? value : s`."""
    if right.type == "binary_expression" and read_operator(right) in ("+", "*"):
        sides = [right.child_by_field_name(side) for side in ("left", "right")]
        values = [side for side in sides if side is not None and read_text(side) != name]
        if len(values) == 1 and name not in list_names(values[0]):
            return ScalarReduction(name, read_operator(right), statement, values[0], True)
    if right.type == "call_expression":
        operator = find_extreme(tree, read_text(right.named_children[0]))
        arguments = right.named_children[1].named_children
        values = [argument for argument in arguments if read_text(argument) != name]
        if operator and len(arguments) == 2 and len(values) == 1 and name not in list_names(values[0]):
            return ScalarReduction(name, operator, statement, values[0], False)
    if right.type == "conditional_expression":
        return _read_conditional(name, statement, right)
    return None


def _read_conditional(name: str, statement: Node, right: Node) -> ScalarReduction | None:
    test, first, second = (
        right.child_by_field_name(field_name) for field_name in ("condition", "consequence", "alternative")
    )
    if test is None or first is None or second is None or read_text(second) != name:
        return None
    if test.type == "parenthesized_expression":
        test = test.named_children[0]
    return _compare_choice(name, statement, test, first)


def _read_choice(name: str, statement: Node, test: Node, assignment: Node) -> ScalarReduction | None:
    left_side, right = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
    if left_side is None or right is None or read_text(left_side) != name:
        return None
    return _compare_choice(name, statement, test, right)


def _compare_choice(name: str, statement: Node, test: Node, value: Node) -> ScalarReduction | None:
    """Whether `value` is chosen where it is the larger, or the smaller, one."""
    left_side, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if left_side is None or right is None or name in list_names(value) or read_operator(test) not in ("<", ">"):
        return None
    sides = [read_text(left_side), read_text(right)]
    if sorted(sides) != sorted([name, read_text(value)]):
        return None
    is_larger = (read_operator(test) == ">") == (sides[1] == name)
    return ScalarReduction(name, "max" if is_larger else "min", statement, value, False)


def find_extreme(tree: SyntaxTree, function: str) -> str:
    """max or min for a function that gives the larger or the smaller of two numbers; "" for another one."""
    if function in MAXIMA or function in MINIMA:
        return "max" if function in MAXIMA else "min"
    node = tree.functions.get(function)
    body = node.child_by_field_name("body") if node is not None else None
    if node is None or body is None:
        return ""
    names = [variable.name for variable in list_all_declared(node)]
    if len(names) != 2:
        return ""
    text = " ".join(exchange_names(body, {names[0]: "a", names[1]: "b"}).split())
    return {"{ return a > b ? a : b; }": "max", "{ return a < b ? a : b; }": "min"}.get(text, "")
