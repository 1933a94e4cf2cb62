"""A function or class as a text that stands alone: itself, what it calls, the imports and constants it reads.

The text is the author's own, without decorators of functions and without the annotations of parameters, which may name
anything.
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


def write_standalone(definition: FunctionType | type) -> str:
    """Imports, constants and helpers, then the function or class. Raises UsageError for what no text can carry."""
    carried = _Carried()
    carried.carry_definition(definition)
    head = [*carried.imports, *carried.constants]
    return "\n".join([*head, *([""] if head else []), *carried.functions])


class _Carried:
    """What was met on the way, by the name it has in the text."""

    def __init__(self) -> None:
        self.imports: list[str] = []
        self.constants: list[str] = []
        self.functions: list[str] = []
        self._known: dict[str, Any] = {}

    def carry_definition(self, definition: FunctionType | type) -> None:
        """Its text, after all that it reads."""
        self._known[definition.__name__] = definition
        text, defaults = _strip_definition(definition)
        codes, place = list(_list_codes(definition)), _name_place(definition)
        module = vars(sys.modules[definition.__module__]) if isinstance(definition, type) else definition.__globals__
        for name in dict.fromkeys([*(name for code in codes for name in _globals_read(code)), *defaults]):
            if name in module:
                self._carry_name(name, module[name], place)
            elif not hasattr(builtins, name):
                given = f"{place}: it reads {name}, which its module does not have"
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
        elif isinstance(value, FunctionType | type) and library not in LIBRARIES:
            self._carry_helper(name, value)
        elif callable(value) and library in LIBRARIES and hasattr(value, "__name__"):
            self.imports.append(_import_from(name, value))
        else:
            self.constants.append(f"{name} = {_write_constant(name, value, reader)}")

    def _carry_helper(self, name: str, value: FunctionType | type) -> None:
        if value.__name__ == "<lambda>" or (isinstance(value, FunctionType) and value.__closure__):
            raise UsageError(f"{name}: a lambda or closure; expected a function made by def at the top of a module")
        if value.__name__ != name and value.__name__ in self._known:
            raise UsageError(f"{name}: two different things are named {value.__name__}; try: rename one of them")
        self.carry_definition(value)
        if value.__name__ != name:
            self.functions.append(f"{name} = {value.__name__}")


def _name_place(definition: FunctionType | type) -> str:
    if isinstance(definition, type):
        return definition.__name__
    code = definition.__code__
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: {definition.__name__}"


def _list_codes(definition: FunctionType | type) -> Iterator[CodeType]:
    """The code of a function, or of every method of a class."""
    own = vars(definition).values() if isinstance(definition, type) else [definition]
    for value in own:
        functions = [getattr(value, name, None) for name in ("__func__", "fget", "fset")]
        yield from (one.__code__ for one in (value, *functions) if isinstance(one, FunctionType))


def _globals_read(code: CodeType) -> Iterator[str]:
    """Names that a code object, or one inside it, reads from its module."""
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_read(constant)


def _strip_definition(definition: FunctionType | type) -> tuple[str, list[str]]:
    """A text without decorators of the function and without annotations, and the names that are read when it is
    defined: by defaults, and in a class by all that is no function."""
    try:
        text = textwrap.dedent(inspect.getsource(definition))
    except (OSError, TypeError) as error:
        raise UsageError(f"{definition.__name__}: its text cannot be found; expected it in a file") from error
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    data = text.encode()
    starts = [0, *(index + 1 for index, byte in enumerate(data) if byte == ord("\n"))]
    functions = [inner for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)]
    spans = [span for function in functions for span in _find_annotations(function, data, starts)]
    for begin, end in sorted(spans, reverse=True):
        data = data[:begin] + data[end:]
    rows = data.decode().splitlines()[node.lineno - 1 if isinstance(node, ast.FunctionDef) else 0 :]
    return "\n".join(row.rstrip() for row in rows), list(_names_defined_with(node))


def _names_defined_with(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Names that are read while a function or class is defined, not when it is called."""
    if isinstance(node, ast.FunctionDef):
        read = [default for default in [*node.args.defaults, *node.args.kw_defaults] if default is not None]
    else:
        read = [*node.bases, *(keyword.value for keyword in node.keywords), *node.decorator_list]
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield from _names_defined_with(statement)
                read += statement.decorator_list
            else:
                read += [inner for inner in ast.walk(statement) if isinstance(inner, ast.expr)]
    yield from (leaf.id for inner in read for leaf in ast.walk(inner) if isinstance(leaf, ast.Name))


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
