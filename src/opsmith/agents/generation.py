"""The generator of an optimisation round: a right program and a suggestion -> a better program.

`request_program` writes the messages; the answer is read like any proposer's (`reply.read_reply`), and a wrong program
goes back like any other (`repair`). `read_generation_prompt` is the inverse from the texts alone, for generators that
are programs. Pure functions: the caller sends the messages.

Two messages. `system` is the language's own text for this job, the same for every task of a run. `user` is one YAML
mapping: `instructions`, `rules`, `sources`, `task`, `reference`, `memory`, `objective`, `program`, `suggestion`,
`answer`; what there is nothing of is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opsmith.agents.prompt import ReferenceProgram, dump_task, indent_lines, list_mappings
from opsmith.agents.suggestion import read_fields, suggestion_rows
from opsmith.agents.yaml_text import (
    Rows,
    nest_list,
    nest_mapping,
    write_block,
    write_mapping,
    write_number,
    write_scalar,
    write_text,
)
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import Suggestion, Task
from opsmith.targets import Target
from opsmith.targets.protocols import Improvable

ANSWER = "one program"  # what the prompt asks for: by this it is told from an analyst's


@dataclass(frozen=True)
class MemoryPair:
    """A change that made a program of another task faster: its program before and after."""

    task_id: str  # "" where it was read from a prompt, which does not say it
    title: str  # the change in a few words
    description: str
    before: str
    after: str
    ratio: float  # figure before by figure after: above 1


@dataclass(frozen=True)
class AttachedSource:
    """A text that the user attaches to every prompt: a header, a paper's listing, a library's source."""

    name: str
    text: str


@dataclass(frozen=True)
class GeneratorBrief:
    """What a generator is told."""

    task: Task
    objective: str
    source: str  # the program to begin with
    suggestion: Suggestion | None = None  # None: the generator chooses
    memory: tuple[MemoryPair, ...] = ()
    reference: ReferenceProgram | None = None
    instructions: str = ""  # the user's own
    sources: tuple[AttachedSource, ...] = ()
    has_example: bool = True
    rules: str = ""  # what a program's text may not hold, in words


@dataclass(frozen=True)
class GenerationPrompt:
    """What a generator's prompt says, as its texts say it."""

    task: str  # the text of the task as it is shown
    objective: str
    source: str
    suggestion: Suggestion | None = None
    memory: tuple[MemoryPair, ...] = ()
    reference: ReferenceProgram | None = None
    instructions: str = ""
    sources: tuple[AttachedSource, ...] = ()
    rules: str = ""


def request_program(target: Target, brief: GeneratorBrief) -> tuple[Message, ...]:
    """The messages of one call of the generator. Raises UsageError for a language that has no such prompt."""
    if not isinstance(target, Improvable):
        raise UsageError(f"optimise: target {target.name!r} has no prompt for making right programs better")
    return Message("system", target.improvement_prompt(brief.has_example)), Message("user", _write_user(brief))


def _write_user(brief: GeneratorBrief) -> str:
    head = {
        "instructions": write_block(brief.instructions) if brief.instructions.strip() else "",
        "rules": write_block(brief.rules) if brief.rules.strip() else "",
    }
    sources = [{"name": write_scalar(source.name), "text": write_block(source.text)} for source in brief.sources]
    tail = {"objective": write_scalar(brief.objective), "program": write_block(brief.source)}
    return (
        write_mapping(head)
        + nest_list("sources", sources)
        + f"task:\n{indent_lines(brief.task.prompt_text)}"
        + _write_reference(brief.reference)
        + nest_list("memory", map(_write_pair, brief.memory))
        + write_mapping(tail)
        + nest_mapping("suggestion", suggestion_rows(brief.suggestion) if brief.suggestion else {})
        + write_mapping({"answer": write_scalar(ANSWER)})
    )


def _write_reference(reference: ReferenceProgram | None) -> str:
    if reference is None:
        return ""
    rows = {"language": write_scalar(reference.target), "program": write_block(reference.source)}
    return nest_mapping("reference", rows)


def _write_pair(pair: MemoryPair) -> Rows:
    return {
        "title": write_text(pair.title),
        "description": write_text(pair.description),
        "before": write_block(pair.before),
        "after": write_block(pair.after),
        "ratio": write_number(pair.ratio),
    }


def read_generation_prompt(messages: Sequence[Message]) -> GenerationPrompt | None:
    """What the messages ask a generator for; None: they are no generator's."""
    return next(map(_read_mapping, list_mappings(messages, ANSWER)), None)


def _read_mapping(mapping: Mapping[Any, Any]) -> GenerationPrompt:
    reference = mapping.get("reference")
    return GenerationPrompt(
        dump_task(mapping["task"]),
        str(mapping["objective"]),
        str(mapping["program"]),
        read_fields(mapping["suggestion"]) if "suggestion" in mapping else None,
        tuple(_read_pair(entry) for entry in mapping.get("memory") or ()),
        ReferenceProgram(str(reference["language"]), str(reference["program"])) if reference else None,
        str(mapping.get("instructions", "")),
        tuple(AttachedSource(str(entry["name"]), str(entry["text"])) for entry in mapping.get("sources") or ()),
        str(mapping.get("rules", "")),
    )


def _read_pair(entry: Mapping[str, Any]) -> MemoryPair:
    title, description, before, after = (str(entry[key]) for key in ("title", "description", "before", "after"))
    return MemoryPair("", title, description, before, after, float(entry["ratio"]))
