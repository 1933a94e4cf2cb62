"""The text of a task that a compiled language is asked for: which target states its problem, the options, the problem.

A text is at most two lines before the text of a problem: `origin: step`, where the rest is a task of that target and
no problem file, and `options: {threads: 2}`, those that differ from the default. Equal tasks have equal texts.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Protocol

from opsmith.errors import TaskError, UsageError
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import Problem
from opsmith.records import Task
from opsmith.targets.native.flags import DEFAULT_FLAGS, BuildFlags, Isa, check_flags, is_reordering
from opsmith.targets.native.layout import Pass, choose_full_passes
from opsmith.targets.origins import find_stating

MOST_THREADS = 64

_ORIGIN, _OPTIONS = "origin: ", "options: "


@dataclass(frozen=True)
class Disagreement:
    """What is said of a program whose passes differ: a finding's kind and words, for all but where and what."""

    kind: str
    expected: str
    remedy: str
    memory_remedy: str = ""  # where a value looks like memory that nobody wrote to: a finding of MEMORY; "": never


RACE = Disagreement(
    "RACE",
    "the same result whichever thread comes first",
    "look for what threads share: sums without a reduction clause, buffers, loop variables",
)
STATE = Disagreement(
    "STATE",
    "outputs that depend on inputs alone",
    "look for static variables that keep values from call to call, for what is read before it is written, and "
    "for reads before or behind an array",
    "look for values that are read before they are written, entries of outputs that are never written, "
    "and reads before or behind an array",
)


class TaskOptions(Protocol):
    """What a task says of how its programs are built and run: options of a compiled language."""

    @property
    def threads(self) -> int:
        """Of the processor, that a program has."""

    @property
    def has_order(self) -> bool:
        """Whether sums have one order, so that passes must agree to the last bit."""

    @property
    def disagreement(self) -> Disagreement: ...

    @property
    def full_passes(self) -> tuple[Pass, ...]:
        """Over a program that is to be kept."""

    def write_options(self) -> dict[str, str | int]:
        """Those that differ from the default, by name."""


OptionsReader = Callable[[Mapping[str, Any]], TaskOptions]


@dataclass(frozen=True)
class NativeOptions:
    """How the programs of a task are built and run."""

    flags: tuple[str, ...] = DEFAULT_FLAGS  # optimisation, warnings and macros; may hold -ffast-math
    threads: int = 1  # that a program may have, and has

    def __post_init__(self) -> None:
        """Raises UsageError."""
        check_flags(self.flags)
        if not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(f"option threads: given {self.threads}; expected a number from 1 to {MOST_THREADS}")

    @property
    def has_order(self) -> bool:
        return self.threads == 1 and not is_reordering(self.flags)

    @property
    def disagreement(self) -> Disagreement:
        return RACE if self.threads > 1 else STATE

    @property
    def full_passes(self) -> tuple[Pass, ...]:
        return choose_full_passes(self.threads)

    def choose_flags(self, isa: Isa) -> BuildFlags:
        """What programs are built with for an instruction set."""
        return BuildFlags(isa, self.flags, self.threads > 1)

    def write_options(self) -> dict[str, str | int]:
        """Those that differ from the default; `read_options` reads them back."""
        words: dict[str, str | int] = {"flags": shlex.join(self.flags), "threads": self.threads}
        return {name: word for name, word in words.items() if getattr(self, name) != getattr(NativeOptions(), name)}


def check_option_names(words: Mapping[str, Any], options: type[Any]) -> None:
    """Whether they are fields of a dataclass of options. Raises UsageError."""
    names = [member.name for member in fields(options)]
    for name in words:
        if name not in names:
            raise UsageError(f"option {name!r}: no such option; known: {', '.join(names) or 'none'}")


def read_options(words: Mapping[str, Any]) -> NativeOptions:
    """Options by name, as the command line or a TOML table gives them. Raises UsageError.

    >>> read_options({"threads": "2", "flags": "-O2 -ffast-math"})
    NativeOptions(flags=('-O2', '-ffast-math'), threads=2)
    """
    check_option_names(words, NativeOptions)
    defaults = NativeOptions()
    flags, threads = words.get("flags"), words.get("threads", defaults.threads)
    try:
        number = int(threads)
    except (TypeError, ValueError):
        raise UsageError(f"option threads: given {threads!r}; expected a number such as 2") from None
    return NativeOptions(defaults.flags if flags is None else _split_flags(flags), number)


def read_known_options(words: Mapping[str, Any]) -> NativeOptions:
    """Those that C has too: for who gives data and judges outputs, whatever the language."""
    names = [member.name for member in fields(NativeOptions)]
    return read_options({name: word for name, word in words.items() if name in names})


def _split_flags(flags: object) -> tuple[str, ...]:
    """Of one text, or of a list of texts."""
    if isinstance(flags, list | tuple):
        return tuple(map(str, flags))
    try:
        return tuple(shlex.split(str(flags)))
    except ValueError as error:
        raise UsageError(f"option flags: given {flags!r}: {error}; expected flags such as -O2") from None


def write_native_task(text: str, origin: str = "", options: TaskOptions | None = None) -> str:
    """The task's text. `text`: the problem in canonical YAML, or that of a task of the target `origin`."""
    words = (options or NativeOptions()).write_options()
    lines = [f"{_ORIGIN}{origin}\n"] if origin else []
    return "".join([*lines, *([f"{_OPTIONS}{json.dumps(words)}\n"] if words else []), text])


def read_native_task(text: str) -> tuple[Problem, NativeOptions]:
    """The inverse of `write_native_task`. Raises TaskError and UsageError."""
    return read_task_problem(text), _read_options_of(text)


@lru_cache(maxsize=512)
def _read_options_of(text: str) -> NativeOptions:
    return read_options(split_native_task(text)[1])


@lru_cache(maxsize=512)
def read_task_problem(text: str) -> Problem:
    """What a task's text asks for, in any compiled language. Raises TaskError."""
    origin, _, body = split_native_task(text)
    if not origin:
        return read_problem(body).problem
    target = find_stating(origin)
    if target is None:
        raise TaskError(f"origin: given {origin!r}; expected a target whose tasks state problems, such as step")
    return target.find_problem(Task("", origin, body)).without_interface()


def split_native_task(text: str) -> tuple[str, dict[str, Any], str]:
    """The target whose task the problem comes from ("": it is a problem file), the options that differ from the
    default by name, and that text."""
    origin: str = ""
    words: dict[str, Any] = {}
    if text.startswith(_ORIGIN):
        line, _, text = text.partition("\n")
        origin = line.removeprefix(_ORIGIN)
    if text.startswith(_OPTIONS):
        line, _, text = text.partition("\n")
        words = json.loads(line.removeprefix(_OPTIONS))
    return origin, words, text
