"""Expressions of the program language: names, lists, dims, calls and loops over lists.

`Evaluator` evaluates one expression at a time and knows no statements; streams are opaque to it. Every form outside the
language raises `LangError`, every limit `TooLarge`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.problems.dims import Dim, DimError, as_dim
from opsmith.targets.step.language.ops import ALIASES, KEYWORDS
from opsmith.targets.step.language.values import (
    BUILTINS,
    UNKNOWN,
    Applier,
    LangError,
    Opaque,
    Primitive,
    Sized,
    TooLarge,
    Unknown,
    describe_construct,
    describe_value,
    list_leaves,
    remedy_for,
)

MAX_APPLICATIONS = 10_000
MAX_DEPTH = 100
MAX_STEPS = 200_000  # evaluated expressions: bounds comprehensions and doubling lists
MAX_INT = 2**62


@dataclass
class Evaluator:
    """Evaluates expressions over opaque streams. `names`: inputs, fns, symbols (Dim) and sizes (Sized) by name."""

    names: Mapping[str, Any]
    applier: Applier
    missing: Callable[[str], Any] | None = None  # what an unbound name is; None: a LANG error
    warnings: list[str] = field(default_factory=list)
    steps: int = 0
    applications: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self.bound = dict(self.names)  # what every name stands for now

    def count_steps(self, steps: int = 1) -> None:
        """Pay for work that a short text can ask for again and again."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooLarge("the program", f"more than {MAX_STEPS} steps", "a program that unrolls to fewer")

    def evaluate_node(self, node: ast.expr) -> Any:
        self.steps += 1
        self.depth += 1
        handler = _HANDLERS.get(type(node))
        if handler is None or self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise self._refuse_node(node)
        value = handler(self, node)
        self.depth -= 1
        return value

    def _refuse_node(self, node: ast.expr) -> LangError:
        self.count_steps(0)
        if type(node) in _HANDLERS:
            return TooLarge("the program", f"nesting deeper than {MAX_DEPTH}", "a flatter program", "", node.lineno)
        return LangError(
            "expression", describe_construct(node), "names, lists, dims and primitives", remedy_for(node), node.lineno
        )

    def _evaluate_name(self, node: ast.Name) -> Any:
        try:
            return self.bound[node.id]
        except KeyError:
            return self._resolve_unbound(node.id, node.lineno)

    def _resolve_unbound(self, name: str, line: int) -> Any:
        if name in BUILTINS:
            raise LangError("expression", f"{name} as a value", f"{name}( ... )", "", line)
        if self.missing is None:
            names = _list_names(tuple(self.names))
            raise LangError("name", f"{name}, which is not defined", f"one of {names}", "check the spelling", line)
        self.bound[name] = self.missing(name)
        return self.bound[name]

    def _evaluate_constant(self, node: ast.Constant) -> Any:
        if type(node.value) is not int or abs(node.value) > MAX_INT:
            remedy = f"{node.value} without quotes" if node.value in self.bound else ""
            raise LangError(
                "expression", describe_construct(node), "whole numbers, names and primitives", remedy, node.lineno
            )
        return node.value

    def _evaluate_list(self, node: ast.List) -> Any:
        return [self.evaluate_node(element) for element in node.elts]

    def _evaluate_tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.evaluate_node(element) for element in node.elts])

    def _evaluate_comprehension(self, node: ast.ListComp) -> Any:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            raise LangError("comprehension", "more than one for, or an if", "[... for x in ...]", "nest two lists")
        own, _ = stored_names(generator.target)
        outer = {name: self.bound[name] for name in own if name in self.bound}
        values = []
        for element in self.iterate_over(generator.iter):
            self.count_steps()
            self.bind_target(generator.target, element)
            values.append(self.evaluate_node(node.elt))
        for name in own:
            self.bound.pop(name, None)
        self.bound |= outer
        return values

    def bind_target(self, target: ast.expr, value: Any) -> None:
        """Bind a target's names: a name, or names that unpack a list or tuple."""
        if type(target) is ast.Name:
            if target.id in BUILTINS:
                raise LangError("assignment", f"the name {target.id}", "a name of your own", f"{target.id}_0 = ...")
            self.bound[target.id] = value
            self.applier.bind_name(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.count_steps(len(target.elts))
            for name, element in zip(target.elts, unpack_values(target, value), strict=True):
                self.bind_target(name, element)
        else:
            raise LangError("assignment", describe_construct(target), "names", "bind a new name")

    def _evaluate_subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise LangError("subscript", "a slice", "one whole number", "index the elements one by one", node.lineno)
        owner, index = self.evaluate_node(node.value), self.evaluate_node(node.slice)
        if isinstance(owner, Unknown) or isinstance(index, Unknown):
            return UNKNOWN
        if not isinstance(owner, (list, tuple)):
            remedy = "a Map whose fn returns the field" if isinstance(owner, Opaque) else ""
            raise LangError(
                "subscript", f"a subscript of {describe_value(owner)}", "a list or tuple", remedy, node.lineno
            )
        number = self.as_index(owner, index)
        if not -len(owner) <= number < len(owner):
            raise LangError(
                "subscript", f"index {number} of {len(owner)} elements", "an index in range", "", node.lineno
            )
        return owner[number]

    def _evaluate_negation(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate_node(node.operand)
        if not isinstance(node.op, ast.USub):
            raise LangError("expression", describe_construct(node), "-INT", "", node.lineno)
        return UNKNOWN if isinstance(value, Unknown) else self.negate_value(value)

    def negate_value(self, value: Any) -> Any:
        return -self.as_int(value)

    def _evaluate_arithmetic(self, node: ast.BinOp) -> Any:
        first, second = self.evaluate_node(node.left), self.evaluate_node(node.right)
        if isinstance(first, Unknown) or isinstance(second, Unknown):
            return UNKNOWN
        try:
            return self._compute_binary(node.op, first, second)
        except (DimError, ZeroDivisionError) as error:
            raise LangError(
                "arithmetic", str(error), "a dim or whole number of sensible size", "", node.lineno
            ) from None

    def _compute_binary(self, op: ast.operator, first: Any, second: Any) -> Any:
        if isinstance(op, (ast.Add, ast.Sub)):
            a, b = self.as_int(first), self.as_int(second)
            return _check_bounds(a + b if isinstance(op, ast.Add) else a - b)
        if not isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)):
            raise LangError("arithmetic", f"the operator {type(op).__name__}", "*, /, //, + or -")
        multiply = isinstance(op, ast.Mult)
        if isinstance(first, Dim) or isinstance(second, Dim):
            return (
                _require_dim(first) * _require_dim(second) if multiply else _require_dim(first) / _require_dim(second)
            )
        return self._compute_sized(op, first, second)

    def _compute_sized(self, op: ast.operator, first: Any, second: Any) -> Any:
        a, b = _require_number(first), _require_number(second)
        exact = isinstance(op, ast.Mult) or (b != 0 and a % b == 0)
        result = _check_bounds(a * b if isinstance(op, ast.Mult) else a // b)
        if isinstance(op, ast.Div) and not exact:
            raise LangError("arithmetic", f"{a} / {b}", "a quotient without remainder", "//")
        sized = isinstance(first, Sized) or isinstance(second, Sized)
        if not sized or result < 1 or min(a, b) < 1 or not exact:
            for operand in (first, second):
                self.as_int(operand)
            return result
        dims = (_require_dim(first), _require_dim(second))
        return Sized(result, dims[0] * dims[1] if isinstance(op, ast.Mult) else dims[0] / dims[1])

    def as_int(self, value: Any) -> int:
        """A whole number where one is needed; `X_value` is read, a bare symbol is refused."""
        if isinstance(value, Sized):
            return self.applier.read_size(value)
        if type(value) is not int:
            remedy = f"{value}_value is its number" if isinstance(value, Dim) else ""
            raise LangError("expression", describe_value(value), "a whole number", remedy)
        return value

    def as_index(self, owner: Sequence[Any], index: Any) -> int:
        """Which element of a list or tuple a subscript means."""
        return self.as_int(index)

    # ---------------------------------------------------------------- calls
    def _evaluate_call(self, node: ast.Call) -> Any:
        func = node.func
        if type(func) is ast.Attribute:
            owner = func.value
            if type(owner) is ast.Name and owner.id == "step":
                return self._evaluate_primitive(node, func.attr)
            if func.attr == "apply":
                return self._evaluate_apply(node, owner)
            what = "append is a statement" if func.attr == "append" else f"a call of .{func.attr}( )"
            raise LangError("call", what, "step.PRIMITIVE( ) and .apply( )", "", node.lineno)
        if isinstance(func, ast.Name) and func.id in ("len", "list", "tuple"):
            return self._sequence_call(node, func.id)
        call = f"a call of {_node_text(func)}"
        raise LangError(
            "call", call, "step.PRIMITIVE( ), .apply( ), len, list or tuple", "use a primitive", node.lineno
        )

    def _sequence_call(self, node: ast.Call, name: str) -> Any:
        if len(node.args) != 1 or node.keywords:
            raise LangError("call", f"{name} with {len(node.args)} arguments", "one argument", "", node.lineno)
        if name == "len":
            value = self.evaluate_node(node.args[0])
            if isinstance(value, Unknown):
                return UNKNOWN
            if not isinstance(value, (list, tuple)):
                raise LangError("call", f"len of {describe_value(value)}", "a list or tuple", "", node.lineno)
            return len(value)
        values = []
        for element in self.iterate_over(node.args[0]):
            self.count_steps()
            values.append(element)
        return values if name == "list" else tuple(values)

    def _evaluate_primitive(self, node: ast.Call, name: str) -> Any:
        op = ALIASES.get(name, name)
        expected_keys = KEYWORDS.get(op)
        if expected_keys is None:
            expected = ", ".join(KEYWORDS)
            raise LangError(f"step.{name}", f"the primitive {name}", f"one of {expected}", "", node.lineno)
        if node.args:
            remedy = ", ".join(f"{key}=..." for key in expected_keys)
            raise LangError(
                f"step.{name}", "positional arguments", "keywords only", f"step.{name}({remedy})", node.lineno
            )
        keys = tuple([keyword.arg or "**" for keyword in node.keywords])
        if keys != expected_keys and sorted(keys) != sorted(expected_keys):
            expected = ", ".join(expected_keys) or "none"
            raise LangError(f"step.{name}", f"keywords {', '.join(keys) or 'none'}", expected, "", node.lineno)
        values = {keyword.arg or "": self.evaluate_node(keyword.value) for keyword in node.keywords}
        return Primitive(op, self.applier.configure_primitive(op, values, node.lineno), node.lineno)

    def _evaluate_apply(self, node: ast.Call, owner: ast.expr) -> Any:
        primitive = self.evaluate_node(owner)
        argument = self._apply_argument(node)
        value = self.evaluate_node(argument)
        if type(value) is tuple or type(value) is list:
            self.steps += _weigh_argument(value)
        if isinstance(primitive, Unknown):
            return UNKNOWN
        if not isinstance(primitive, Primitive):
            raise LangError("apply", f"apply of {describe_value(primitive)}", "apply of a primitive", "", node.lineno)
        self.applications += 1
        if self.applications > MAX_APPLICATIONS:
            raise TooLarge("the program", f"more than {MAX_APPLICATIONS} applications", "fewer", "", node.lineno)
        result = self.applier.apply_primitive(primitive, value, argument, node.lineno)
        if type(result) is list:
            self.steps += len(result)
        return result

    def _apply_argument(self, node: ast.Call) -> ast.expr:
        if len(node.args) == 1 and not node.keywords and type(node.args[0]) is not ast.Starred:
            return node.args[0]
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        keywords.pop("name", None)
        values = [*node.args, *([keywords.pop("input")] if "input" in keywords else [])]
        if len(values) != 1 or keywords or isinstance(values[0], ast.Starred):
            description = f"{len(values)} arguments" if not keywords else f"keywords {', '.join(map(str, keywords))}"
            remedy = ".apply((E0, E1)), one tuple" if len(values) > 1 else ".apply(E0)"
            raise LangError("apply", description, "one stream, or one tuple of streams", remedy, node.lineno)
        return values[0]

    # ---------------------------------------------------------------- iteration
    def iterate_over(self, node: ast.expr) -> Iterable[Any]:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("zip", "enumerate", "range")
        ):
            if node.keywords or not node.args:
                raise LangError(node.func.id, "keywords, or no arguments", "positional arguments", "", node.lineno)
            return self._iterate_call(node.func.id, node)
        value = self.evaluate_node(node)
        if isinstance(value, Unknown):
            return ()
        if not isinstance(value, (list, tuple)):
            raise LangError(
                "loop", f"iteration over {describe_value(value)}", "a list, zip, enumerate or range", "", node.lineno
            )
        return list(value)

    def _iterate_call(self, name: str, node: ast.Call) -> Iterable[Any]:
        if name == "range":
            if len(node.args) > 3:
                raise LangError("range", f"{len(node.args)} arguments", "one to three", "", node.lineno)
            return self.range_of([self.evaluate_node(argument) for argument in node.args], node.lineno)
        if name == "enumerate":
            if len(node.args) != 1:
                raise LangError("enumerate", f"{len(node.args)} arguments", "one argument", "", node.lineno)
            return enumerate(self.iterate_over(node.args[0]))
        sequences = [list(self._count_elements(self.iterate_over(argument))) for argument in node.args]
        if len({len(sequence) for sequence in sequences}) > 1:
            lengths = ", ".join(str(len(sequence)) for sequence in sequences)
            self.warnings.append(
                f"line {node.lineno}: zip of lists of different lengths ({lengths}) stops at the shortest"
            )
        return zip(*sequences, strict=False)

    def range_of(self, values: Sequence[Any], line: int) -> range:
        """What `range` of one to three values runs over."""
        bounds = [self._range_bound(value) for value in values]
        if len(bounds) == 3 and bounds[2] == 0:
            raise LangError("range", "a step of 0", "another step", "", line)
        return range(*bounds)

    def _count_elements(self, elements: Iterable[Any]) -> Iterable[Any]:
        for element in elements:
            self.count_steps()
            yield element

    def _range_bound(self, value: Any) -> int:
        if isinstance(value, Dim):
            size = self.names.get(f"{value}_value")
            return self.as_int(size if isinstance(size, Sized) else value)
        return 0 if isinstance(value, Unknown) else self.as_int(value)


_HANDLERS: dict[type[ast.expr], Callable[[Evaluator, Any], Any]] = {
    ast.Name: Evaluator._evaluate_name,
    ast.Constant: Evaluator._evaluate_constant,
    ast.List: Evaluator._evaluate_list,
    ast.Tuple: Evaluator._evaluate_tuple,
    ast.ListComp: Evaluator._evaluate_comprehension,
    ast.Subscript: Evaluator._evaluate_subscript,
    ast.UnaryOp: Evaluator._evaluate_negation,
    ast.BinOp: Evaluator._evaluate_arithmetic,
    ast.Call: Evaluator._evaluate_call,
}


def _node_text(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:60]
    except RecursionError:
        return describe_construct(node)


def stored_names(node: ast.AST) -> tuple[list[str], int]:
    """The names that a statement or a target binds, and how much was looked at to find them."""
    names: list[str] = []
    pending: list[Any] = [node]
    for entry in pending:  # grows on the way
        if isinstance(entry, ast.Name):
            names += [entry.id] if isinstance(entry.ctx, ast.Store) else []
        elif isinstance(entry, list):
            pending += entry
        elif isinstance(entry, ast.AST):
            pending += [getattr(entry, name) for name in entry._fields]
    return names, len(pending)


def _weigh_argument(argument: Sequence[Any]) -> int:
    """How much work an application's argument may be: its parts, and what the lists among them hold."""
    nested = [entry for entry in argument if type(entry) is list or type(entry) is tuple]
    return len(argument) + (sum([max(len(entry), len(list_leaves(entry))) for entry in nested]) if nested else 0)


@lru_cache(maxsize=64)
def _list_names(names: tuple[str, ...]) -> str:
    return ", ".join(sorted(names)[:40])


def unpack_values(target: ast.Tuple | ast.List, value: Any) -> list[Any]:
    """One value per name of an unpacking target. Raises LangError."""
    if isinstance(value, Unknown):
        return [UNKNOWN] * len(target.elts)
    if not isinstance(value, (list, tuple)):
        raise LangError("assignment", f"{describe_value(value)} for {len(target.elts)} names", "one name", "E1 = ...")
    if any(isinstance(element, ast.Starred) for element in target.elts):
        raise LangError("assignment", "a starred name", "one name per value")
    if len(value) != len(target.elts):
        raise LangError("assignment", f"{len(value)} values for {len(target.elts)} names", "as many names as values")
    return list(value)


def _check_bounds(value: int) -> int:
    if abs(value) > MAX_INT:
        raise DimError("a number beyond 2^62")
    return value


def _require_number(value: Any) -> int:
    if isinstance(value, Sized):
        return value.value
    if type(value) is not int:
        raise LangError("arithmetic", describe_value(value), "a dim or a whole number")
    return value


def _require_dim(value: Any) -> Dim:
    if isinstance(value, Sized):
        return value.dim
    if isinstance(value, Dim) or type(value) is int:
        return as_dim(value)
    raise LangError("arithmetic", describe_value(value), "a dim or a whole number")
