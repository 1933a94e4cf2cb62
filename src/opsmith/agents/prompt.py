"""Prompts: task and demonstrations -> messages, and back again. Pure: no files, no clock, no chance.

Two messages. `system` is the target's base prompt, unchanged, so that a provider's prompt cache serves it for every
task. `user` is one YAML mapping: `examples:` (each a task's mapping with its `impl`; left out when there are none),
then `task:`, `reference:` where a program in another language is shown, and `manual:` where the language has one. Task
texts go in as they are, by indentation, never dumped anew. With the style "bare" both are written in the target's host
language instead (`bare`).
Not covered: what is asked of the guardian (`guardian`), and the sampling parameters (the caller's).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import yaml

from opsmith.agents.bare import BareForm, read_message
from opsmith.agents.indentation import strip_indentation
from opsmith.agents.manual import MEANING, Manual, Quotation, find_manual, join_quotations
from opsmith.agents.outline import request_outline
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.models.tokens import CHARS_PER_TOKEN, MESSAGE_TOKENS, estimate_tokens
from opsmith.records import Experience, Task
from opsmith.targets import Target
from opsmith.targets.capabilities import write_base_prompt
from opsmith.targets.protocols import Bare

_REFERENCE = (  # what a prompt says of it
    "a right program for the same problem in another language, to translate; its arguments may differ from the task's"
)


@dataclass(frozen=True)
class ReferenceProgram:
    """A right program for the same problem in another language."""

    target: str  # the language's name
    source: str


@dataclass(frozen=True)
class PromptStyle:
    """How prompts are written."""

    name: str = "structural"
    is_outlined: bool = False  # whether a plan is asked for before the program
    has_example: bool = True  # with the language's own


STRUCTURAL = PromptStyle()


@dataclass(frozen=True)
class Prompt:
    """What is sent for one task. `demonstrations_used` keeps their order, `left_out` begins with the first to go."""

    messages: tuple[Message, ...]
    demonstrations_used: tuple[Experience, ...] = ()
    left_out: tuple[Experience, ...] = ()  # did not fit beside the rest in the model's context window
    quotations: tuple[Quotation, ...] = ()  # of the language's manual

    @property
    def input_tokens(self) -> int:
        """Estimated input tokens."""
        return sum(estimate_tokens(message.content) + MESSAGE_TOKENS for message in self.messages)


class PromptParts(NamedTuple):
    """What `read_prompt` returns: (task text, program) of every example in order, and the text of the task to solve."""

    examples: list[tuple[str, str]]
    task: str  # "": the messages ask for no task


def compose_prompt(  # noqa: PLR0913  (what is shown beside the task, by name)
    task: Task,
    demonstrations: Sequence[Experience],
    target: Target,
    context_window: int | None,
    reserve: int,
    *,
    ranked: bool = False,
    style: PromptStyle = STRUCTURAL,
    reference: ReferenceProgram | None = None,
    manual: Manual | None = None,
) -> Prompt:
    """The prompt for `task`. Demonstrations that would overflow `context_window` less `reserve` (tokens kept for the
    reply) are left out, the one with the highest success rate first (of equals the last); with `ranked` the last one
    first, since they come in order of their use to the task. None: nothing is left out. `reference`: a program for the
    task's problem in another language. `manual`: None: the language's own. Raises UsageError when the target has no
    prompt of that style.
    """
    form = get_form(target, style.name, has_example=style.has_example)
    shown_reference, manual = write_reference(reference), manual or find_manual(target)
    if shown_reference and style.name != STRUCTURAL.name:
        raise UsageError(f"translate: given with prompt {style.name}, which shows none; try --prompt structural")
    outline = request_outline(target, style.name) if style.is_outlined else ""
    system = Message("system", form.write_system() + outline)
    texts = [form.write_example(demonstration) for demonstration in demonstrations]
    order = sorted(range(len(texts)), key=lambda i: (0.0 if ranked else -demonstrations[i].rank, -i))
    room = None
    if context_window is not None:
        room = context_window - reserve - estimate_tokens(system.content) - 2 * MESSAGE_TOKENS
    user = form.write_user(texts, task) + shown_reference
    quotations = (
        manual.choose_passages(task.prompt_text, None if room is None else room - estimate_tokens(user))
        if manual is not None
        else []
    )
    shown_reference += write_quotations(join_quotations(quotations))
    left_out = (
        [] if room is None else _choose_left_out(form.write_user(texts, task) + shown_reference, order, texts, room)
    )
    dropped = set(left_out)
    included = [i for i in range(len(texts)) if i not in dropped]
    return Prompt(
        (system, Message("user", form.write_user([texts[i] for i in included], task) + shown_reference)),
        tuple(demonstrations[i] for i in included),
        tuple(demonstrations[i] for i in left_out),
        tuple(quotations),
    )


def get_form(target: Target, style: str, *, has_example: bool = True) -> Form:
    """How prompts of that style are written. Raises UsageError when the target has none."""
    if style == "structural":
        return _StructuralForm(target, has_example)
    if not isinstance(target, Bare):
        raise UsageError(f"prompt {style}: target {target.name!r} offers no bare prompts; try --prompt structural")
    return BareForm(target)


def write_system_prompt(target: Target, style: str, *, has_example: bool = True) -> str:
    """The static part of a prompt. Raises UsageError when the target has none of that style."""
    return get_form(target, style, has_example=has_example).write_system()


def write_reference(reference: ReferenceProgram | None) -> str:
    """What follows a task's mapping; "" without a program. It names the language and says what the program is for."""
    if reference is None:
        return ""
    language = reference.target if reference.target.isidentifier() else json.dumps(reference.target)
    rows = f"language: {language}\nmeaning: {_REFERENCE}\nprogram: {format_yaml_block(reference.source)}"
    return f"reference:\n{indent_lines(rows)}"


def write_quotations(text: str) -> str:
    """A block of its own for passages of a manual, which nothing that they say can end; "" without any."""
    if not text:
        return ""
    return f"manual:\n{indent_lines(f'meaning: {json.dumps(MEANING)}{chr(10)}passages: {format_yaml_block(text)}')}"


def _choose_left_out(text: str, order: Sequence[int], texts: Sequence[str], room: int) -> list[int]:
    """Positions of the demonstrations to leave out, in the order in which they go: a beginning of `order`.

    `text`: that of the message with all of them; `room`: tokens that it may have.
    """
    excess = len(text) - room * CHARS_PER_TOKEN
    left_out: list[int] = []
    for i in order:
        if excess <= 0:
            break
        left_out.append(i)
        excess -= len(texts[i])
    return left_out


class Form(Protocol):
    """How the parts of a prompt are written."""

    def write_system(self) -> str: ...

    def write_example(self, demonstration: Experience) -> str: ...

    def write_user(self, examples: Sequence[str], task: Task) -> str: ...


class _StructuralForm:
    """The texts of a prompt in structural IR."""

    def __init__(self, target: Target, has_example: bool) -> None:
        self.target, self._has_example = target, has_example

    def write_system(self) -> str:
        return write_base_prompt(self.target, has_example=self._has_example)

    def write_example(self, demonstration: Experience) -> str:
        """The task's mapping with `impl` as its last key, as an entry of a YAML list."""
        impl = indent_lines(f"impl: {format_yaml_block(demonstration.source)}")
        return "- " + (indent_lines(demonstration.task.prompt_text) + impl)[2:]

    def write_user(self, examples: Sequence[str], task: Task) -> str:
        head = "examples:\n" + "".join(examples) if examples else ""
        return f"{head}task:\n{indent_lines(task.prompt_text)}"


def indent_lines(text: str) -> str:
    """`text` with every line that is not empty moved right; the text inside literal blocks stays what it is."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(f"  {line}\n" if line else "\n" for line in lines)


def format_yaml_block(program: str) -> str:
    """A program as a YAML literal block for a key at column 0 (the text after `key: `), quoted where it must be.

    >>> print(format_yaml_block("E1 = f(E0)"))
    |
      E1 = f(E0)
    """
    text = strip_indentation(program).strip("\n")
    # YAML cannot hold control characters as they are, nor other line breaks than newline
    has_odd = any(not char.isprintable() and char not in "\n\t" for char in text) or "\ufeff" in text
    if not text.strip() or has_odd:
        quoted: str = yaml.safe_dump(text + "\n", default_style='"', width=2**31)
        return quoted
    first = next(line for line in text.split("\n") if line.strip())
    indicator = "|2" if first[0] in " \t" or text[0] == " " else "|"
    return f"{indicator}\n" + indent_lines(text).removesuffix("\n")


def read_prompt(messages: Sequence[Message], target: Target | None = None) -> PromptParts:
    """The inverse of `compose_prompt`, from the text alone: mappings with a non-empty `impl`, and the task's mapping.

    Examples come in the order of the text: base prompt first. A message that is no YAML holds neither, unless the
    `target` reads bare prompts. What an assistant or a tool said in an earlier turn is no
    example.
    """
    examples: list[tuple[str, str]] = []
    task = ""
    for message in messages:
        if message.role in {"assistant", "tool"}:
            continue
        if isinstance(target, Bare) and "```" in message.content:
            bare_examples, bare_task = read_message(target, message.content)
            examples, task = [*examples, *bare_examples], bare_task or task
            continue
        data = load_yaml(message.content)
        try:
            examples += [(dump_task(mapping), str(mapping["impl"])) for mapping in _walk_examples(data)]
        except RecursionError:  # an alias to a mapping inside itself: nothing that was composed here
            continue
        task_mapping = data.get("task") if isinstance(data, Mapping) else None
        if isinstance(task_mapping, Mapping):
            task = dump_task(task_mapping)
    return PromptParts(examples, task)


def _walk_examples(data: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(data, Mapping):
        impl = data.get("impl")
        if isinstance(impl, str) and impl.strip():
            yield data
        data = list(data.values())
    if isinstance(data, list):
        for value in data:
            yield from _walk_examples(value)


def list_mappings(messages: Sequence[Message], answer: str = "") -> Iterator[Mapping[Any, Any]]:
    """The YAML mappings that the user's messages are; `answer`: those that ask for it alone."""
    for message in messages:
        mapping = load_yaml(message.content) if message.role == "user" else None
        if isinstance(mapping, Mapping) and (not answer or mapping.get("answer") == answer):
            yield mapping


def load_yaml(text: str) -> Any:
    """The value of a YAML text; None for one that is no YAML."""
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def dump_task(mapping: Mapping[Any, Any]) -> str:
    """The mapping of a task as its file's text, without a program."""
    statement = {key: value for key, value in mapping.items() if key != "impl"}
    text: str = yaml.dump(statement, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, width=2**20)
    return text
