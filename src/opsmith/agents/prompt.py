"""What is asked of a model: task and demonstrations -> messages, and back again. Pure: no files, no clock, no chance.

Two messages. `system` is the target's base prompt, unchanged, so that a provider's prompt cache serves it for every
task. `user` is one YAML mapping: `examples:` (each a task's mapping with its `impl`; left out when there are none),
then `task:`. Task texts go in as they are, by indentation, never dumped anew. With `style` "bare" both are written in
the target's host language instead (`bare`). Not covered: what is asked of the guardian (`guardian`), and the sampling
parameters (the caller's).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import yaml

from opsmith.agents.bare import BareForm, read_message
from opsmith.agents.layout import dedent
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.targets import Target
from opsmith.targets.bare import Bare

CHARS_PER_TOKEN = 4  # the usual rule of thumb; every provider counts differently
MESSAGE_TOKENS = 4  # what a chat format adds around one message


@dataclass(frozen=True)
class Prompt:
    """What is sent for one task. `demonstrations_used` keeps their order, `left_out` begins with the first to go."""

    messages: tuple[Message, ...]
    demonstrations_used: tuple[Experience, ...] = ()
    left_out: tuple[Experience, ...] = ()  # did not fit beside the rest in the model's context window

    @property
    def tokens(self) -> int:
        """Estimated input tokens."""
        return sum(estimate_tokens(message.content) + MESSAGE_TOKENS for message in self.messages)


class PromptParts(NamedTuple):
    """What `read_prompt` finds: (task text, program) of every example in order, and the text of the task to solve."""

    examples: list[tuple[str, str]]
    task: str  # "": the messages ask for no task


def estimate_tokens(text: str) -> int:
    """Characters / 4, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def compose(
    task: Task,
    demonstrations: Sequence[Experience],
    target: Target,
    context_window: int | None,
    reserve: int,
    *,
    ranked: bool = False,
    style: str = "structural",
) -> Prompt:
    """The prompt for `task`. Demonstrations that would overflow `context_window` less `reserve` (tokens kept for the
    reply) are left out, the one with the highest success rate first (of equals the last); with `ranked` the last one
    first, since they come in order of their use to the task. None: nothing is left out. Raises UsageError when the
    target has no prompt of that style.
    """
    form = get_form(target, style)
    system = Message("system", form.system())
    texts = [form.example(demonstration) for demonstration in demonstrations]
    order = sorted(range(len(texts)), key=lambda i: (0.0 if ranked else -demonstrations[i].success_rate, -i))
    room = None if context_window is None else context_window - reserve - estimate_tokens(system.content)
    left_out = [] if room is None else _overflow(form.user(texts, task), order, texts, room - 2 * MESSAGE_TOKENS)
    dropped = set(left_out)
    kept = [i for i in range(len(texts)) if i not in dropped]
    return Prompt(
        (system, Message("user", form.user([texts[i] for i in kept], task))),
        tuple(demonstrations[i] for i in kept),
        tuple(demonstrations[i] for i in left_out),
    )


def get_form(target: Target, style: str) -> Form:
    """How prompts of that style are written. Raises UsageError when the target has none."""
    if style == "structural":
        return _Structural(target)
    if not isinstance(target, Bare):
        raise UsageError(f"prompt {style}: target {target.name!r} offers no bare prompts; try --prompt structural")
    return BareForm(target)


def base_prompt(target: Target, style: str) -> str:
    """The static part of a prompt. Raises UsageError when the target has none of that style."""
    return get_form(target, style).system()


def _overflow(whole: str, order: Sequence[int], texts: Sequence[str], room: int) -> list[int]:
    """Positions of the demonstrations to leave out, in the order in which they go: a beginning of `order`.

    `whole`: the text with all of them; `room`: tokens that it may have.
    """
    excess = len(whole) - room * CHARS_PER_TOKEN
    left_out: list[int] = []
    for i in order:
        if excess <= 0:
            break
        left_out.append(i)
        excess -= len(texts[i])
    return left_out


class Form(Protocol):
    """How the parts of a prompt are written."""

    def system(self) -> str: ...

    def example(self, demonstration: Experience) -> str: ...

    def user(self, examples: Sequence[str], task: Task) -> str: ...


class _Structural:
    """The texts of a prompt in structural IR."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def system(self) -> str:
        return self.target.proposer_prompt()

    def example(self, demonstration: Experience) -> str:
        """The task's mapping with `impl` as its last key, as an entry of a YAML list."""
        impl = _indent(f"impl: {yaml_block(demonstration.source)}", "  ")
        return "- " + (_indent(demonstration.task.prompt_text, "  ") + impl)[2:]

    def user(self, examples: Sequence[str], task: Task) -> str:
        head = "examples:\n" + "".join(examples) if examples else ""
        return f"{head}task:\n{_indent(task.prompt_text, '  ')}"


def _indent(text: str, prefix: str) -> str:
    """`text` with every line that is not empty moved right; the text inside literal blocks stays what it is."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(f"{prefix}{line}\n" if line else "\n" for line in lines)


def yaml_block(program: str) -> str:
    """A program as a YAML literal block for a key at column 0 (the text after `key: `), quoted where it must be.

    >>> print(yaml_block("E1 = f(E0)"))
    |
      E1 = f(E0)
    """
    text = dedent(program).strip("\n")
    if not text.strip() or not _fits_a_block(text):
        quoted: str = yaml.safe_dump(text + "\n", default_style='"', width=2**31)
        return quoted
    first = next(line for line in text.split("\n") if line.strip())
    indicator = "|2" if first[0] in " \t" or text[0] == " " else "|"
    return f"{indicator}\n" + _indent(text, "  ").removesuffix("\n")


def _fits_a_block(text: str) -> bool:
    """Whether YAML can hold the characters as they are: no control characters and no other line breaks than newline."""
    return all(char.isprintable() or char in "\n\t" for char in text) and "\ufeff" not in text


def read_prompt(messages: Sequence[Message], target: Target | None = None) -> PromptParts:
    """The inverse of `compose`, from the text alone: every mapping with a non-empty `impl`, and the task's mapping.

    Examples come in the order of the text: base prompt first. A message that is no YAML holds neither, unless the
    `target` reads bare prompts. What an assistant said in an earlier turn is no example.
    """
    examples: list[tuple[str, str]] = []
    task = ""
    for message in messages:
        if message.role == "assistant":
            continue
        if isinstance(target, Bare) and "```" in message.content:
            shown, asked_bare = read_message(target, message.content)
            examples, task = [*examples, *shown], asked_bare or task
            continue
        data = _load(message.content)
        try:
            examples += [(_dump(mapping), str(mapping["impl"])) for mapping in _examples(data)]
        except RecursionError:  # an alias to a mapping inside itself: nothing that was composed here
            continue
        asked = data.get("task") if isinstance(data, Mapping) else None
        if isinstance(asked, Mapping):
            task = _dump(asked)
    return PromptParts(examples, task)


def _examples(data: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(data, Mapping):
        impl = data.get("impl")
        if isinstance(impl, str) and impl.strip():
            yield data
        data = list(data.values())
    if isinstance(data, list):
        for part in data:
            yield from _examples(part)


def _load(text: str) -> Any:
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return None


def _dump(mapping: Mapping[Any, Any]) -> str:
    rest = {key: value for key, value in mapping.items() if key != "impl"}
    text: str = yaml.dump(rest, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, width=2**20)
    return text
