"""Subscripts and bounds as polynomials in the variables of a program, with whole coefficients."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opsmith_lab.c.tuning.syntax import exchange_names, find_declaration, list_names, read_operator, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

Monomial = tuple[str, ...]  # sorted atoms: variables, or texts of what is no polynomial
_DEEPEST = 12
_INTEGERS = frozenset("int64_t int32_t int long size_t uint32_t uint64_t ptrdiff_t unsigned int16_t".split())  # noqa: SIM905
_SUFFIX = re.compile(r"[uUlL]+$")


@dataclass(frozen=True)
class Polynomial:
    """`terms`: coefficient by product of atoms, none of them zero."""

    terms: Mapping[Monomial, int] = field(default_factory=dict)

    def __add__(self, summand: Polynomial) -> Polynomial:
        return _collect([*self.terms.items(), *summand.terms.items()])

    def __sub__(self, summand: Polynomial) -> Polynomial:
        return self + Polynomial({monomial: -factor for monomial, factor in summand.terms.items()})

    def __mul__(self, factor: Polynomial) -> Polynomial:
        return _collect(
            [
                (tuple(sorted(mine + theirs)), number * times)
                for mine, number in self.terms.items()
                for theirs, times in factor.terms.items()
            ]
        )

    @property
    def constant(self) -> int | None:
        """Its number; None where it is more than one."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else None

    def mentions(self, name: str) -> bool:
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        return any(pattern.search(atom) for monomial in self.terms for atom in monomial)

    def find_factor(self, name: str) -> Polynomial | None:
        """What the variable is multiplied by; None where the polynomial is not linear in it."""
        terms = {}
        for monomial, factor in self.terms.items():
            count = monomial.count(name)
            remaining = tuple(atom for atom in monomial if atom != name)
            if count > 1 or Polynomial({remaining: 1}).mentions(name):
                return None
            if count:
                terms[remaining] = factor
        return Polynomial(terms)

    def is_positive(self) -> bool:
        """Whether it is at least 1 where every atom is, as far as that can be seen."""
        shifted = Polynomial({(): 0})
        for monomial, factor in self.terms.items():
            product = Polynomial({(): factor})
            for atom in monomial:
                product = product * Polynomial({(): 1, (atom,): 1})
            shifted = shifted + product
        return shifted.terms.get((), 0) >= 1 and all(factor >= 0 for factor in shifted.terms.values())


ONE = Polynomial({(): 1})


def make_constant(number: int) -> Polynomial:
    return Polynomial({(): number} if number else {})


def _collect(terms: list[tuple[Monomial, int]]) -> Polynomial:
    total: Counter[Monomial] = Counter()
    for monomial, factor in terms:
        total[monomial] += factor
    return Polynomial({monomial: factor for monomial, factor in total.items() if factor})


def read_polynomial(node: Node, assigned: frozenset[str], depth: int = 0) -> Polynomial:
    """An expression of integers; what is no sum or product is an atom.

    Variables that are declared with a value and never `assigned` another one stand for that value.
    """
    read = _READERS.get(node.type, _read_operation)
    return read(node, assigned, depth)


def _read_number(node: Node, assigned: frozenset[str], depth: int) -> Polynomial:
    text = _SUFFIX.sub("", read_text(node))
    return make_constant(int(text, 0)) if re.fullmatch(r"0x[\da-fA-F]+|\d+", text) else _make_atom(node, assigned)


def _read_bracket(node: Node, assigned: frozenset[str], depth: int) -> Polynomial:
    return read_polynomial(node.named_children[0], assigned, depth)


def _read_operation(node: Node, assigned: frozenset[str], depth: int) -> Polynomial:
    """A sum, a difference, a product or a negative number; anything else is an atom."""
    left_side, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if (
        node.type == "binary_expression"
        and left_side is not None
        and right is not None
        and read_operator(node) in "+-*"
    ):
        mine, theirs = read_polynomial(left_side, assigned, depth), read_polynomial(right, assigned, depth)
        sign = read_operator(node)
        return mine + theirs if sign == "+" else mine - theirs if sign == "-" else mine * theirs
    argument = node.child_by_field_name("argument")
    if node.type == "unary_expression" and argument is not None and read_operator(node) == "-":
        return make_constant(0) - read_polynomial(argument, assigned, depth)
    return _make_atom(node, assigned)


def _read_cast(node: Node, assigned: frozenset[str], depth: int) -> Polynomial:
    kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
    if kind is not None and value is not None and read_text(kind) in _INTEGERS:
        return read_polynomial(value, assigned, depth)
    return _make_atom(node, assigned)


def _read_variable(node: Node, assigned: frozenset[str], depth: int) -> Polynomial:
    name = read_text(node)
    variable = None if name in assigned or depth > _DEEPEST else find_declaration(node, name)
    if variable is None or variable.value is None or not variable.is_scalar or _is_counter(variable.declarator):
        return Polynomial({(name,): 1})
    if variable.type_text.removeprefix("const ") not in _INTEGERS:
        return Polynomial({(name,): 1})
    return read_polynomial(variable.value, assigned, depth + 1)


def _is_counter(declarator: Node) -> bool:
    """Whether it is declared in the head of a loop."""
    declaration = declarator.parent
    return declaration is not None and declaration.parent is not None and declaration.parent.type == "for_statement"


def _make_atom(node: Node, assigned: frozenset[str]) -> Polynomial:
    """Its text, with the values of variables in place of them, so that it says what it depends on."""
    texts = {}
    for child_name in list_names(node) - assigned:
        variable = find_declaration(node, child_name)
        if variable is not None and variable.value is not None and not _is_counter(variable.declarator):
            texts[child_name] = f"({read_text(variable.value)})"
    return Polynomial({(re.sub(r"\s+", " ", exchange_names(node, texts)),): 1})


_READERS: dict[str, Callable[[Node, frozenset[str], int], Polynomial]] = {
    "number_literal": _read_number,
    "parenthesized_expression": _read_bracket,
    "cast_expression": _read_cast,
    "identifier": _read_variable,
}


def write_polynomial(polynomial: Polynomial) -> str:
    """As an expression of C; atoms that are more than a name in brackets."""
    pieces = []
    for monomial, factor in sorted(polynomial.terms.items(), key=lambda term: (-len(term[0]), term[0])):
        atoms = [atom if re.fullmatch(r"\w+", atom) else f"({atom})" for atom in monomial]
        numbers = [str(abs(factor))] if abs(factor) != 1 or not atoms else []
        pieces.append(("- " if factor < 0 else "+ ") + " * ".join([*numbers, *atoms]))
    text = " ".join(pieces).removeprefix("+ ")
    return text.replace("- ", "-", 1) if text.startswith("- ") else text or "0"
