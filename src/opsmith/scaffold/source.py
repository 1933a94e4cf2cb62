"""A function as a text that stands alone: itself, the functions it calls, the imports and constants it reads.

The text is the author's own, without decorators and without the annotations of parameters, which may name anything.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from opsmith.errors import UsageError
from opsmith.scaffold.functions import LIBRARIES

LONGEST_CONSTANT = 200  # characters; a longer one is data


def write_standalone(function: FunctionType) -> str:
    """Imports, constants and helpers, then the function. Raises UsageError for what no text can carry."""
    carried = _Carried()
    carried.carry_function(function)
    head = [*carried.imports, *carried.constants]
    return "\n".join([*head, *([""] if head else []), *carried.functions])


class _Carried:
    """What was met on the way, by the name it has in the text."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.constants: list[str] = []
        self.functions: list[str] = []
        self._known: dict[str, Any] = {}

    def carry_function(self, function: FunctionType) -> None:
        """Its text, after all that it reads."""
        self._known[function.__name__] = function
        text, defaults = _strip_function(function)
        for name in dict.fromkeys([*_globals_read(function.__code__), *defaults]):
            if name in function.__globals__:
                self._carry_name(name, function.__globals__[name], _name_place(function))
            elif not hasattr(builtins, name):
                given = f"{_name_place(function)}: it reads {name}, which its module does not have"
                raise UsageError(f"{given}; try: define it at the top of the module, or make it an argument")
        self.functions.append(text + "\n")

    def _carry_name(self, name: str, value: Any, reader: str) -> None:
        if name in self._known:
            if self._known[name] is not value:
                raise UsageError(f"{reader}: two different things are named {name}; try: rename one of them")
            return
        self._known[name] = value
        library = (getattr(value, "__module__", None) or "").partition(".")[0]
        if isinstance(value, ModuleType):
            self.imports += _module_import(name, value, reader)
        elif isinstance(value, FunctionType) and library not in LIBRARIES:
            self._carry_helper(name, value)
        elif callable(value) and library in LIBRARIES and hasattr(value, "__name__"):
            self.imports.append(_import_from(name, value))
        else:
            self.constants.append(f"{name} = {_write_constant(name, value, reader)}")

    def _carry_helper(self, name: str, value: FunctionType) -> None:
        if value.__closure__ or value.__name__ == "<lambda>":
            raise UsageError(f"{name}: a lambda or closure; expected a function made by def at the top of a module")
        if value.__name__ != name and value.__name__ in self._known:
            raise UsageError(f"{name}: two different things are named {value.__name__}; try: rename one of them")
        self.carry_function(value)
        if value.__name__ != name:
            self.functions.append(f"{name} = {value.__name__}")


def _name_place(function: FunctionType) -> str:
    code = function.__code__
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: {function.__name__}"


def _globals_read(code: CodeType) -> Iterator[str]:
    """Names that a code object, or one inside it, reads from its module."""
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_read(constant)


def _strip_function(function: FunctionType) -> tuple[str, list[str]]:
    """A function's text without decorators and annotations, and the names that its defaults read."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise UsageError(f"{function.__name__}: its text cannot be found; expected a function in a file") from error
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    data = text.encode()
    starts = [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]
    for begin, end in sorted(_find_annotations(node, data, starts), reverse=True):
        data = data[:begin] + data[end:]
    rows = data.decode().splitlines()[node.lineno - 1 :]
    defaults = [default for default in [*node.args.defaults, *node.args.kw_defaults] if default is not None]
    names = [leaf.id for default in defaults for leaf in ast.walk(default) if isinstance(leaf, ast.Name)]
    return "\n".join(row.rstrip() for row in rows), names


def _find_annotations(node: ast.FunctionDef, data: bytes, starts: list[int]) -> Iterator[tuple[int, int]]:
    """From where to where, in bytes, the annotations of parameters and result stand."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for argument in every:
        if argument is not None and argument.annotation is not None:
            begin = starts[argument.lineno - 1] + argument.col_offset + len(argument.arg.encode())
            yield begin, _end_of(argument.annotation, starts)
    if node.returns is not None:
        begin = data.rindex(b"->", 0, starts[node.returns.lineno - 1] + node.returns.col_offset)
        yield len(data[:begin].rstrip()), _end_of(node.returns, starts)


def _end_of(node: ast.expr, starts: list[int]) -> int:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.end_lineno - 1] + node.end_col_offset


def _module_import(name: str, module: ModuleType, reader: str) -> list[str]:
    path = module.__name__
    if path.partition(".")[0] not in LIBRARIES:
        expected = "torch, numpy and Python's own library, or functions imported by their names"
        remedy = f"from {path} import ..., whose text is then carried along"
        raise UsageError(f"{reader}: it reads the module {path}; expected {expected}; try: {remedy}")
    if path == name:
        return [] if path == "torch" else [f"import {path}"]
    return [f"import {path} as {name}"]


def _import_from(name: str, value: Any) -> str:
    module, own = value.__module__, value.__name__
    if getattr(sys.modules.get(module), own, None) is not value:  # such as builtins that torch shows elsewhere
        module = next(
            key for key in ("torch", "torch.nn.functional", module) if getattr(sys.modules[key], own, 0) is value
        )
    return f"from {module} import {own}" + (f" as {name}" if name != own else "")


def _write_constant(name: str, value: Any, reader: str) -> str:
    """A constant as Python writes it: numbers, texts, dtypes, short lists of them."""
    text = repr(value)
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return text
    try:
        if len(text) <= LONGEST_CONSTANT and ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError):
        pass
    if isinstance(value, float):  # inf and nan
        return f"float({text!r})"
    description = f"{name}, a {type(value).__name__}"
    raise UsageError(
        f"{reader}: it reads {description}; expected functions, numbers and texts; try: make it an argument"
    )
