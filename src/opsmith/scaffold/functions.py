"""Which function or module does a name mean? `module:function` or `file.py:Class`; getting it runs that module.

Of what is written in Python outside of PyTorch the text is carried into the task file; one of PyTorch's own is called
by its name.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, ModuleType
from typing import Any

from torch.nn import Module

from opsmith.errors import UsageError

LIBRARIES = frozenset({"torch", "numpy", *sys.stdlib_module_names})  # what a task file's code may import


@dataclass(frozen=True)
class Function:
    """A function of the user's, and how a text calls it."""

    name: str
    call: Callable[..., Any]
    path: str  # how it is called where `torch` is imported; "": its text has to be carried
    parameters: Mapping[str, inspect.Parameter] | None  # None: PyTorch's own, which do not say
    made_with: Mapping[str, inspect.Parameter] | None = None  # of a torch.nn.Module: its constructor's

    @property
    def file(self) -> str:
        """The file that its text stands in; "" for one of PyTorch's own."""
        return "" if self.path else self.undecorated().__code__.co_filename

    def label(self, line: int | None = None) -> str:
        """Its name after file and line, those of its `def` unless another is given: `ops.py, line 3: row_softmax`."""
        if self.path:
            return self.name
        return f"{Path(self.file).name}, line {line or self.undecorated().__code__.co_firstlineno}: {self.name}"

    def undecorated(self) -> FunctionType:
        """The function itself, without what decorates it."""
        function = inspect.unwrap(self.call)
        assert isinstance(function, FunctionType)
        return function


def find_function(full_name: str, takes_modules: bool = False) -> Function:
    """The function, or the class of a torch.nn.Module, that a name means. Raises UsageError when there is none, or its
    text could not stand alone."""
    place, _, name = full_name.rpartition(":")
    if not place or not name:
        raise UsageError(f"{full_name}: expected module:function or file.py:function, such as my_ops.py:row_softmax")
    module = _import_module(place)
    function = _find_attribute(module, name, full_name)
    if takes_modules and isinstance(function, type) and issubclass(function, Module):
        return _describe_module(name, module, function)
    library = (getattr(function, "__module__", None) or module.__name__).partition(".")[0]
    if library == "torch" and callable(function) and not isinstance(function, type):
        return Function(name.rpartition(".")[2], function, f"{module.__name__}.{name}", _read_parameters(function))
    _refuse_others(function, full_name)
    return Function(function.__name__, function, "", _read_parameters(function))


def _describe_module(name: str, module: ModuleType, made: type[Module]) -> Function:
    """Its parameters are those of `forward`."""
    forward, made_with = (
        {key: own for key, own in inspect.signature(method).parameters.items() if key != "self"}
        for method in (made.forward, made.__init__)
    )
    is_torch = made.__module__.partition(".")[0] == "torch"
    return Function(made.__name__, made, f"{module.__name__}.{name}" if is_torch else "", forward, made_with)


def _import_module(place: str) -> ModuleType:
    """The module of a name or a file, imported as Python does: beside the file, or from the current folder."""
    path = Path(place)
    is_file = path.suffix == ".py"
    if is_file and not path.is_file():
        raise UsageError(f"{place}: does not exist; expected a Python file with the function")
    folder = str(path.resolve().parent if is_file else Path.cwd())
    sys.path.insert(0, folder)
    try:
        return _execute_file(path) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{place}: importing it raised {_describe_error(error)}; expected a module that can be imported"
        ) from error
    finally:
        sys.path.remove(folder)


def _execute_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses of the file look for their module there
    spec.loader.exec_module(module)
    return module


def _find_attribute(module: ModuleType, name: str, full_name: str) -> Any:
    owner: Any = module
    for attribute in name.split("."):
        if not hasattr(owner, attribute):
            own = [key for key, value in vars(module).items() if isinstance(value, FunctionType) and key[0] != "_"]
            there = ", ".join(own[:8]) or "none"
            raise UsageError(f"{full_name}: {module.__name__} has no {name}; its functions: {there}")
        owner = getattr(owner, attribute)
    return owner


def _refuse_others(function: Any, full_name: str) -> None:
    """A text can be carried only of a plain function: no class, no method, no lambda, no closure."""
    code = inspect.unwrap(function) if callable(function) else function
    problem = ""
    if isinstance(code, BuiltinFunctionType | BuiltinMethodType) or not isinstance(code, FunctionType):
        problem = f"a {type(code).__name__}"
    elif code.__name__ == "<lambda>":
        problem = "a lambda"
    elif code.__closure__:
        problem = f"a function that keeps {', '.join(code.__code__.co_freevars)} of the one that made it"
    elif inspect.iscoroutinefunction(code) or inspect.isgeneratorfunction(code):
        problem = "a generator or coroutine"
    if problem:
        remedy = "def f(x, weight): ... with every tensor as an argument"
        raise UsageError(f"{full_name}: given {problem}; expected a function of tensors, made by def; try: {remedy}")


def _read_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return None


def _describe_error(error: BaseException) -> str:
    message = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
