"""Targets by name: built in, installed, or anywhere on the import path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from typing import Any

from opsmith.errors import OpsmithError, TargetError, UsageError
from opsmith.targets.faults import error_of, note_target, place_of_class
from opsmith.targets.origins import find_by
from opsmith.targets.places import advise_on
from opsmith.targets.protocols import Target

LANGUAGES = {  # built in: a language is a folder of `targets`, a line here, and an extra if it needs one
    "step": "opsmith.targets.step:STEP",
    "c": "opsmith.targets.c:C",
    "cuda": "opsmith.targets.cuda:CUDA",
    "wgsl": "opsmith.targets.wgsl.target:WGSL",
    "metal": "opsmith.targets.metal:METAL",
    "tvm": "opsmith.targets.tvm:TVM",
    "triton": "opsmith.targets.triton:TRITON",
}
_PROBLEM_FILES = {"problem": "opsmith.targets.problem:PROBLEM"}  # a target that no program can be written for
_FILE_READER = "opsmith.targets.command:load_language"  # of languages that a TOML file describes


def _import_place(place: str) -> Any:
    """What lies at `module:attribute` of ours: imported when it is asked for."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


TARGETS: dict[str, Callable[[], Target]] = {
    name: partial(_import_place, place) for name, place in {**LANGUAGES, **_PROBLEM_FILES}.items()
}
BUILT_IN = frozenset(TARGETS)
WHY_NOT_STATED = "a language file names programs that are executed, so that no other file may choose it"
_NEEDED = tuple(name for name in (*Target.__annotations__, *vars(Target)) if not name.startswith("_"))


def get_target(name: str, near: str = "") -> Target:
    """The target of that name: built in, installed, `module:attribute`, or the path of a language's TOML file.

    Raises UsageError when there is none (`near`: a file beside which its project may lie, which is then named), and
    TargetError when its own code fails or it lacks what every target has.
    """
    if name in TARGETS:
        return _get_registered(name)
    if name in _INSTALLED:
        return _INSTALLED[name]
    if is_language_file(name):
        return _INSTALLED.setdefault(name, _import_place(_FILE_READER)(name))
    if ":" in name:
        module, _, attribute = name.partition(":")
        return _import_target(name, module, attribute, near)
    outside = _entry_points()
    if name in outside:
        return _INSTALLED.setdefault(name, _import_target(name, outside[name].module, outside[name].attr or None, near))
    names = ", ".join(sorted({*LANGUAGES, *outside}))
    raise UsageError(f"target {name!r}: no such target; known: {names}, and a language's TOML file")


_INSTALLED: dict[str, Target] = {}  # by entry point or file: a look at all installed packages takes milliseconds


def is_language_file(name: str) -> bool:
    """Whether a target's name is the path of a TOML file: what `targets/command` reads."""
    return name.endswith(".toml")


def is_own(name: str) -> bool:
    """Whether the target of that name is somebody's own, so that what it does wrong is not ours."""
    return name not in BUILT_IN


def is_known_elsewhere(target: Target) -> bool:
    """Whether another process finds this target by its name; one that was only registered in this process is not."""
    is_outside = ":" in target.name or is_language_file(target.name)
    is_named = is_outside or target.name in BUILT_IN or target.name in _entry_points()
    return is_named and get_target(target.name) is target


def _entry_points() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group="opsmith.targets")}


def _get_registered(name: str) -> Target:
    target = TARGETS[name]()
    if is_own(name):
        note_target(name, type(target).__module__, target)
    return target


def _import_target(name: str, module: str, attribute: str | None, near: str) -> Target:
    """The target that is `attribute` of a module anywhere on the import path; None: the module itself."""
    if module.partition(".")[0] in sys.stdlib_module_names:  # the name may come from somebody's task file or store
        raise UsageError(f"target {name!r}: given a module of Python's own; expected one that holds a target")
    try:
        target: Any = import_module(module)
    except (Exception, SystemExit) as error:
        note_target(name, module)
        raise _describe_failed_import(name, module, near, error) from error
    try:
        for step in () if attribute is None else attribute.split("."):
            target = getattr(target, step)
    except AttributeError as error:
        raise UsageError(f"target {name!r}: {error}; expected an importable module:attribute") from error
    note_target(name, module, target)
    _refuse_incomplete(name, target)
    fitting: Target = target
    return fitting


def _refuse_incomplete(name: str, target: Any) -> None:
    """Raises TargetError for an object that lacks what every target has."""
    missing = [attribute for attribute in _NEEDED if not hasattr(target, attribute)]
    if missing:
        place = place_of_class(name)
        raise TargetError(
            f"target {name}: given an object without {', '.join(missing)}{place and ' at '}{place}; expected what "
            "opsmith.targets.Target promises; try: the methods of opsmith/targets/protocols.py"
        )


def _describe_failed_import(name: str, module: str, near: str, error: BaseException) -> OpsmithError:
    """That there is no such module, with what to try; or what its own code does wrong."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and f"{module}.".startswith(f"{missing}."):
        problem = f"target {name!r}: {error} on the import path; expected an importable module:attribute"
        return UsageError(f"{problem}; {advise_on(module, near)}")
    if not module or module.startswith("."):
        return UsageError(f"target {name!r}: {error}; expected an importable module:attribute")
    return error_of(name, error)


find_by(get_target)
