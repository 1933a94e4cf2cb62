"""What a target language gives the rest of the system. Nothing outside a target's own folder knows its language.

A target is one object that fits `Target`, named in `TARGETS` or by the packaging entry point `opsmith.targets`.
`check` is cheap and needs no tensors; `trials` and `run` execute code of the task's author and are called in worker
processes only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from opsmith.errors import UsageError
from opsmith.records import Task
from opsmith.targets.trial import Checked, TaskFault, Trial, TrialResult

__all__ = [
    "BUILT_IN",
    "TARGETS",
    "Checked",
    "Executed",
    "Policy",
    "Preloads",
    "Sampler",
    "Target",
    "TaskFault",
    "Trial",
    "TrialResult",
    "get_target",
    "is_known_elsewhere",
]


class Policy(Protocol):
    """A program sampler that was fitted on the programs of one prompt."""

    def sample(self, task: Task, temperature: float, rng: random.Random) -> str:
        """The text of one program for `task`; depends on nothing but the arguments and the examples fitted on."""
        ...


class Sampler(Protocol):
    """The optional program sampler of a language, which the embedded chat model is built on."""

    def fit(self, examples: Sequence[tuple[Task, str]]) -> Policy:
        """A policy fitted on (task, program) pairs; deterministic."""
        ...


class Target(Protocol):
    """A language that candidates are written in."""

    name: str
    verifier: str  # version of what a verdict means; stored with each

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        """A task file's text as a Task. Raises TaskError with line and column."""
        ...

    def proposer_prompt(self) -> str:
        """The static base prompt (YAML): what the language is, its operations and usage patterns, with examples."""
        ...

    def guardian_prompt(self) -> str | None:
        """The static base prompt (YAML) of the agent that repairs affine errors; None: this language has none."""
        ...

    def read_program(self, task: Task, text: str) -> str | None:
        """The program in `text` if the text as a whole is one, unwrapped where needed; None: it is not a program."""
        ...

    def check(self, task: Task, source: str) -> Checked:
        """Parse, type and affine check."""
        ...

    def trials(self, task: Task) -> Sequence[Trial]:
        """All trials in the order they are run, cheapest first; cached. Raises TaskFault."""
        ...

    def run(self, programs: Sequence[Any], trial: Trial) -> Sequence[TrialResult | TaskFault]:
        """Execute checked programs of one task on one trial and compare: what each showed, in order.

        A fault that only some of them bring to light is given in their place; raises TaskFault for one of the trial.
        """
        ...

    def reference(self, trial: Trial) -> object:
        """Compute what a trial expects once more, and nothing else: what the time of a verdict is measured against."""
        ...

    def canonical(self, source: str) -> str:
        """A text that is equal for isomorphic programs: locals renamed, comments and layout dropped."""
        ...

    def repair(self, task: Task, source: str) -> str | None:
        """A rewrite that repairs resource errors only (STeP: inserts Copy), or None when there is nothing to repair."""
        ...

    def script(self, task: Task, source: str) -> str:
        """A self-contained test script for the task with this program."""
        ...

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        """Figures of the language's cost model, by name."""
        ...

    def sampler(self) -> Sampler | None:
        """The language's program sampler, if it has one."""
        ...


def _step() -> Target:
    target: Target = import_module("opsmith.targets.step").STEP
    return target


TARGETS: dict[str, Callable[[], Target]] = {"step": _step}
BUILT_IN = frozenset(TARGETS)


def get_target(name: str) -> Target:
    """The target of that name: built in, installed, or `module:attribute`. Raises UsageError that lists the names."""
    if name in TARGETS:
        return TARGETS[name]()
    if ":" in name:
        return _by_path(name)
    outside = {point.name: point for point in metadata.entry_points(group="opsmith.targets")}
    if name in outside:
        found: Target = outside[name].load()
        return found
    known = ", ".join(sorted({*TARGETS, *outside}))
    raise UsageError(f"target {name!r}: no such target; known: {known}")


def _by_path(name: str) -> Target:
    """The target that a `module:attribute` names, anywhere on the import path."""
    module, _, attribute = name.partition(":")
    if module.partition(".")[0] in sys.stdlib_module_names:  # the name may come from somebody's task file or store
        raise UsageError(f"target {name!r}: given a module of Python's own; expected one that holds a target")
    try:
        found: Target = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"target {name!r}: {error}; expected an importable module:attribute") from error
    return found


def is_known_elsewhere(target: Target) -> bool:
    """Whether another process finds this target by its name; one that was only registered in this process is not."""
    outside = {point.name for point in metadata.entry_points(group="opsmith.targets")}
    named = target.name in BUILT_IN or target.name in outside or ":" in target.name
    return named and get_target(target.name) is target


@runtime_checkable
class Preloads(Protocol):
    """What a built-in target adds that has something to import before workers are forked, once for all of them."""

    def preload(self) -> None: ...


@runtime_checkable
class Executed(Protocol):
    """What a target adds whose candidates are executed instead of interpreted: they get a process of their own.

    `execute` runs there, confined, and sees the source and one trial's inputs; neither the task nor an expected value
    enters that process. What comes out is bytes, which are compared elsewhere: a forged answer is only another answer.
    `Target.run` is not called.
    """

    def runtime(self) -> Sequence[Path]:
        """Files and folders that a candidate may read: its language's runtime. Never a folder of tasks."""
        ...

    def inputs(self, trial: Trial) -> bytes:
        """What a candidate is given for a trial: its inputs, without anything that tells the outputs."""
        ...

    def execute(self, source: str, inputs: bytes) -> bytes:
        """In the candidate's process: the source's outputs. An exception is a failure of the candidate at RUN."""
        ...

    def compare(self, trial: Trial, outputs: bytes) -> TrialResult:
        """Whether these are the trial's outputs; bytes that are none are refused at RUN. Raises TaskFault."""
        ...
