"""Loops in tiles of a constant size that stay in registers: the sums of a tile are kept side by side.

A loop over places, each with sums of its own, becomes one over tiles of places; what the body declares becomes an array
with an element for each place of the tile, and the loops of the body run once for all of them. The last tile is moved
back so that it is whole; the loops as they were stay for sizes below one tile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.dependence import LoopFacts, find_function_assigned
from opsmith_lab.c.tuning.polynomials import ONE, Polynomial, make_constant, read_polynomial, write_polynomial
from opsmith_lab.c.tuning.syntax import (
    DECLARATION,
    FOR,
    IF,
    CountedLoop,
    DeclaredVariable,
    SyntaxTree,
    exchange_names,
    exchange_nodes,
    find_assigned,
    find_element_type,
    list_all_declared,
    list_declared,
    list_inner_loops,
    list_names,
    list_statements,
    read_loop,
    read_operator,
    read_text,
    walk_nodes,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_UNSIGNED = re.compile(r"^(const )?(u?size_t|unsigned|uint)")
_ELEMENTS = frozenset("float double int int32_t int64_t uint32_t uint64_t _Float16 uint16_t uint8_t int8_t".split())  # noqa: SIM905


@dataclass(frozen=True)
class TileAxis:
    """A loop of which a tile has `count` turns at once."""

    loop: CountedLoop
    count: int
    start: str  # the name of a tile's first turn
    place: str  # the name of a place in the tile

    @property
    def origin(self) -> str:
        """The name that counts tiles, before the last one is moved back."""
        return f"{self.start}_"


@dataclass(frozen=True)
class TilePlan:
    """A chain of loops, each the only statement of the one before, and the tile's axes among them."""

    chain: Sequence[CountedLoop]
    axes: Sequence[TileAxis]  # the last one runs along vectors, if `is_vector`
    is_vector: bool


def list_chains(tree: SyntaxTree) -> Iterator[list[CountedLoop]]:
    """Every stretch of loops that stand directly in each other and end in one that holds more than a loop."""
    for loop in tree.loops:
        chain = [loop]
        while (inner := _find_only_loop(chain[-1])) is not None:
            chain.append(inner)
        yield chain


def _find_only_loop(loop: CountedLoop) -> CountedLoop | None:
    statements = loop.statements
    return read_loop(statements[0]) if len(statements) == 1 else None


def list_parallel_chains(tree: SyntaxTree) -> Iterator[tuple[list[CountedLoop], list[CountedLoop]]]:
    """Chains from their outermost loop on, and those of their loops that a tile may have."""
    inner: set[int] = set()
    for whole_chain in list_chains(tree):
        if whole_chain[0].node.id in inner:
            continue
        inner.update(loop.node.id for loop in whole_chain)
        chain = _cut_chain(whole_chain)
        facts = {loop.node.id: LoopFacts(tree, loop) for loop in chain}
        tiled = [loop for loop in chain if facts[loop.node.id].is_parallel() and facts[loop.node.id].overwrites_only]
        if tiled:
            yield chain, tiled


def _cut_chain(chain: list[CountedLoop]) -> list[CountedLoop]:
    """Without inner loops that gather into a variable of outside: those belong to the body of the tile."""
    for place, loop in enumerate(chain):
        local = {variable.name for variable in list_all_declared(loop.body)}
        if find_assigned(loop.body) - local:
            return chain[: max(1, place)]
    return chain


def write_tile(tree: SyntaxTree, plan: TilePlan) -> str | None:
    """The loops in tiles, and as they were; None where the body has a shape that cannot be spread out."""
    writer = _TileWriter(tree, plan)
    try:
        return writer.write_loops()
    except _CannotSpreadError:
        return None


class _CannotSpreadError(Exception):
    pass


@dataclass(frozen=True)
class _TileGuard:
    """A condition of a tile's places that is a range along each axis."""

    everywhere: str  # it holds at the corners of the tile
    uniform: str  # what of it is equal for all places
    bounded: Sequence[tuple[Node, Polynomial]]  # comparisons that are not, with the difference of their sides
    body: Node


@dataclass
class _TileWriter:
    tree: SyntaxTree
    plan: TilePlan
    spread: dict[str, str] = field(default_factory=dict)  # name -> its element in the tile
    types: dict[str, str] = field(default_factory=dict)  # of elements that are laid side by side, by their text

    def write_loops(self) -> str:
        chain, axes = self.plan.chain, {axis.loop.node.id: axis for axis in self.plan.axes}
        self._refuse_repeated_names()
        self._refuse_dependent_bounds()
        large = " && ".join(
            f"{_bracket(axis.loop.upper)} - {_bracket(axis.loop.lower)} >= {axis.count}" for axis in self.plan.axes
        )
        lines = [f"if ({large}) {{"]
        for loop in chain:
            axis = axes.get(loop.node.id)
            lines += self._open_axis(axis) if axis is not None else [f"{write_header(loop)} {{"]
        lines += self._write_statements(chain[-1].statements)
        lines += ["}"] * len(chain)
        return "\n".join([*lines, "} else {", read_text(chain[0].node), "}"])

    def _open_axis(self, axis: TileAxis) -> list[str]:
        loop, kind = axis.loop, axis.loop.type_text
        upper = _bracket(loop.upper)
        return [
            f"for ({kind} {axis.origin} = {read_text(loop.lower)}; {axis.origin} < {read_text(loop.upper)}; "
            f"{axis.origin} += {axis.count}) {{",
            f"{kind} {axis.start} = {axis.origin} + {axis.count} <= {upper} ? {axis.origin} : {upper} - {axis.count};",
        ]

    def _refuse_repeated_names(self) -> None:
        """One name with two meanings in the body cannot be exchanged by its text."""
        names = [each.name for each in list_all_declared(self.plan.chain[-1].body) if not _is_counter(each)]
        if len(names) != len(set(names)) or set(names) & {axis.loop.variable for axis in self.plan.axes}:
            raise _CannotSpreadError

    def _refuse_dependent_bounds(self) -> None:
        """The sizes of a tile's axes are compared before any loop, and its rows need loops of equal length."""
        counters = {loop.variable for loop in self.plan.chain}
        axes = {axis.loop.variable for axis in self.plan.axes}
        tiled = {axis.loop.node.id for axis in self.plan.axes}
        for loop in self.plan.chain:
            bounds = list_names(loop.lower) | list_names(loop.upper)
            if bounds & (counters if loop.node.id in tiled else axes):
                raise _CannotSpreadError

    # -- statements

    def _write_statements(self, statements: Sequence[Node]) -> list[str]:
        """Stretches of plain statements in loops over the tile's places; loops outside of those."""
        groups = self._group_statements(statements)
        lines = self._spread_variables(groups)
        for group in groups:
            if not self._is_carried(group[0]):
                lines += self._write_stretch(group)
            elif group[0].type == FOR:
                lines += self._write_inner_loop(group[0])
            elif group[0].type == IF:
                lines += self._write_condition(group[0])
            else:
                lines.append(read_text(group[0]))
        return lines

    def _group_statements(self, statements: Sequence[Node]) -> list[list[Node]]:
        groups: list[list[Node]] = []
        for statement in statements:
            if groups and not self._is_carried(statement) and not self._is_carried(groups[-1][0]):
                groups[-1].append(statement)
            else:
                groups.append([statement])
        return groups

    def _is_carried(self, statement: Node) -> bool:
        """Whether it stands once for all places: a loop or condition equal for all, a number that is the same."""
        if statement.type == DECLARATION:
            return self._is_uniform(statement) and not (
                {each.name for each in list_declared(statement)} & find_assigned(self.plan.chain[-1].body)
            )
        if statement.type == FOR:
            loop = read_loop(statement)
            return loop is not None and self._is_uniform(loop.lower) and self._is_uniform(loop.upper)
        condition = statement.child_by_field_name("condition") if statement.type == IF else None
        return condition is not None and self._is_uniform(condition) and bool(list_inner_loops(statement))

    def _is_uniform(self, node: Node) -> bool:
        return not list_names(node) & self._varying

    @property
    def _varying(self) -> set[str]:
        """Names whose values differ between the places of a tile."""
        body = self.plan.chain[-1].body
        varying = {axis.loop.variable for axis in self.plan.axes} | (find_assigned(body))
        declared = [each for each in list_all_declared(body) if not _is_counter(each)]
        for _ in declared:
            before = len(varying)
            varying |= {each.name for each in declared if each.value is not None and list_names(each.value) & varying}
            if len(varying) == before:
                break
        return varying

    def _spread_variables(self, groups: Sequence[Sequence[Node]]) -> list[str]:
        """Arrays for what one stretch declares and another one uses."""
        lines = []
        for place, group in enumerate(groups):
            if self._is_carried(group[0]):
                continue
            elsewhere = [node for number, nodes in enumerate(groups) if number != place for node in nodes]
            used = {name for node in elsewhere for name in list_names(node)}
            for variable in (each for node in group for each in list_declared(node) if each.name in used):
                lines.append(self._spread_variable(variable))
        return lines

    def _spread_variable(self, variable: DeclaredVariable) -> str:
        kind = variable.type_text.removeprefix("const ")
        if not variable.is_scalar or kind not in _ELEMENTS:
            raise _CannotSpreadError
        places = "".join(f"[{axis.place}]" for axis in self.plan.axes)
        self.spread[variable.name] = variable.name + places
        return f"{kind} {variable.name}{''.join(f'[{axis.count}]' for axis in self.plan.axes)};"

    def _write_inner_loop(self, statement: Node) -> list[str]:
        loop = read_loop(statement)
        if loop is None:
            raise _CannotSpreadError
        return [f"{write_header(loop)} {{", *self._write_statements(loop.statements), "}"]

    def _write_condition(self, statement: Node) -> list[str]:
        test, body = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
        if test is None or body is None or statement.child_by_field_name("alternative") is not None:
            raise _CannotSpreadError
        return [f"if {read_text(test)} {{", *self._write_statements(list_statements(body)), "}"]

    # -- stretches

    def _write_stretch(self, statements: Sequence[Node]) -> list[str]:
        """Plain statements for every place; a guard that holds for all of them is asked once."""
        lines = [text for node in statements for text in self._write_plain(node)]
        guard = self._find_guard(statements)
        if guard is None:
            return self._wrap_places(lines)
        body = guard.body
        free = [text for node in statements[:-1] for text in self._write_plain(node)]
        free += [text for node in list_statements(body) for text in self._write_plain(node)]
        fallback = f"}} else if ({guard.uniform}) {{" if guard.uniform else "} else {"
        bounded = self._write_bounded(statements, guard) or self._wrap_places(lines)
        return [f"if ({guard.everywhere}) {{", *self._wrap_places(free), fallback, *bounded, "}"]

    def _write_bounded(self, statements: Sequence[Node], guard: _TileGuard) -> list[str] | None:
        """A guard on places along the last axis: what lies within bounds is laid side by side once for all rows, and
        sums take it at those places. None where the body is more than sums."""
        axis, bounds = self.plan.axes[-1], self._write_bounds(guard, self.plan.axes[-1])
        elements = self._list_shared_elements(guard.body)
        if bounds is None or elements is None:
            return None
        first, last = self._name_bounds(axis)
        copies = {text: self.tree.make_name(f"{axis.loop.variable}_near_{number}") for text, number in elements.items()}
        within = f"{axis.place} >= {first} && {axis.place} < {last}"
        choices = [self._write_choice(node, within, axis, copies) for node in list_statements(guard.body)]
        if any(choice is None for choice in choices):
            return None
        names = [text for node in statements[:-1] for text in self._write_plain(node)]
        counter = f"{axis.loop.type_text} {axis.loop.variable} = {axis.start} + {axis.place};"
        lines = [f"int64_t {first} = 0, {last} = {axis.count};", *bounds, f"if ({first} < {last}) {{"]
        lines += [f"{self.types[text]} {copy}[{axis.count}] = {{0}};" for text, copy in copies.items()]
        lines += [f"for (int64_t {axis.place} = {first}; {axis.place} < {last}; {axis.place}++) {{", counter, *names]
        lines += [*(f"{copy}[{axis.place}] = {text};" for text, copy in copies.items()), "}"]
        return [*lines, *self._wrap_places([*names, *(choice or "" for choice in choices)]), "}"]

    def _list_shared_elements(self, body: Node) -> dict[str, int] | None:
        """Elements that are read and that places of the last axis differ in, numbered; None where rows do as well."""
        elements: dict[str, int] = {}
        rows = [axis.loop.variable for axis in self.plan.axes[:-1]]
        for node in walk_nodes(body):
            array = node.child_by_field_name("argument") if node.type == "subscript_expression" else None
            index = node.child_by_field_name("index") if array is not None else None
            if array is None or index is None:
                continue
            subscript = read_polynomial(index, find_function_assigned(node))
            if not subscript.mentions(self.plan.axes[-1].loop.variable):
                continue
            kind = find_element_type(array)
            if kind is None or any(subscript.mentions(name) for name in rows):
                return None
            self.types[read_text(node)] = kind
            elements.setdefault(read_text(node), len(elements))
        return elements

    def _name_bounds(self, axis: TileAxis) -> tuple[str, str]:
        return self.tree.make_name(f"{axis.loop.variable}_first"), self.tree.make_name(f"{axis.loop.variable}_last")

    def _write_choice(self, statement: Node, within: str, axis: TileAxis, copies: Mapping[str, str]) -> str | None:
        """A sum, or another number of the tile, which keeps its value at places out of bounds."""
        assignment = statement.named_children[0] if statement.type == "expression_statement" else None
        if assignment is None or assignment.type != "assignment_expression":
            return None
        place, value = assignment.child_by_field_name("left"), assignment.child_by_field_name("right")
        if place is None or value is None or read_text(place) not in self.spread:
            return None
        elements = {node.id: copies[read_text(node)] for node in walk_nodes(value) if read_text(node) in copies}
        names = {node.id: self.spread[read_text(node)] for node in walk_nodes(value) if read_text(node) in self.spread}
        text = exchange_nodes(value, {key: f"{copy}[{axis.place}]" for key, copy in elements.items()} | names)
        own, operator = self.spread[read_text(place)], read_operator(assignment).removesuffix("=")
        return f"{own} = {within} ? {f'{own} {operator} ({text})' if operator else text} : {own};"

    def _write_bounds(self, guard: _TileGuard, axis: TileAxis) -> list[str] | None:
        """The first place within bounds, and the one behind the last; None where another axis is bounded too."""
        first, last = self._name_bounds(axis)
        lines = []
        for comparison, difference in guard.bounded:
            reach = _read_reach(comparison, difference)  # not below 0 where the comparison holds
            factor = reach.find_factor(axis.loop.variable)
            number = factor.constant if factor is not None else None
            if not number or any(difference.mentions(other.loop.variable) for other in self.plan.axes[:-1]):
                return None
            start = write_polynomial(_move_to(reach, axis, 0))
            if number > 0:
                lines.append(f"if (-({start}) > 0) {first} = _MAX((-({start}) + {number - 1}) / {number}, {first});")
            else:
                lines.append(f"{last} = ({start}) < 0 ? 0 : _MIN(({start}) / {-number} + 1, {last});")
        return [_write_extreme(line) for line in lines]

    def _wrap_places(self, lines: Sequence[str]) -> list[str]:
        """Loops over the tile's places, the last along vectors."""
        heads = []
        for axis in self.plan.axes:
            is_last = axis is self.plan.axes[-1]
            pragma = "#pragma omp simd" if is_last and self.plan.is_vector else f"#pragma GCC unroll {axis.count}"
            heads += [pragma, f"for (int64_t {axis.place} = 0; {axis.place} < {axis.count}; {axis.place}++) {{"]
        used = " ".join(lines)
        counters = [
            f"{axis.loop.type_text} {axis.loop.variable} = {axis.start} + {axis.place};"
            for axis in self.plan.axes
            if axis.loop.variable in used
        ]
        return [*heads, *counters, *lines, *["}"] * len(self.plan.axes)]

    def _write_plain(self, statement: Node) -> list[str]:
        if statement.type != DECLARATION:
            return [exchange_names(statement, self.spread)]
        lines = []
        for variable in list_declared(statement):
            value = exchange_names(variable.value, self.spread) if variable.value is not None else None
            if variable.name not in self.spread:
                lines.append(f"{variable.type_text} {exchange_names(variable.declarator, self.spread)};")
            elif value is not None:
                lines.append(f"{self.spread[variable.name]} = {value};")
        return lines

    def _find_guard(self, statements: Sequence[Node]) -> _TileGuard | None:
        """A last `if` on places; None where it is another one."""
        last = statements[-1]
        if last.type != IF or last.child_by_field_name("alternative") is not None:
            return None
        test, body = last.child_by_field_name("condition"), last.child_by_field_name("consequence")
        if test is None or body is None or any(node.type != DECLARATION for node in statements[:-1]):
            return None
        if self._wraps_around:
            return None
        corners, uniform, bounded = [], [], []
        for comparison in _list_conjuncts(test):
            texts = self._write_corners(comparison)
            if texts is None:
                return None
            corners += texts
            uniform += texts if len(texts) == 1 else []
            bounded += [(comparison, _read_difference(comparison))] if len(texts) > 1 else []
        return _TileGuard(" && ".join(corners), " && ".join(uniform), bounded, body)

    @property
    def _wraps_around(self) -> bool:
        """Whether numbers without a sign are about, of which differences are not below 0."""
        root = self.plan.chain[0].node
        while root.parent is not None and root.type != "function_definition":
            root = root.parent
        return any(each.is_scalar and _UNSIGNED.search(each.type_text) for each in list_all_declared(root))

    def _write_corners(self, comparison: Node) -> list[str] | None:
        """A comparison where it is most likely to fail, along each axis; itself where it is equal everywhere."""
        if comparison.type != "binary_expression" or read_operator(comparison) not in ("<", ">", "<=", ">="):
            return None
        difference = _read_difference(comparison)
        corners = [difference]
        for axis in self.plan.axes:
            factor = difference.find_factor(axis.loop.variable)
            if factor is None:
                return None
            if factor.terms:
                corners = [_move_to(corner, axis, place) for corner in corners for place in (0, axis.count - 1)]
        spread = {axis.loop.variable for axis in self.plan.axes}
        if any(corner.mentions(name) for corner in corners for name in (self._varying - spread) | spread):
            return None
        return [f"{write_polynomial(corner)} {read_operator(comparison)} 0" for corner in corners]


def _read_difference(comparison: Node) -> Polynomial:
    """Of the two sides of a comparison."""
    left_side, right = comparison.child_by_field_name("left"), comparison.child_by_field_name("right")
    assert left_side is not None
    assert right is not None
    assigned = find_function_assigned(comparison)
    return read_polynomial(left_side, assigned) - read_polynomial(right, assigned)


def _read_reach(comparison: Node, difference: Polynomial) -> Polynomial:
    """What is not below 0 where the comparison holds."""
    operator = read_operator(comparison)
    reach = difference if operator.startswith(">") else make_constant(0) - difference
    return reach if operator.endswith("=") else reach - ONE


def _write_extreme(line: str) -> str:
    """With the larger or the smaller of two numbers written out."""
    match = re.search(r"_(MAX|MIN)\((.*), (\w+)\);$", line)
    if match is None:
        return line
    sign = ">" if match[1] == "MAX" else "<"
    return f"{line[: match.start()]}{match[2]} {sign} {match[3]} ? {match[2]} : {match[3]};"


def _move_to(polynomial: Polynomial, axis: TileAxis, place: int) -> Polynomial:
    """With a place of the tile for the loop's variable."""
    factor = polynomial.find_factor(axis.loop.variable)
    if factor is None or not factor.terms:
        return polynomial
    variable = Polynomial({(axis.loop.variable,): 1})
    return polynomial - factor * variable + factor * (Polynomial({(axis.start,): 1}) + make_constant(place))


def _list_conjuncts(test: Node) -> list[Node]:
    if test.type == "parenthesized_expression":
        return _list_conjuncts(test.named_children[0])
    left_side, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if test.type == "binary_expression" and read_operator(test) == "&&" and left_side is not None and right is not None:
        return [*_list_conjuncts(left_side), *_list_conjuncts(right)]
    return [test]


def write_header(loop: CountedLoop) -> str:
    """The head of a loop as it stands."""
    start, end = loop.node.start_byte, loop.body.start_byte
    return (loop.node.text or b"")[: end - start].decode().rstrip()


def _bracket(node: Node) -> str:
    text = read_text(node)
    return text if node.type in ("identifier", "number_literal", "subscript_expression") else f"({text})"


def _is_counter(variable: DeclaredVariable) -> bool:
    declaration = variable.declarator.parent
    return declaration is not None and declaration.parent is not None and declaration.parent.type == FOR


def has_gathering(loop: CountedLoop) -> bool:
    """Whether its body has a loop of its own."""
    return any(node.type == FOR for node in walk_nodes(loop.body))
