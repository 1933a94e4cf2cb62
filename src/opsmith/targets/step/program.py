"""The program language: what does the text of an `impl` do, statement by statement? (reference section 3)

A program is a small subset of Python, parsed with `ast` and interpreted here, never executed as Python. This module
knows names, lists, loops and calls; streams are opaque to it. Each `primitive.apply(argument)` is handed to an
`Applier`, which types it (`check`) or only counts consumptions (`affine`). What is outside the subset, or too large,
becomes a LANG diagnostic with its line; the statement's targets are then `UNKNOWN`, and the rest is still checked.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from opsmith.records import Diagnostic
from opsmith.targets.step.dims import Dim, DimError, as_dim
from opsmith.targets.step.ops import ALIASES, KEYWORDS

MAX_TEXT = 64 * 1024
MAX_APPLICATIONS = 10_000
MAX_DEPTH = 100
MAX_STEPS = 200_000  # evaluated expressions: bounds comprehensions and doubling lists
MAX_INT = 2**62
MAX_FINDINGS = 20
BUILTINS = frozenset({"step", "len", "list", "tuple", "zip", "enumerate", "range"})


class Unknown:
    """The value of an expression that was already reported; it passes every further check silently."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Sized:
    """`X_value`, and products and exact quotients of such: a number that remembers its dim."""

    value: int
    dim: Dim


@dataclass(frozen=True, slots=True)
class Primitive:
    """`step.NAME(...)`: may be applied several times. `config` is what the Applier made of the keywords."""

    op: str
    config: Any
    line: int


@dataclass(eq=False, slots=True)
class Opaque:
    """A named value with no meaning to the interpreter: a stream's base class, and fns."""

    name: str


class Applier(Protocol):
    """What the interpreter asks of its owner."""

    def configure(self, op: str, keywords: Mapping[str, Any], line: int) -> Any:
        """Check a primitive's arguments; returns what `apply` gets back."""
        ...

    def apply(self, primitive: Primitive, argument: Any, node: ast.expr, line: int) -> Any:
        """One application; returns a stream, a tuple or a list of streams."""
        ...

    def bind(self, name: str, value: Any, statement: ast.stmt) -> None:
        """A top-level or loop assignment gave `value` a name."""
        ...

    def read_size(self, sized: Sized) -> int:
        """The number behind `X_value` is used as a number."""
        ...


class LangError(Exception):
    """Outside the language: reported at the statement's line, then the statement is skipped."""

    def __init__(self, where: str, given: str, expected: str, remedy: str = "", line: int | None = None) -> None:
        super().__init__(given)
        self.where, self.given, self.expected, self.remedy, self.line = where, given, expected, remedy, line


class TooLarge(LangError):
    """A limit struck: the rest of the program is not looked at."""


@dataclass
class Interpreter:
    """Runs one program over opaque streams. `names`: inputs, fns, symbols (Dim) and sizes (Sized) by name."""

    names: Mapping[str, Any]
    applier: Applier
    missing: Callable[[str], Any] | None = None  # what an unbound name is; None: a LANG error
    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    local: dict[str, Any] = field(default_factory=dict)
    steps: int = 0
    applications: int = 0
    depth: int = 0

    def run(self, source: str) -> Any:
        """The returned value (a tuple of one or more), or None where there is none to check."""
        try:
            tree = self._parse(source)
            self._check_return(tree.body)
            return self._block(tree.body, top=True)
        except LangError as error:
            self._report(error, error.line)
            return None

    # ---------------------------------------------------------------- text
    def _parse(self, source: str) -> ast.Module:
        if len(source) > MAX_TEXT:
            raise TooLarge("the program", f"{len(source)} characters", f"at most {MAX_TEXT}", "write less")
        text = dedent(source)
        self.lines = text.split("\n")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            raise LangError("syntax", error.msg, "a program of the language", "", error.lineno) from None
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            given = "null bytes" if "null" in str(error) else "text that nests too deep or holds too large a number"
            raise LangError("syntax", given, f"plain text, nested at most {MAX_DEPTH} deep") from None

    def _check_return(self, body: list[ast.stmt]) -> None:
        place = next((i for i, statement in enumerate(body) if isinstance(statement, ast.Return)), None)
        if place is None:
            line = body[-1].lineno if body else 1
            raise LangError("the program", "no return at the end", "a return of the output streams", "return E1", line)
        if place != len(body) - 1:
            after = body[place + 1].lineno
            raise LangError("the program", "code after return", "return as the last statement", "remove it", after)

    def _report(self, error: LangError, line: int | None) -> None:
        line = error.line or line
        text = self.lines[line - 1].strip()[:200] if line and line <= len(self.lines) else ""
        found = Diagnostic("LANG", error.where, error.given, error.expected, error.remedy, line, None, text)
        if len(self.errors) < MAX_FINDINGS and found not in self.errors:  # a loop repeats its findings
            self.errors.append(found)

    # ---------------------------------------------------------------- statements
    def _block(self, body: Iterable[ast.stmt], *, top: bool = False) -> Any:
        result, depth = None, self.depth
        for statement in body:
            self.depth = depth
            try:
                if isinstance(statement, ast.Return):
                    result = self._return(statement, top)
                else:
                    self._statement(statement)
            except TooLarge as error:
                error.line = error.line or statement.lineno
                raise
            except LangError as error:
                self._report(error, statement.lineno)
                self._forget(statement)
        return result

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            if len(statement.targets) != 1:
                raise LangError("assignment", "several targets (a = b = ...)", "one", "one assignment per line")
            self._assign(statement.targets[0], self._eval(statement.value), statement)
        elif isinstance(statement, ast.For):
            self._for(statement)
        elif isinstance(statement, ast.Expr):
            self._expression_statement(statement.value)
        else:
            raise LangError("statement", _construct(statement), "=, .append( ), for or return", _remedy(statement))

    def _expression_statement(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return
        if _is_method(node, "append"):
            self._append(node)
            return
        raise LangError("statement", "an expression whose value is dropped", "an assignment", "E1 = ...")

    def _append(self, node: Any) -> None:
        owner = node.func.value
        if not isinstance(owner, ast.Name) or len(node.args) != 1 or node.keywords:
            raise LangError("append", "another form", "NAME.append(value)")
        target = self._eval(owner)
        value = self._eval(node.args[0])
        if isinstance(target, Unknown):
            return
        if not isinstance(target, list):
            raise LangError("append", f"{describe(target)} {owner.id}", "a list", f"{owner.id} = [] first")
        target.append(value)

    def _for(self, statement: ast.For) -> None:
        if statement.orelse:
            raise LangError("for", "an else branch", "a plain loop", "remove else")
        for item in self._iterate(statement.iter):
            self._tick()
            self._assign(statement.target, item, statement)
            self.depth += 1
            self._block(statement.body)
            self.depth -= 1

    def _return(self, statement: ast.Return, top: bool) -> Any:
        if not top:
            raise LangError("return", "return inside a loop", "return at top level, last")
        if statement.value is None:
            raise LangError("return", "nothing", "the output streams", "return E1")
        value = self._eval(statement.value)
        return tuple(value) if isinstance(value, (tuple, list)) else (value,)

    def _assign(self, target: ast.expr, value: Any, statement: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            if target.id in BUILTINS:
                raise LangError("assignment", f"the name {target.id}", "a name of your own", f"{target.id}_0 = ...")
            self.local[target.id] = value
            self.applier.bind(target.id, value, statement)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, statement)
        else:
            raise LangError("assignment", _construct(target), "names", "bind a new name")

    def _unpack(self, target: ast.Tuple | ast.List, value: Any, statement: ast.stmt) -> None:
        parts: list[Any]
        if isinstance(value, Unknown):
            parts = [UNKNOWN] * len(target.elts)
        elif isinstance(value, (list, tuple)):
            parts = list(value)
        else:
            raise LangError("assignment", f"{describe(value)} for {len(target.elts)} names", "one name", "E1 = ...")
        if any(isinstance(part, ast.Starred) for part in target.elts):
            raise LangError("assignment", "a starred name", "one name per value")
        if len(parts) != len(target.elts):
            raise LangError(
                "assignment", f"{len(parts)} values for {len(target.elts)} names", "as many names as values"
            )
        for name, part in zip(target.elts, parts, strict=True):
            self._assign(name, part, statement)

    def _forget(self, statement: ast.stmt) -> None:
        """Names that a skipped statement would have bound are unknown, so that one mistake gives one message."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in BUILTINS:
                self.local[node.id] = UNKNOWN

    # ---------------------------------------------------------------- expressions
    def _tick(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLarge("the program", f"more than {MAX_STEPS} steps", "a program that unrolls to fewer")

    def _eval(self, node: ast.expr) -> Any:
        self._tick()
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise LangError(
                "expression", _construct(node), "names, lists, dims and primitives", _remedy(node), node.lineno
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge("the program", f"nesting deeper than {MAX_DEPTH}", "a flatter program", "", node.lineno)
        value = handler(self, node)
        self.depth -= 1
        return value

    def _name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self.local:
            return self.local[name]
        if name in self.names:
            return self.names[name]
        if name in BUILTINS:
            raise LangError("expression", f"{name} as a value", f"{name}( ... )", "", node.lineno)
        if self.missing is not None:
            self.local[name] = self.missing(name)
            return self.local[name]
        known = ", ".join(sorted(str(key) for key in self.names)[:40])
        raise LangError("name", f"{name}, which is not defined", f"one of {known}", "check the spelling", node.lineno)

    def _constant(self, node: ast.Constant) -> Any:
        if type(node.value) is not int or abs(node.value) > MAX_INT:
            raise LangError("expression", _construct(node), "whole numbers, names and primitives", "", node.lineno)
        return node.value

    def _list(self, node: ast.List) -> Any:
        return [self._eval(item) for item in node.elts]

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple([self._eval(item) for item in node.elts])

    def _comprehension(self, node: ast.ListComp) -> Any:
        generator = node.generators[0]
        if len(node.generators) != 1 or generator.ifs or generator.is_async:
            raise LangError("comprehension", "more than one for, or an if", "[... for x in ...]", "nest two lists")
        outer = dict(self.local)
        values = []
        for item in self._iterate(generator.iter):
            self._tick()
            self._assign_local(generator.target, item)
            values.append(self._eval(node.elt))
        self.local = outer
        return values

    def _assign_local(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name) and target.id not in BUILTINS:
            self.local[target.id] = value
            return
        self._assign(target, value, ast.Pass())

    def _subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            raise LangError("subscript", "a slice", "one whole number", "index the elements one by one", node.lineno)
        owner, index = self._eval(node.value), self._eval(node.slice)
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
        value = self._eval(node.operand)
        if not isinstance(node.op, ast.USub):
            raise LangError("expression", _construct(node), "-INT", "", node.lineno)
        return UNKNOWN if isinstance(value, Unknown) else -self.as_int(value)

    def _arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self._eval(node.left), self._eval(node.right)
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
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id == "step":
                return self._primitive(node, func.attr)
            if func.attr == "apply":
                return self._apply(node, func.value)
            what = "append is a statement" if func.attr == "append" else f"a call of .{func.attr}( )"
            raise LangError("call", what, "step.PRIMITIVE( ) and .apply( )", "", node.lineno)
        if isinstance(func, ast.Name) and func.id in ("len", "list", "tuple"):
            return self._sequence_call(node, func.id)
        given = f"a call of {ast.unparse(func)[:60]}"
        raise LangError(
            "call", given, "step.PRIMITIVE( ), .apply( ), len, list or tuple", "use a primitive", node.lineno
        )

    def _sequence_call(self, node: ast.Call, name: str) -> Any:
        if len(node.args) != 1 or node.keywords:
            raise LangError("call", f"{name} with {len(node.args)} arguments", "one", "", node.lineno)
        if name == "len":
            value = self._eval(node.args[0])
            if isinstance(value, Unknown):
                return UNKNOWN
            if not isinstance(value, (list, tuple)):
                raise LangError("call", f"len of {describe(value)}", "a list or tuple", "", node.lineno)
            return len(value)
        values = []
        for item in self._iterate(node.args[0]):
            self._tick()
            values.append(item)
        return values if name == "list" else tuple(values)

    def _primitive(self, node: ast.Call, name: str) -> Any:
        op = ALIASES.get(name, name)
        if op not in KEYWORDS:
            expected = ", ".join(KEYWORDS)
            raise LangError(f"step.{name}", f"the primitive {name}", f"one of {expected}", "", node.lineno)
        wanted = KEYWORDS[op]
        if node.args:
            remedy = ", ".join(f"{key}=..." for key in wanted)
            raise LangError(
                f"step.{name}", "positional arguments", "keywords only", f"step.{name}({remedy})", node.lineno
            )
        given = tuple(keyword.arg or "**" for keyword in node.keywords)
        if sorted(given) != sorted(wanted):
            expected = ", ".join(wanted) or "none"
            raise LangError(f"step.{name}", f"keywords {', '.join(given) or 'none'}", expected, "", node.lineno)
        values = {str(keyword.arg): self._eval(keyword.value) for keyword in node.keywords}
        return Primitive(op, self.applier.configure(op, values, node.lineno), node.lineno)

    def _apply(self, node: ast.Call, owner: ast.expr) -> Any:
        primitive = self._eval(owner)
        argument = self._apply_argument(node)
        value = self._eval(argument)
        if isinstance(primitive, Unknown):
            return UNKNOWN
        if not isinstance(primitive, Primitive):
            raise LangError("apply", f"apply of {describe(primitive)}", "apply of a primitive", "", node.lineno)
        self.applications += 1
        if self.applications > MAX_APPLICATIONS:
            raise TooLarge("the program", f"more than {MAX_APPLICATIONS} applications", "fewer", "", node.lineno)
        return self.applier.apply(primitive, value, argument, node.lineno)

    def _apply_argument(self, node: ast.Call) -> ast.expr:
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        keywords.pop("name", None)
        values = [*node.args, *([keywords.pop("input")] if "input" in keywords else [])]
        if len(values) != 1 or keywords or isinstance(values[0], ast.Starred):
            given = f"{len(values)} arguments" if not keywords else f"keywords {', '.join(map(str, keywords))}"
            remedy = ".apply((E0, E1)), one tuple" if len(values) > 1 else ".apply(E0)"
            raise LangError("apply", given, "one stream, or one tuple of streams", remedy, node.lineno)
        return values[0]

    # ---------------------------------------------------------------- iteration
    def _iterate(self, node: ast.expr) -> Iterable[Any]:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("zip", "enumerate", "range")
        ):
            if node.keywords or not node.args:
                raise LangError(node.func.id, "keywords, or no arguments", "positional arguments", "", node.lineno)
            return self._iterator(node.func.id, node)
        value = self._eval(node)
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
            bounds = [self._range_bound(self._eval(argument)) for argument in node.args]
            if len(bounds) == 3 and bounds[2] == 0:
                raise LangError("range", "a step of 0", "another step", "", node.lineno)
            return range(*bounds)
        if name == "enumerate":
            if len(node.args) != 1:
                raise LangError("enumerate", f"{len(node.args)} arguments", "one", "", node.lineno)
            return enumerate(self._iterate(node.args[0]))
        parts = [list(self._bounded(self._iterate(argument))) for argument in node.args]
        if len({len(part) for part in parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in parts)
            self.warnings.append(
                f"line {node.lineno}: zip of lists of different lengths ({lengths}) stops at the shortest"
            )
        return zip(*parts, strict=False)

    def _bounded(self, items: Iterable[Any]) -> Iterable[Any]:
        for item in items:
            self._tick()
            yield item

    def _range_bound(self, value: Any) -> int:
        if isinstance(value, Dim):
            size = self.names.get(f"{value}_value")
            return self.as_int(size if isinstance(size, Sized) else value)
        return 0 if isinstance(value, Unknown) else self.as_int(value)


_HANDLERS: dict[type[ast.expr], Callable[[Interpreter, Any], Any]] = {
    ast.Name: Interpreter._name,
    ast.Constant: Interpreter._constant,
    ast.List: Interpreter._list,
    ast.Tuple: Interpreter._tuple,
    ast.ListComp: Interpreter._comprehension,
    ast.Subscript: Interpreter._subscript,
    ast.UnaryOp: Interpreter._negate,
    ast.BinOp: Interpreter._arithmetic,
    ast.Call: Interpreter._call,
}


def dedent(source: str) -> str:
    """The program's text without the indentation that all its lines share, and without blank lines at its ends."""
    return textwrap.dedent(source.expandtabs(8) if "\t" in source else source).strip("\n")


def describe(value: Any) -> str:
    """A value in words, for messages."""
    if isinstance(value, Opaque):
        return f"{type(value).__name__.lower()} {value.name}".strip()
    if isinstance(value, Primitive):
        return f"the primitive {value.op}"
    if isinstance(value, Sized):
        return f"{value.dim} = {value.value}"
    if isinstance(value, Dim):
        return f"the dim {value}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return "an unknown value" if isinstance(value, Unknown) else f"{value}"


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


def _is_method(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


_WORDS: dict[type[ast.AST], str] = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.FunctionDef: "a function definition",
    ast.AsyncFunctionDef: "a function definition",
    ast.ClassDef: "a class definition",
    ast.While: "a while loop",
    ast.If: "if",
    ast.IfExp: "a conditional expression",
    ast.Lambda: "a lambda",
    ast.AugAssign: "an augmented assignment",
    ast.AnnAssign: "an annotation",
    ast.NamedExpr: "an assignment expression",
    ast.Compare: "a comparison",
    ast.JoinedStr: "a format string",
    ast.Starred: "a starred expression",
    ast.DictComp: "a dict comprehension",
    ast.SetComp: "a set comprehension",
    ast.GeneratorExp: "a generator",
}


def _construct(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"attribute `{node.attr}`"
    if isinstance(node, ast.Constant):
        return f"the constant {str(node.value)[:40]!r}"
    return _WORDS.get(type(node), f"{type(node).__name__.lower()}")


def _remedy(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return "streams are read only by primitives: step.Map(fn=...).apply(E0)"
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return "a plain assignment: E1 = ..."
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Lambda, ast.FunctionDef)):
        return "write the primitives out; functions come from the task"
    return ""
