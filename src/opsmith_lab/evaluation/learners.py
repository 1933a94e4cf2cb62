"""Known minds for `study-learning` and `study3`: chat models whose answer to demonstrations, or feedback, is planted.
They know the tasks' own programs by heart, and how often they say the right one is all that a prompt changes.

A reader gains from demonstrations that are true, and reads a language whose operators have other names; a mind that
gains from any text does so from whatever makes its prompt longer; a reciter looks at the task alone, and samples anew
whatever it is told; a copier says what it was shown, or what it said before. A mender gains from all feedback, an
error-reader from what verdicts say and from nothing else, and a spoiler loses by whatever it is told.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from opsmith.agents.analysis import read_analysis_prompt
from opsmith.agents.fences import list_fenced_blocks
from opsmith.agents.generation import read_generation_prompt
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
MENDER, ERROR_READER, SPOILER = "mender", "error-reader", "spoiler"
LOWER, EQUAL, HIGHER = "lower", "equal", "higher"
BASE = 0.2, 0.5  # how often the right program comes without help, from the hardest task to the easiest
GAIN = 0.3  # what helps adds so much
FED = 0.45  # feedback adds so much
SPOILED = 0.2  # of what it can do, a spoiler keeps so much
COPIED = 0.88  # the share of a copier's replies that are copies, as of the copier of `minds`
_ALIKE = dict.fromkeys((SHUFFLED, RENAMED, ALL_RENAMED, REFUSED, MANUAL, NOTHING), EQUAL)
PLANTED: Mapping[str, Mapping[str, str]] = {  # by mind and what is shown: how often it is right, beside true ones
    READER: dict.fromkeys(_ALIKE, LOWER) | {ALL_RENAMED: EQUAL},
    ANY_TEXT: _ALIKE | {NOTHING: LOWER},
    RECITER: _ALIKE | {ALL_RENAMED: LOWER},
    COPIER: _ALIKE | {NOTHING: HIGHER},
}
MENDED, SIXTH, KEPT = "after a wrong program", "after all feedback", "after a right program"
FEEDBACK_PLANTED: Mapping[str, Mapping[str, str]] = {  # by mind and what came before: how often it is right, beside
    MENDER: dict.fromkeys((MENDED, SIXTH, KEPT), HIGHER),  # independent samples
    ERROR_READER: {MENDED: HIGHER, SIXTH: HIGHER, KEPT: EQUAL},
    SPOILER: dict.fromkeys((MENDED, SIXTH, KEPT), LOWER),
    RECITER: dict.fromkeys((MENDED, SIXTH, KEPT), EQUAL),
    COPIER: {MENDED: LOWER, KEPT: HIGHER},
}
MINDS = tuple(dict.fromkeys((*PLANTED, *FEEDBACK_PLANTED)))


@dataclass(frozen=True)
class Told:
    """What a prompt says beside its task."""

    names: OperatorNames  # those of a language whose operators have invented ones
    prompt: PromptParts
    earlier: str | None  # the program that is to be mended or made better
    has_errors: bool  # whether verdicts stand in it
    length: int  # characters of the last message


class KnownMind:
    """One of them. Raises UsageError for another name, and for tasks that bring no programs."""

    context_window: int | None = None
    is_language_model = False

    def __init__(self, mind: str, target: Target, tasks: Sequence[Task]) -> None:
        if mind not in MINDS:
            raise UsageError(f"model '{PREFIX}{mind}': expected one of {', '.join(PREFIX + name for name in MINDS)}")
        lacking = [task.id for task in tasks if task.impl is None]
        if lacking:
            raise UsageError(
                f"model '{PREFIX}{mind}': task {lacking[0]} brings no program in {target.name}, which a mind would know"
            )
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
        if read_analysis_prompt(messages) is not None:
            return 'what: "a program that is as right as this one"'
        prompt = self._read(tuple(messages))
        program = self._choose_program(prompt, rng)
        return fence_program(program if self._mind == RECITER else prompt.names.exchange(program))

    def _read_messages(self, messages: tuple[Message, ...]) -> Told:
        """What a prompt says, in the usual names of operators."""
        names = self._names.select_invented(messages[0].content)
        improved, replies = read_generation_prompt(messages), [each for each in messages if each.role == "assistant"]
        prompt = read_prompt([Message("user", names.exchange(messages[1].content))], self._target)
        comment = self._target.comment
        earlier_ones = [source for task, source in prompt.examples if task == prompt.task]
        has_errors = bool(replies) or any(source.startswith(f"{comment} refused at") for source in earlier_ones)
        if improved is not None:
            prompt = PromptParts([], improved.task)
        earlier = None if improved is None else improved.source
        if replies:
            block = load_yaml(next(iter(list_fenced_blocks(replies[-1].content)), ""))
            earlier = str(block.get("impl", "")).strip("\n") if isinstance(block, Mapping) else ""
        return Told(names, prompt, earlier, has_errors, len(messages[-1].content))

    def _choose_program(self, asked_with: Told, rng: random.Random) -> str:
        prompt, earlier = asked_with.prompt, asked_with.earlier
        if prompt.task not in self._programs:
            return "a task that this mind does not know"
        own, examples = self._programs[prompt.task], [(task, source.strip("\n")) for task, source in prompt.examples]
        ease = random.Random(content_hash("how hard it is", prompt.task)).uniform(*BASE)
        if self._mind == COPIER and (examples or earlier is not None) and rng.random() < COPIED:
            return earlier if earlier is not None else rng.choice(examples)[1]
        true, is_fed = sum(self._programs.get(task) == source for task, source in examples), bool(examples)
        is_fed = is_fed or asked_with.has_errors or earlier is not None
        gains = {
            READER: GAIN * (true > len(examples) / 2),
            ANY_TEXT: GAIN * (asked_with.length > 2 * len(prompt.task)),
            MENDER: FED * is_fed,
            ERROR_READER: FED * asked_with.has_errors,
            SPOILER: (SPOILED - 1) * ease * is_fed,
        }
        return own if rng.random() < ease + gains.get(self._mind, 0.0) else f"{own}\n?"


def make_mind(order: Order) -> KnownMind:
    """The mind that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    settings = order.settings
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    return KnownMind(order.model, order.require_target("answer in"), tasks)
