"""The embedded model's work: a prompt's text in, replies out, in whatever process it runs.

`python -m opsmith.models.sampling TARGET NOISE` answers JSON lines on stdin with JSON lines on stdout until stdin ends.
A reply depends on nothing but the request: what is kept between requests are pure functions of their texts.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import yaml

from opsmith.agents.prompt import PromptParts, compose, read_prompt, yaml_block
from opsmith.agents.reply import read_reply
from opsmith.errors import OpsmithError, UsageError
from opsmith.models import Message
from opsmith.models.noise import spoiled
from opsmith.records import Task, content_hash
from opsmith.targets import Policy, Target, get_target
from opsmith.targets.bare import Bare

NO_TASK = "I sample programs for the task under `task:` of a YAML message, and this message holds none."

Examples = tuple[tuple[str, str], ...]  # (task text, program)


class Session:
    """A target's sampler, asked by prompts. Raises UsageError for a target without one."""

    def __init__(self, target: Target, noise: float) -> None:
        sampler = target.sampler()
        if sampler is None:
            raise UsageError(f"model 'embedded': target {target.name!r} has no sampler; try another model")
        self._target, self._sampler, self._noise = target, sampler, noise
        self._task: Callable[[str], Task] = lru_cache(maxsize=256)(self._read_task)
        self._policy: Callable[[Examples], Policy] = lru_cache(maxsize=2)(self._fit)
        self._read: Callable[[str], PromptParts] = lru_cache(maxsize=256)(self._read_message)

    def replies(self, messages: Sequence[Message], temperature: float, seed: int, n: int) -> list[str]:
        """`n` replies, each from a random generator of its own."""
        parts = [self._read(message.content) for message in messages if message.role != "assistant"]
        text = next((part.task for part in reversed(parts) if part.task), "")
        if not text:
            return [_untouched(messages)] * n
        policy = self._policy(tuple(example for part in parts for example in part.examples))
        seeds = [content_hash(str(seed), str(i)) for i in range(n)]
        task, written = self._task(text), self._writer(messages)
        return [self._reply(policy, task, temperature, random.Random(name), written) for name in seeds]

    def _reply(
        self, policy: Policy, task: Task, temperature: float, rng: random.Random, written: Callable[[Task, str], str]
    ) -> str:
        program = policy.sample(task, temperature, rng)
        return spoiled(program, rng) if self._noise and rng.random() < self._noise else written(task, program)

    def _writer(self, messages: Sequence[Message]) -> Callable[[Task, str], str]:
        """How to answer: as the base prompt asks."""
        target = self._target
        if isinstance(target, Bare) and messages[0].content == target.bare_prompt():
            return lambda task, program: f"```python\n{target.bare_answer(task, program)}```\n"
        return lambda task, program: fenced(program)

    def _fit(self, examples: Examples) -> Policy:
        """A policy fitted on the examples; one that the target cannot read teaches nothing."""
        pairs = []
        for text, program in examples:
            try:
                pairs.append((self._task(text), program))
            except OpsmithError:
                continue
        return self._sampler.fit(pairs)

    def _read_message(self, content: str) -> PromptParts:
        return read_prompt([Message("user", content)], self._target)

    def _read_task(self, text: str) -> Task:
        return self._target.read_task(text, "prompt")


def _untouched(messages: Sequence[Message]) -> str:
    """A guardian's request names no task; the sampler repairs nothing, so the program comes back as it is."""
    data = yaml.safe_load(messages[-1].content) if messages[-1].content.startswith("input_impl:") else None
    return fenced(data["input_impl"]) if isinstance(data, dict) and isinstance(data["input_impl"], str) else NO_TASK


def fenced(program: str) -> str:
    """A program as a model would answer."""
    return f"```yaml\nimpl: {yaml_block(program)}\n```\n"


def programs(task: Task, count: int, temperature: float = 0.7, seed: int = 0) -> list[str]:
    """What the embedded model would answer to the task's base prompt, unwrapped; nothing where there is no sampler."""
    target = get_target(task.target)
    if count == 0 or target.sampler() is None:
        return []
    messages = compose(task, (), target, None, 0).messages
    replies = _session(target.name).replies(messages, temperature, seed, count)
    return [source for reply in replies if (source := read_reply(target, task, reply).source) is not None]


@lru_cache(maxsize=2)
def _session(target: str) -> Session:
    return Session(get_target(target), 0.0)


def answer(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, or why there is none."""
    messages = [Message(role, content) for role, content in request["messages"]]
    try:
        return {"texts": session.replies(messages, request["temperature"], request["seed"], request["n"])}
    except OpsmithError as error:
        return {"problem": str(error)}


def main(target: str, noise: str) -> None:
    """Answer requests until stdin ends."""
    session = Session(get_target(target), float(noise))
    for line in sys.stdin:
        print(json.dumps(answer(session, json.loads(line))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
