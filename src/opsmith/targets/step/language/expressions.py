"""Expressions of the program language: names, lists, dims, calls and loops over lists. (reference section 3)

`Evaluator` evaluates one expression at a time and knows no statements; streams are opaque to it. Every form outside the
language raises `LangError`, every limit `TooLarge`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from opsmith.targets.step.language.dims import Dim, DimError, as_dim
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
    construct,
    describe,
    leaves,
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

    def tick(self, steps: int = 1) -> None:
        """Pay for work that a short text can ask for again and again."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooLarge("the program", f"more than {MAX_STEPS} steps", "a program that unrolls to fewer")

    def evaluate(self, node: ast.expr) -> Any:
        self.steps += 1
        self.depth += 1
        handler = _HANDLERS.get(type(node))
        if handler is None or self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise self._refusal(node)
        value = handler(self, node)
        self.depth -= 1
        return value

    def _refusal(self, node: ast.expr) -> LangError:
        self.tick(0)
        if type(node) in _HANDLERS:
            return TooLarge("the program", f"nesting deeper than {MAX_DEPTH}", "a flatter program", "", node.lineno)
        return LangError(
            "expression", construct(node), "names, lists, dims and primitives", remedy_for(node), node.lineno
        )

    def _name(self, node: ast.Name) -> Any:
        try:
            return self.bound[node.id]
        except KeyError:
            return self._unbound(node.id, node.lineno)

    def _unbound(self, name: str, line: int) -> Any:
        if name in BUILTINS:
            raise LangError("expression", f"{name} as a value", f"{name}( ... )", "", line)
        if self.missing is None:
            known = _listing(tuple(self.names))
            raise LangError("name", f"{name}, which is not defined", f"one of {known}", "check the spelling", line)
        self.bound[name] = self.missing(name)
        return self.bound[name]

    def _constant(self, node: ast.Constant) -> Any:
        if type(node.value) is not int or abs(node.value) > MAX_INT:
            raise LangError("expression", construct(node), "whole numbers, names and primitives", "", node.lineno)
        return node.value

    def _list(self, node: ast.List) -> Any:
        return [self.evaluate(item) for item in node.elts]

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.evaluate(item) for item in node.elts])

    def _comprehension(self, node: ast.ListComp) -> Any:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            raise LangError("comprehension", "more than one for, or an if", "[... for x in ...]", "nest two lists")
        own, _ = stored_names(generator.target)
        outer = {name: self.bound[name] for name in own if name in self.bound}
        values = []
        for item in self.iterate(generator.iter):
            self.tick()
            self.bind_target(generator.target, item)
            values.append(self.evaluate(node.elt))
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
            self.applier.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.tick(len(target.elts))
            for name, part in zip(target.elts, unpack(target, value), strict=True):
                self.bind_target(name, part)
        else:
            raise LangError("assignment", construct(target), "names", "bind a new name")

    def _subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise LangError("subscript", "a slice", "one whole number", "index the elements one by one", node.lineno)
        owner, index = self.evaluate(node.value), self.evaluate(node.slice)
        if isinstance(owner, Unknown) or isinstance(index, Unknown):
            return UNKNOWN
        if not isinstance(owner, (list, tuple)):
            remedy = "a Map whose fn returns the field" if isinstance(owner, Opaque) else ""
            raise LangError("subscript", f"a subscript of {describe(owner)}", "a list or tuple", remedy, node.lineno)
        number = self.as_int(index)
        if not -len(owner) <= number < len(owner):
            raise LangError(
                "subscript", f"index {number} of {len(owner)} elements", "an index in range", "", node.lineno
            )
        return owner[number]

    def _negate(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate(node.operand)
        if not isinstance(node.op, ast.USub):
            raise LangError("expression", construct(node), "-INT", "", node.lineno)
        return UNKNOWN if isinstance(value, Unknown) else -self.as_int(value)

    def _arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return UNKNOWN
        try:
            return self._compute(node.op, left, right)
        except (DimError, ZeroDivisionError) as error:
            raise LangError(
                "arithmetic", str(error), "a dim or whole number of sensible size", "", node.lineno
            ) from None

    def _compute(self, op: ast.operator, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.Add, ast.Sub)):
            a, b = self.as_int(left), self.as_int(right)
            return _bounded(a + b if isinstance(op, ast.Add) else a - b)
        if not isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)):
            raise LangError("arithmetic", f"the operator {type(op).__name__}", "*, /, //, + or -")
        multiply = isinstance(op, ast.Mult)
        if isinstance(left, Dim) or isinstance(right, Dim):
            return _dim(left) * _dim(right) if multiply else _dim(left) / _dim(right)
        return self._compute_sized(op, left, right)

    def _compute_sized(self, op: ast.operator, left: Any, right: Any) -> Any:
        a, b = _number(left), _number(right)
        exact = isinstance(op, ast.Mult) or (b != 0 and a % b == 0)
        result = _bounded(a * b if isinstance(op, ast.Mult) else a // b)
        if isinstance(op, ast.Div) and not exact:
            raise LangError("arithmetic", f"{a} / {b}", "a quotient without remainder", "//")
        sized = isinstance(left, Sized) or isinstance(right, Sized)
        if not sized or result < 1 or min(a, b) < 1 or not exact:
            for part in (left, right):
                self.as_int(part)
            return result
        dims = (_dim(left), _dim(right))
        return Sized(result, dims[0] * dims[1] if isinstance(op, ast.Mult) else dims[0] / dims[1])

    def as_int(self, value: Any) -> int:
        """A whole number where one is needed; `X_value` is read, a bare symbol is refused."""
        if isinstance(value, Sized):
            return self.applier.read_size(value)
        if type(value) is not int:
            remedy = f"{value}_value is its number" if isinstance(value, Dim) else ""
            raise LangError("expression", describe(value), "a whole number", remedy)
        return value

    # ---------------------------------------------------------------- calls
    def _call(self, node: ast.Call) -> Any:
        func = node.func
        if type(func) is ast.Attribute:
            owner = func.value
            if type(owner) is ast.Name and owner.id == "step":
                return self._primitive(node, func.attr)
            if func.attr == "apply":
                return self._apply(node, owner)
            what = "append is a statement" if func.attr == "append" else f"a call of .{func.attr}( )"
            raise LangError("call", what, "step.PRIMITIVE( ) and .apply( )", "", node.lineno)
        if isinstance(func, ast.Name) and func.id in ("len", "list", "tuple"):
            return self._sequence_call(node, func.id)
        given = f"a call of {_text(func)}"
        raise LangError(
            "call", given, "step.PRIMITIVE( ), .apply( ), len, list or tuple", "use a primitive", node.lineno
        )

    def _sequence_call(self, node: ast.Call, name: str) -> Any:
        if len(node.args) != 1 or node.keywords:
            raise LangError("call", f"{name} with {len(node.args)} arguments", "one", "", node.lineno)
        if name == "len":
            value = self.evaluate(node.args[0])
            if isinstance(value, Unknown):
                return UNKNOWN
            if not isinstance(value, (list, tuple)):
                raise LangError("call", f"len of {describe(value)}", "a list or tuple", "", node.lineno)
            return len(value)
        values = []
        for item in self.iterate(node.args[0]):
            self.tick()
            values.append(item)
        return values if name == "list" else tuple(values)

    def _primitive(self, node: ast.Call, name: str) -> Any:
        op = ALIASES.get(name, name)
        wanted = KEYWORDS.get(op)
        if wanted is None:
            expected = ", ".join(KEYWORDS)
            raise LangError(f"step.{name}", f"the primitive {name}", f"one of {expected}", "", node.lineno)
        if node.args:
            remedy = ", ".join(f"{key}=..." for key in wanted)
            raise LangError(
                f"step.{name}", "positional arguments", "keywords only", f"step.{name}({remedy})", node.lineno
            )
        given = tuple([keyword.arg or "**" for keyword in node.keywords])
        if given != wanted and sorted(given) != sorted(wanted):
            expected = ", ".join(wanted) or "none"
            raise LangError(f"step.{name}", f"keywords {', '.join(given) or 'none'}", expected, "", node.lineno)
        values = {keyword.arg or "": self.evaluate(keyword.value) for keyword in node.keywords}
        return Primitive(op, self.applier.configure(op, values, node.lineno), node.lineno)

    def _apply(self, node: ast.Call, owner: ast.expr) -> Any:
        primitive = self.evaluate(owner)
        argument = self._apply_argument(node)
        value = self.evaluate(argument)
        if type(value) is tuple or type(value) is list:
            self.steps += _weight(value)
        if isinstance(primitive, Unknown):
            return UNKNOWN
        if not isinstance(primitive, Primitive):
            raise LangError("apply", f"apply of {describe(primitive)}", "apply of a primitive", "", node.lineno)
        self.applications += 1
        if self.applications > MAX_APPLICATIONS:
            raise TooLarge("the program", f"more than {MAX_APPLICATIONS} applications", "fewer", "", node.lineno)
        result = self.applier.apply(primitive, value, argument, node.lineno)
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
            given = f"{len(values)} arguments" if not keywords else f"keywords {', '.join(map(str, keywords))}"
            remedy = ".apply((E0, E1)), one tuple" if len(values) > 1 else ".apply(E0)"
            raise LangError("apply", given, "one stream, or one tuple of streams", remedy, node.lineno)
        return values[0]

    # ---------------------------------------------------------------- iteration
    def iterate(self, node: ast.expr) -> Iterable[Any]:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("zip", "enumerate", "range")
        ):
            if node.keywords or not node.args:
                raise LangError(node.func.id, "keywords, or no arguments", "positional arguments", "", node.lineno)
            return self._iterator(node.func.id, node)
        value = self.evaluate(node)
        if isinstance(value, Unknown):
            return ()
        if not isinstance(value, (list, tuple)):
            raise LangError(
                "loop", f"iteration over {describe(value)}", "a list, zip, enumerate or range", "", node.lineno
            )
        return list(value)

    def _iterator(self, name: str, node: ast.Call) -> Iterable[Any]:
        if name == "range":
            if len(node.args) > 3:
                raise LangError("range", f"{len(node.args)} arguments", "one to three", "", node.lineno)
            bounds = [self._range_bound(self.evaluate(argument)) for argument in node.args]
            if len(bounds) == 3 and bounds[2] == 0:
                raise LangError("range", "a step of 0", "another step", "", node.lineno)
            return range(*bounds)
        if name == "enumerate":
            if len(node.args) != 1:
                raise LangError("enumerate", f"{len(node.args)} arguments", "one", "", node.lineno)
            return enumerate(self.iterate(node.args[0]))
        parts = [list(self._bounded(self.iterate(argument))) for argument in node.args]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in parts)
            self.warnings.append(
                f"line {node.lineno}: zip of lists of different lengths ({lengths}) stops at the shortest"
            )
        return zip(*parts, strict=False)

    def _bounded(self, items: Iterable[Any]) -> Iterable[Any]:
        for item in items:
            self.tick()
            yield item

    def _range_bound(self, value: Any) -> int:
        if isinstance(value, Dim):
            size = self.names.get(f"{value}_value")
            return self.as_int(size if isinstance(size, Sized) else value)
        return 0 if isinstance(value, Unknown) else self.as_int(value)


_HANDLERS: dict[type[ast.expr], Callable[[Evaluator, Any], Any]] = {
    ast.Name: Evaluator._name,
    ast.Constant: Evaluator._constant,
    ast.List: Evaluator._list,
    ast.Tuple: Evaluator._tuple,
    ast.ListComp: Evaluator._comprehension,
    ast.Subscript: Evaluator._subscript,
    ast.UnaryOp: Evaluator._negate,
    ast.BinOp: Evaluator._arithmetic,
    ast.Call: Evaluator._call,
}


def _text(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:60]
    except RecursionError:
        return construct(node)


def stored_names(node: ast.AST) -> tuple[list[str], int]:
    """The names that a statement or a target binds, and how much was looked at to find them."""
    names: list[str] = []
    parts: list[Any] = [node]
    for part in parts:  # grows on the way
        if isinstance(part, ast.Name):
            names += [part.id] if isinstance(part.ctx, ast.Store) else []
        elif isinstance(part, list):
            parts += part
        elif isinstance(part, ast.AST):
            parts += [getattr(part, name) for name in part._fields]
    return names, len(parts)


def _weight(argument: Sequence[Any]) -> int:
    """How much work an application's argument may be: its parts, and what the lists among them hold."""
    nested = [part for part in argument if type(part) is list or type(part) is tuple]
    return len(argument) + (sum([max(len(part), len(leaves(part))) for part in nested]) if nested else 0)


@lru_cache(maxsize=64)
def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(sorted(names)[:40])


def unpack(target: ast.Tuple | ast.List, value: Any) -> list[Any]:
    """One value per name of an unpacking target. Raises LangError."""
    if isinstance(value, Unknown):
        return [UNKNOWN] * len(target.elts)
    if not isinstance(value, (list, tuple)):
        raise LangError("assignment", f"{describe(value)} for {len(target.elts)} names", "one name", "E1 = ...")
    if any(isinstance(part, ast.Starred) for part in target.elts):
        raise LangError("assignment", "a starred name", "one name per value")
    if len(value) != len(target.elts):
        raise LangError("assignment", f"{len(value)} values for {len(target.elts)} names", "as many names as values")
    return list(value)


def _bounded(value: int) -> int:
    if abs(value) > MAX_INT:
        raise DimError("a number beyond 2^62")
    return value


def _number(value: Any) -> int:
    if isinstance(value, Sized):
        return value.value
    if type(value) is not int:
        raise LangError("arithmetic", describe(value), "a dim or a whole number")
    return value


def _dim(value: Any) -> Dim:
    if isinstance(value, Sized):
        return value.dim
    if isinstance(value, Dim) or type(value) is int:
        return as_dim(value)
    raise LangError("arithmetic", describe(value), "a dim or a whole number")
