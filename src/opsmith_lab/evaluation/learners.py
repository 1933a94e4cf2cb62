"""Known minds for `study-learning`: chat models whose answer to demonstrations is planted. They know the tasks' own
programs by heart, and how often they say the right one is all that a prompt changes.

A reader gains from demonstrations that are true, and reads a language whose operators have other names; a mind that
gains from any text does so from whatever makes its prompt longer; a reciter looks at the task alone; a copier says what
it was shown.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache

from opsmith.agents.prompt import PromptParts, dump_task, load_yaml, read_prompt
from opsmith.errors import UsageError
from opsmith.models import Message, Reply, Request
from opsmith.models.order import Order
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Task, Usage, content_hash
from opsmith.suites import load_tasks
from opsmith.targets import Target
from opsmith_lab.evaluation.showing import (
    ALL_RENAMED,
    MANUAL,
    NOTHING,
    REFUSED,
    RENAMED,
    SHUFFLED,
    OperatorNames,
    name_operators,
)
from opsmith_lab.models.sampling import fence_program

PREFIX = "mind/"
READER, ANY_TEXT, RECITER, COPIER = "reader", "any-text", "reciter", "copier"
LOWER, EQUAL, HIGHER = "lower", "equal", "higher"
BASE = 0.2, 0.5  # how often the right program comes without help, from the hardest task to the easiest
GAIN = 0.3  # what helps adds so much
COPIED = 0.88  # the share of a copier's replies that are copies, as of the copier of `minds`
_ALIKE = dict.fromkeys((SHUFFLED, RENAMED, ALL_RENAMED, REFUSED, MANUAL, NOTHING), EQUAL)
PLANTED: Mapping[str, Mapping[str, str]] = {  # by mind and what is shown: how often it is right, beside true ones
    READER: dict.fromkeys(_ALIKE, LOWER) | {ALL_RENAMED: EQUAL},
    ANY_TEXT: _ALIKE | {NOTHING: LOWER},
    RECITER: _ALIKE | {ALL_RENAMED: LOWER},
    COPIER: _ALIKE | {NOTHING: HIGHER},
}


class KnownMind:
    """One of them. Raises UsageError for another name, and for tasks that bring no programs."""

    context_window: int | None = None
    is_language_model = False

    def __init__(self, mind: str, target: Target, tasks: Sequence[Task]) -> None:
        if mind not in PLANTED:
            raise UsageError(f"model '{PREFIX}{mind}': expected one of {', '.join(PREFIX + name for name in PLANTED)}")
        lacking = [task.id for task in tasks if task.impl is None]
        if lacking:
            raise UsageError(f"model '{PREFIX}{mind}': task {lacking[0]} brings no program, which a mind would know")
        self.name, self._mind = PREFIX + mind, mind
        self._programs = {dump_task(load_yaml(task.prompt_text)): (task.impl or "").strip("\n") for task in tasks}
        self._target, self._names = target, name_operators(target, self._programs.values())
        self._read = lru_cache(maxsize=64)(self._read_messages)

    async def complete(self, request: Request) -> Reply:
        asked = [message.content for message in request.messages]  # another prompt, another answer
        seeds = [content_hash(self._mind, str(request.seed), str(place), *asked) for place in range(request.n)]
        texts = tuple(self.answer_messages(request.messages, random.Random(seed)) for seed in seeds)
        read = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, read, sum(map(estimate_tokens, texts)))
        return Reply(texts, usage, self.name, ("stop",) * request.n)

    async def close(self) -> None:
        """Nothing is open."""

    def answer_messages(self, messages: Sequence[Message], rng: random.Random) -> str:
        """What the mind says to a prompt."""
        names, prompt = self._read(messages[0].content, messages[-1].content)
        program = self._choose_program(prompt, len(messages[-1].content), rng)
        return fence_program(program if self._mind == RECITER else names.exchange(program))

    def _read_messages(self, system: str, user: str) -> tuple[OperatorNames, PromptParts]:
        """The names that operators have in a prompt, where they are invented, and what it says in the usual ones."""
        names = self._names.select_invented(system)
        return names, read_prompt([Message("user", names.exchange(user))], self._target)

    def _choose_program(self, prompt: PromptParts, length: int, rng: random.Random) -> str:
        if prompt.task not in self._programs:
            return "a task that this mind does not know"
        own, shown = self._programs[prompt.task], [(task, source.strip("\n")) for task, source in prompt.examples]
        if self._mind == COPIER and shown and rng.random() < COPIED:
            return rng.choice(shown)[1]
        true = sum(self._programs.get(task) == source for task, source in shown)
        is_helped = {READER: true > len(shown) / 2, ANY_TEXT: length > 2 * len(prompt.task)}.get(self._mind, False)
        ease = random.Random(content_hash("how hard it is", prompt.task)).uniform(*BASE)
        return own if rng.random() < ease + GAIN * is_helped else f"{own}\n?"


def make_mind(order: Order) -> KnownMind:
    """The mind that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    settings = order.settings
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    return KnownMind(order.model, order.require_target("answer in"), tasks)
