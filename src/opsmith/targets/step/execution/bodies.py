"""Bodies: the Python texts of a task's fns, compiled once and bound to the namespace of a draw.

What is wrong with one is its author's fault: a TaskFault with an FN finding.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from opsmith.problems.authored import blame_author, find_line, parse_code
from opsmith.problems.dims import Dim
from opsmith.problems.faults import TaskFault, make_fault

_DOORS = frozenset(("input_data", "globals", "vars", "eval", "exec", "__builtins__", "__globals__", "__import__"))


@dataclass(frozen=True)
class Body:
    """The compiled body of a fn: `bind` makes it callable as `f(state, input)` in a namespace."""

    label: str
    text: str = field(repr=False)
    tree: ast.FunctionDef = field(repr=False, compare=False)
    code: CodeType = field(repr=False, compare=False)

    def bind_names(self, namespace: dict[str, Any]) -> Callable[[Any, Any], Any]:
        return FunctionType(self.code, namespace, self.label)

    def blame_author(self, error: BaseException) -> TaskFault:
        """The FN finding for an exception that the body raised, with the line where it happened."""
        return blame_author("FN", f"{self.label}, its body", self.text, f"<{self.label}>", error)


@lru_cache(maxsize=1024)
def compile_body(text: str, label: str) -> Body:
    """A fn's body as code of `state` and `input`. Raises TaskFault (FN) for what is no function body."""
    parsed = parse_code("FN", text, f"{label}, its body")
    _check_statements(parsed, text, label)
    module = ast.parse("def body(state, input): pass")
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = parsed.body
    compiled = compile(module, f"<{label}>", "exec")
    code = next(const for const in compiled.co_consts if isinstance(const, CodeType) and const.co_name == "body")
    return Body(label, text, function, code)


def _check_statements(parsed: ast.Module, text: str, label: str) -> None:
    for node in ast.walk(parsed):
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom, ast.Await)):
            line = find_line(text, node.lineno)
            raise make_fault("FN", f"{label}, its body", f"`{line}`", "no global names, yield or await", text=line)
    if not any(isinstance(node, ast.Return) for node in ast.walk(parsed)):
        raise make_fault("FN", f"{label}, its body", "no return", "`return [value, ...]`, one value per field")


def reads_draw(code: CodeType, namespace: Mapping[str, Any]) -> bool:
    """Whether code may see what differs between two draws: `input_data`, itself or through code of `global`.

    Numbers, tensors and everything of torch's own are the same in each draw, as long as `global` draws no numbers.
    """
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    used = [namespace[name] for name in code.co_names if name in namespace]
    return (
        not _DOORS.isdisjoint(code.co_names)
        or any(not _is_fixed(value) for value in used)
        or any(reads_draw(const, namespace) for const in inner)
    )


def _is_fixed(value: Any) -> bool:
    if isinstance(value, ModuleType):
        return value.__name__.split(".")[0] in ("torch", "math")
    origin = getattr(value if callable(value) else type(value), "__module__", None) or ""
    return isinstance(value, (bool, int, float, str, Dim)) or origin.split(".")[0] == "torch"
