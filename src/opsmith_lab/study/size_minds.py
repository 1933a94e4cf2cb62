"""Known minds for zero-shot kernels: chat models whose answer to a told size is planted.

They write templates' programs, and which numbers they put there is all that a prompt changes.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from opsmith.errors import UsageError
from opsmith.models import Message, Reply, Request
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Usage, content_hash
from opsmith.targets import get_target
from opsmith.targets.protocols import PROPOSER
from opsmith_lab.evaluation.learners import PREFIX
from opsmith_lab.models.sampling import fence_program
from opsmith_lab.study.sizes import COMMON, KERNELS, TOLD, UNCOMMON, UNTOLD, Sizes, name_kind, read_told
from opsmith_lab.study.templates import read_template

HOT = 0.3  # above this temperature a heated mind draws
WRONG = 0.5  # of a bungler's programs for uncommon sizes that it is told
SPOILED = "\n?\n"
_PROBLEM = re.compile(r"^  problem: (\w+)$", re.MULTILINE)

Chooser = Callable[[Sizes | None, float, int, random.Random], int]  # told, temperature, how many choices -> place


def follow(share: float, told_sizes: Sizes | None, temperature: float, choices: int, rng: random.Random) -> int:
    """In that share of its samples a place that rises with the logarithm of N, from 32 to 2048; recited otherwise."""
    if told_sizes is None or rng.random() >= share:
        return choices // 2
    share_of_range = (math.log2(dict(told_sizes)["N"]) - 5) / 6
    return min(choices - 1, max(0, round(share_of_range * (choices - 1))))


def follow_common(told_sizes: Sizes | None, temperature: float, choices: int, rng: random.Random) -> int:
    return follow(
        float(told_sizes is not None and name_kind(told_sizes) == COMMON), told_sizes, temperature, choices, rng
    )


def draw(told_sizes: Sizes | None, temperature: float, choices: int, rng: random.Random) -> int:
    return rng.randrange(choices)


def draw_when_hot(told_sizes: Sizes | None, temperature: float, choices: int, rng: random.Random) -> int:
    return rng.randrange(choices) if temperature > HOT else choices // 2


SIZE_MINDS: Mapping[str, Chooser] = {
    "follower": partial(follow, 1.0),
    "follower-30": partial(follow, 0.3),
    "common-follower": follow_common,
    "size-reciter": partial(follow, 0.0),
    "drawer": draw,
    "heated": draw_when_hot,
    "bungler": partial(follow, 0.0),
}
MIND_WORDS: Mapping[str, str] = {
    "follower": "its numbers rise with the N that it is told; untold it recites",
    "follower-30": "follows in 30 % of its samples",
    "common-follower": "follows common sizes, and recites at uncommon ones",
    "size-reciter": "the same numbers whatever it is told",
    "drawer": "numbers at random",
    "heated": f"recites at temperatures of at most {HOT}, and draws above",
    "bungler": "recites, and half of its programs for uncommon sizes are wrong",
}
FOLLOWED = SIZE, TEMPERATURE, TELLING = "size", "temperature", "telling"  # what parameters may follow
RIGHT = "right"  # fewer programs are, where the size is uncommon
PLANTED: Mapping[str, frozenset[tuple[str, ...]]] = {  # by mind: what must be found; all else must not
    "follower": frozenset({(SIZE, TOLD), (SIZE, TOLD, COMMON), (SIZE, TOLD, UNCOMMON), (TELLING,)}),
    "follower-30": frozenset({(SIZE, TOLD), (SIZE, TOLD, COMMON), (SIZE, TOLD, UNCOMMON), (TELLING,)}),
    "common-follower": frozenset({(SIZE, TOLD), (SIZE, TOLD, COMMON), (TELLING,)}),
    "size-reciter": frozenset(),
    "drawer": frozenset(),
    "heated": frozenset({(TEMPERATURE, TOLD), (TEMPERATURE, UNTOLD)}),
    "bungler": frozenset({(RIGHT,)}),
}


class SizeMind:
    """One of them, in whatever language it is asked. Raises UsageError for another name."""

    context_window: int | None = None
    is_language_model = False

    def __init__(self, name: str, languages: Sequence[str]) -> None:
        if name not in SIZE_MINDS:
            names = ", ".join(PREFIX + each for each in SIZE_MINDS)
            raise UsageError(f"model '{PREFIX}{name}': expected one of {names}")
        self.name, self._mind = PREFIX + name, name
        self._languages = {get_target(language).base_prompt(PROPOSER): language for language in languages}

    async def complete(self, request: Request) -> Reply:
        texts_read = [message.content for message in request.messages]
        seeds = [content_hash(self._mind, str(request.seed), str(place), *texts_read) for place in range(request.n)]
        rngs = map(random.Random, seeds)
        texts = tuple(self.answer_messages(request.messages, request.temperature, rng) for rng in rngs)
        read = sum(map(estimate_tokens, texts_read))
        return Reply(texts, Usage(1, read, sum(map(estimate_tokens, texts))), self.name, ("stop",) * request.n)

    async def close(self) -> None:
        """Nothing is open."""

    def answer_messages(self, messages: Sequence[Message], temperature: float, rng: random.Random) -> str:
        """What the mind says to a prompt of the study."""
        language, match = self._languages.get(messages[0].content), _PROBLEM.search(messages[-1].content)
        if language is None or match is None or match[1] not in KERNELS:
            return "a kernel or a language that this mind does not know"
        return fence_program(self.write_kernel(match[1], language, read_told(messages[-1].content), temperature, rng))

    def write_kernel(
        self, kernel: str, language: str, told_sizes: Sizes | None, temperature: float, rng: random.Random
    ) -> str:
        template = read_template(kernel, language)
        choose = SIZE_MINDS[self._mind]
        numbers = {
            name: choices[choose(told_sizes, temperature, len(choices), rng)]
            for name, choices in template.choices.items()
        }
        is_hard = told_sizes is not None and name_kind(told_sizes) == UNCOMMON
        is_wrong = self._mind == "bungler" and is_hard and rng.random() < WRONG
        return template.write_program(numbers) + SPOILED * is_wrong
