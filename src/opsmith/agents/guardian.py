"""The guardian: repairs a candidate that may break the language's resource rule (STeP: one use per stream).

`repair_statically` is the target's own rewrite; `request_guarding` and `read_guarded` are the two halves of the second
model call. Pure functions: the caller sends the messages. What a guardian returns is a new candidate whose parent is
the one it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from opsmith.agents.prompt import format_yaml_block
from opsmith.agents.reply import read_reply
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import Candidate, Diagnostic, Task
from opsmith.targets import Target
from opsmith.targets.capabilities import repair_program
from opsmith.targets.faults import charged_to_target
from opsmith.targets.protocols import GUARDIAN

ANSWER_KEYS = ("output_impl", "impl")


class Effect(StrEnum):
    """What a guardian did to a candidate, by the verdicts before and after."""

    REPAIRED = "repaired"  # refused before, passes now
    CORRUPTED = "corrupted"  # passed before, refused now
    LEFT_ALONE = "left alone"  # the same program
    CHANGED = "changed"  # another program, neither repaired nor corrupted


@dataclass(frozen=True)
class Guarded:
    """A guardian's result. `candidate` is the one given, or a new one whose parent it is."""

    candidate: Candidate
    dropped: tuple[str, ...] = ()  # other keys of a model's answer
    errors: tuple[Diagnostic, ...] = ()  # why a model's answer could not be read; the candidate was left alone then


def repair_statically(target: Target, task: Task, candidate: Candidate) -> Guarded:
    """The target's deterministic repair."""
    with charged_to_target(task.target, "repair_program"):
        repaired = repair_program(target, task, candidate.source)
    return Guarded(candidate if repaired is None else _replace_source(candidate, repaired))


def request_guarding(target: Target, candidate: Candidate) -> tuple[Message, ...]:
    """The messages of the guardian's model call: its base prompt, then the program as YAML `input_impl: |`."""
    base = target.base_prompt(GUARDIAN)
    if base is None:
        raise UsageError(f"guardian: target {target.name!r} has no guardian prompt; try --agents single")
    return Message("system", base), Message("user", f"input_impl: {format_yaml_block(candidate.source)}\n")


def read_guarded(target: Target, task: Task, candidate: Candidate, text: str) -> Guarded:
    """The guardian's answer to `request_guarding`; an answer without a program leaves the candidate alone."""
    answer = read_reply(target, task, text, ANSWER_KEYS)
    if answer.source is None:
        return Guarded(candidate, answer.dropped, answer.errors)
    return Guarded(_replace_source(candidate, answer.source), answer.dropped)


def _replace_source(candidate: Candidate, source: str) -> Candidate:
    same = source.strip() == candidate.source.strip()
    return candidate if same else Candidate(source, parent=candidate.id)
