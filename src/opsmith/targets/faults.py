"""Failures of targets that are not built in: their authors are told the file and line of their own code.

What such a target raises, or what comes of a value that it should not have returned, is its author's to mend, neither a
task's author's nor ours. A frame is the target's when its module lies in the package that the target comes from.
"""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from opsmith.errors import OpsmithError, TargetError
from opsmith.records import Diagnostic
from opsmith.targets.trial import TaskFault

T = TypeVar("T")

_TARGETS: dict[str, Any] = {}  # those that were asked for, by name; None: it could not be imported
_PACKAGES: dict[str, set[str]] = {}  # by the same names: the top-level packages of their code


def note_target(name: str, module: str, target: Any = None) -> None:
    """Remember that the code in `module` is that of the target `name`, which is not built in."""
    _TARGETS[name] = target
    modules = {module, getattr(target, "__module__", None) or module}
    _PACKAGES.setdefault(name, set()).update(module_name.partition(".")[0] for module_name in modules)


@contextlib.contextmanager
def charged_to_target(name: str, method: str) -> Iterator[None]:
    """Around a call of a target's method. Raises TargetError for what one that is not built in raises there."""
    try:
        yield
    except (OpsmithError, TaskFault):
        raise
    except Exception as error:
        if name not in _TARGETS:
            raise
        raise error_of(name, error, method) from error


def of_kind(value: T, *kinds: type) -> T:
    """What a target returned, if it is what its protocol says. Raises TypeError."""
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"given {type(value).__name__}; expected {expected}")
    return value


def error_of(name: str, error: BaseException, method: str = "") -> TargetError:
    finding = fault_of(name, error, method)
    return TargetError(f"{finding.where}: {finding.given}; expected {finding.expected}; try: {finding.remedy}")


def fault_of(name: str, error: BaseException, method: str = "") -> Diagnostic:
    """A target's failure as a finding: the error, and the line of the target's code where it came from.

    `method`: what was called, whose first line is named where no line of the target was running.
    """
    if isinstance(error, OpsmithError):  # it could not be found or imported, and the message says so
        description, remedy = str(error), "make the target importable; the candidate is not counted as wrong"
        return Diagnostic("TARGET", f"target {name}", description, "a target that can be imported", remedy)
    method = "" if _is_lacking(name, error) else method
    place = _misspelt_at(error) or _raised_at(name, error) or _defined_at(name, method)
    return Diagnostic(
        kind="TARGET",
        where=f"target {name}",
        given=words_of(error) + (f" at {place}" if place else ""),
        expected="what opsmith.targets.Target promises",
        remedy="mend the target there; no candidate is counted as wrong",
    )


def find_fault(error: BaseException) -> TargetError | None:
    """The target's failure that an error is, if it came through a target's code or asks for what a target lacks."""
    names = (name for name in _TARGETS if _is_lacking(name, error) or _raised_at(name, error))
    return next((error_of(name, error) for name in names), None)


def _is_lacking(name: str, error: BaseException) -> bool:
    """Whether something was asked of the target that it does not have."""
    target = _TARGETS.get(name)
    return isinstance(error, AttributeError) and target is not None and error.obj is target


def words_of(error: BaseException) -> str:
    """An error's class and text, whatever its `__str__` does."""
    return "".join(traceback.TracebackException.from_exception(error).format_exception_only()).strip()[:1000]


def _misspelt_at(error: BaseException) -> str:
    """Where a file of code that was imported is no Python."""
    if isinstance(error, SyntaxError) and error.filename is not None and not error.filename.startswith("<"):
        return f"{Path(error.filename).name}:{error.lineno}"
    return ""


def _raised_at(name: str, error: BaseException) -> str:
    """`my_ops/lanes.py:12, in run`: the innermost line of the target's own code; "": it had no part."""
    own = [
        (str(frame.f_globals["__name__"]), frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _PACKAGES.get(name, ())
    ]
    if not own:
        return ""
    module, code, line = own[-1]
    return f"{_name_file(module, code.co_filename)}:{line}, in {code.co_name}"


def _defined_at(name: str, method: str) -> str:
    """The first line of the target's method, or else of its class; "" where neither can be told."""
    target = _TARGETS.get(name)
    function = getattr(getattr(target, method, None), "__func__", None)
    if isinstance(function, FunctionType):
        code = function.__code__
        return f"{_name_file(function.__module__, code.co_filename)}:{code.co_firstlineno}, in {method}"
    return place_of_class(name)


def place_of_class(name: str) -> str:
    """`my_ops/lanes.py:12, in class Lanes`: where the target's class begins; "" where that cannot be told."""
    target = _TARGETS.get(name)
    with contextlib.suppress(OSError, TypeError):
        kind = target if isinstance(target, type) else type(target)
        file, line = _name_file(kind.__module__, inspect.getfile(kind)), inspect.getsourcelines(kind)[1]
        return f"{file}:{line}, in class {kind.__name__}"
    return ""


def _name_file(module: str, path: str) -> str:
    """A module's file, from its top-level package on: the same text on every machine."""
    file, folders = Path(path).name, module.split(".")
    return "/".join([*(folders if file == "__init__.py" else folders[:-1]), file])
