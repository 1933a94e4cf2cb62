"""What the package asks of a target that may lack it: the target's answer, a default, or a sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opsmith.errors import OpsmithError, UsageError
from opsmith.records import Task
from opsmith.targets.audit import IMPL
from opsmith.targets.lookup import get_target
from opsmith.targets.protocols import (
    PROPOSER,
    Canonical,
    Commented,
    Costed,
    Exemplified,
    Explained,
    Framed,
    Referenced,
    Repaired,
    Sampled,
    Sampler,
    Scripted,
    Suffixed,
    Target,
    Tuned,
    Versioned,
)
from opsmith.targets.trial import Trial


def write_base_prompt(target: Target, *, has_example: bool = True) -> str:
    """The proposer's. Raises UsageError for a target that has none, so that no model can be asked, and for one whose
    prompt cannot be had without its example."""
    if not has_example:
        if not isinstance(target, Exemplified):
            raise UsageError(f"example: target {target.name!r} has no prompt without one; try: leave out --no-example")
        return target.prompt_without_example()
    text = target.base_prompt(PROPOSER)
    if text is None:
        raise UsageError(f"target {target.name!r} has no base prompt for a {PROPOSER}; expected its language described")
    return text


def canonical_form(target: Target, source: str) -> str:
    """A text that is equal for programs that differ in names and layout, or else in comments and blank lines only.

    Raises what the target raises for a text that is no program.
    """
    if isinstance(target, Canonical):
        return target.canonical_form(source)
    return "\n".join(line for line in blank_comments(target, source).split("\n") if line)


def blank_comments(target: Target, source: str) -> str:
    """A program's text without comments, line by line: by what the target calls one, or else what begins one."""
    if isinstance(target, Commented):
        return target.blank_comments(source)
    return "\n".join(line.partition(target.comment)[0].rstrip() for line in source.splitlines())


def is_frame(task: Task, source: str) -> bool:
    """Whether a program is still the frame that people begin with: they differ in comments and layout at most."""
    target = get_target(task.target)
    if not isinstance(target, Framed):
        return False
    own, frame = (blank_comments(target, text).split() for text in (source, target.write_frame(task)))
    return own == frame


def repair_program(target: Target, task: Task, source: str) -> str | None:
    """The program with its errors of one stage mended; None: there is nothing to mend, or the target mends nothing."""
    return target.repair_program(task, source) if isinstance(target, Repaired) else None


def find_repaired_stage(name: str) -> str | None:
    """Where the target of that name refuses what it can repair; None: it repairs nothing, or is not here."""
    try:
        target = get_target(name)
    except OpsmithError:
        return None
    return target.repaired_stage if isinstance(target, Repaired) else None


def explain_message(task: Task, message: str) -> str:
    """The message as the task's target explains it, or as it is where that target is not here or adds nothing."""
    try:
        target = get_target(task.target)
        return target.explain_message(task, message) if isinstance(target, Explained) else message
    except Exception:  # a target of others: a message without explanations is better than none
        return message


def run_reference(target: Target, trial: Trial) -> object:
    """What the trial expects, computed once more; None where the target has no reference to run."""
    return target.run_reference(trial) if isinstance(target, Referenced) else None


def name_verifier(target: Target) -> str:
    """The version of what a verdict means, here and now: verdicts of equal names are equal."""
    toolchain = f" ({target.describe_toolchain()})" if isinstance(target, Versioned) else ""
    return f"{target.verifier}{toolchain}"


FRAME = "still a frame: nothing in it is written yet"
WRITE_FRAME = "write the program in its place; its comments say what it is given and what it has to give"


def name_program_place(task: Task) -> str:
    """Where a task file's own program lies: under `impl`, or in a file beside it."""
    target = get_target(task.target)
    return f"`plain/{task.id}{target.suffix}`" if isinstance(target, Suffixed) else IMPL


def estimate_cost(target: Target, task: Task, source: str) -> Mapping[str, Any]:
    """The figures of the target's cost model. Raises UsageError where it has none."""
    if not isinstance(target, Costed):
        raise UsageError(f"target {target.name!r} has no cost model")
    return target.estimate_cost(task, source)


def write_script(target: Target, task: Task, source: str) -> str:
    """A test script for the task with this program. Raises UsageError where the target writes none."""
    if not isinstance(target, Scripted):
        raise UsageError(f"target {target.name!r} writes no scripts")
    return target.write_script(task, source)


def make_sampler(target: Target) -> Sampler:
    """The target's program sampler. Raises UsageError where it has none."""
    if not isinstance(target, Sampled):
        tuned = ", or opsmith optimise --model tuner for programs that are there" if isinstance(target, Tuned) else ""
        raise UsageError(
            f"no language model is named, and 'embedded', the default, writes no programs in {target.name}: "
            f"target {target.name!r} has no sampler; try: --model with a language model's name "
            f"(opsmith models lists them){tuned}"
        )
    return target.make_sampler()
