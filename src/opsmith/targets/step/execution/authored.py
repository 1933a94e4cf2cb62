"""Author's code: how do the Python texts of a task file become code objects, once, and run in a trial's namespace?

Three forms: the body of a fn (`Body`), a text whose last statement has the value (`Transform`: data_transform,
margins), and the lines of `global`. The code is trusted, but it runs in worker processes only. Whatever it does wrong
is a `TaskFault`; errors of ours are never dressed up as the author's.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
import traceback
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from opsmith.records import Diagnostic
from opsmith.targets.step.language.dims import Dim
from opsmith.targets.trial import TaskFault

BUILTINS: Mapping[str, Any] = vars(builtins)
_DOORS = frozenset(("input_data", "globals", "vars", "eval", "exec", "__builtins__", "__globals__", "__import__"))


def fault(kind: str, where: str, given: str, expected: str, remedy: str = "", text: str = "") -> TaskFault:
    """A finding against the task's author; `kind` is TASK or FN."""
    return TaskFault(Diagnostic(kind, where, given, expected, remedy, text=text))


@dataclass(frozen=True)
class Body:
    """The compiled body of a fn: `bind` makes it callable as `f(state, input)` in a namespace."""

    label: str
    text: str = field(repr=False)
    tree: ast.FunctionDef = field(repr=False, compare=False)
    code: CodeType = field(repr=False, compare=False)

    def bind(self, namespace: dict[str, Any]) -> Callable[[Any, Any], Any]:
        return FunctionType(self.code, namespace, self.label)

    def failed(self, error: BaseException) -> TaskFault:
        """The FN finding for an exception that the body raised, with the line where it happened."""
        return _raised("FN", f"{self.label}, its body", self.text, f"<{self.label}>", error)


@dataclass(frozen=True)
class Transform:
    """A compiled text whose last statement is an expression, or an assignment to one name, and gives the value."""

    label: str
    text: str = field(repr=False)
    statements: CodeType = field(repr=False, compare=False)
    value: CodeType = field(repr=False, compare=False)
    name: str | None = None  # what the value is assigned to

    def run(self, namespace: dict[str, Any]) -> Any:
        """Execute in `namespace`, which keeps what the text assigns. Raises TaskFault."""
        try:
            exec(self.statements, namespace)
            value = eval(self.value, namespace)
        except (Exception, SystemExit) as error:
            raise _raised("TASK", self.label, self.text, f"<{self.label}>", error) from error
        if self.name is not None:
            namespace[self.name] = value
        return value


@lru_cache(maxsize=1024)
def compile_body(text: str, label: str) -> Body:
    """A fn's body as code of `state` and `input`. Raises TaskFault (FN) for what is no function body."""
    parsed = _parse("FN", text, f"{label}, its body")
    for node in ast.walk(parsed):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)):
            line = _line(text, node.lineno)
            raise fault("FN", f"{label}, its body", f"`{line}`", "no global names, yield or await", text=line)
    if not any(isinstance(node, ast.Return) for node in ast.walk(parsed)):
        raise fault("FN", f"{label}, its body", "no return", "`return [value, ...]`, one value per field")
    module = ast.parse("def body(state, input): pass")
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = parsed.body
    compiled = compile(module, f"<{label}>", "exec")
    code = next(part for part in compiled.co_consts if isinstance(part, CodeType) and part.co_name == "body")
    return Body(label, text, function, code)


@lru_cache(maxsize=1024)
def compile_transform(text: str, label: str) -> Transform:
    """A data_transform or margin. Raises TaskFault (TASK) unless its last statement has a value."""
    parsed = _parse("TASK", text, label)
    last = parsed.body[-1] if parsed.body else None
    name: str | None = None
    if isinstance(last, ast.Assign) and len(last.targets) == 1 and isinstance(last.targets[0], ast.Name):
        name = last.targets[0].id
    elif not isinstance(last, ast.Expr):
        line = _line(text, last.lineno) if last is not None else ""
        wanted = "an expression, or an assignment to one name, as the last statement"
        raise fault("TASK", label, f"`{line}`" if line else "no statement", wanted, text=line)
    place = f"<{label}>"
    statements = compile(ast.Module(parsed.body[:-1], []), place, "exec")
    return Transform(label, text, statements, compile(ast.Expression(last.value), place, "eval"), name)


@lru_cache(maxsize=256)
def compile_statements(text: str, label: str) -> tuple[CodeType, ...]:
    """The top-level statements of `global`, one by one. Raises TaskFault (TASK)."""
    parsed = _parse("TASK", text, label)
    return tuple(compile(ast.Module([statement], []), f"<{label}>", "exec") for statement in parsed.body)


def run_statements(text: str, label: str, namespace: dict[str, Any], after_each: Callable[[], None]) -> None:
    """Execute `global`; `after_each` runs after every top-level statement. Raises TaskFault (TASK)."""
    for statement in compile_statements(text, label):
        try:
            exec(statement, namespace)
        except (Exception, SystemExit) as error:
            raise _raised("TASK", label, text, f"<{label}>", error) from error
        after_each()


def reads_draw(code: CodeType, namespace: Mapping[str, Any]) -> bool:
    """Whether code may see what differs between two draws: `input_data`, itself or through code of `global`.

    Numbers, tensors and everything of torch's own are the same in each draw, as long as `global` draws no numbers.
    """
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    used = [namespace[name] for name in code.co_names if name in namespace]
    return (
        not _DOORS.isdisjoint(code.co_names)
        or any(not _is_fixed(value) for value in used)
        or any(reads_draw(part, namespace) for part in inner)
    )


def _is_fixed(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.split(".")[0] in ("torch", "math")
    origin = getattr(value if callable(value) else type(value), "__module__", None) or ""
    return isinstance(value, (bool, int, float, str, Dim)) or origin.split(".")[0] == "torch"


def fresh_namespace(names: Mapping[str, Any]) -> MutableMapping[str, Any]:
    """A namespace for author's code with these names and Python's built-ins."""
    return {"__builtins__": BUILTINS, **names}


def _parse(kind: str, text: str, label: str) -> ast.Module:
    try:
        return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{label}, line {line}" if line else label
        reason = getattr(error, "msg", None) or str(error)
        raise fault(kind, where, reason, "Python statements", text=_line(text, line)) from None


def _raised(kind: str, label: str, text: str, filename: str, error: BaseException) -> TaskFault:
    """The finding for an exception; the innermost frame that lies in the author's text says where."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    where = f"{label}, line {lines[-1]}" if lines else label
    message = str(error).strip().split("\n", 1)[0]
    given = f"{type(error).__name__}: {message}" if message else type(error).__name__
    shown = _line(text, lines[-1] if lines else None)
    return fault(kind, where, given, "code that runs without an exception", text=shown)


def _line(text: str, number: int | None) -> str:
    rows = text.splitlines()
    return rows[number - 1].strip() if number is not None and 0 < number <= len(rows) else ""
