"""The embedded model's work: a prompt's text in, replies out, in whatever process it runs.

`python -m opsmith_lab.models.sampling TARGET NOISE` answers JSON lines on stdin with JSON lines on stdout until stdin
ends. A reply depends on nothing but the request: what is kept between requests are pure functions of their texts.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import yaml

from opsmith.agents.prompt import PromptParts, compose_prompt, format_yaml_block, read_prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import OpsmithError, TaskError
from opsmith.models import Message
from opsmith.records import Task, content_hash
from opsmith.targets import Policy, Target, get_target
from opsmith.targets.capabilities import make_sampler
from opsmith.targets.protocols import PROPOSER, Adapting, Bare, Sampled
from opsmith_lab.models.noise import spoil_reply
from opsmith_lab.models.workers import serve_lines

NO_TASK = "I sample programs for the task under `task:` of a YAML message, and this message holds none."

Examples = tuple[tuple[str, str], ...]  # (task text, program)


class PromptSampler:
    """A target's sampler, asked by prompts. Raises UsageError for a target without one."""

    def __init__(self, target: Target, noise: float) -> None:
        self._target, self._sampler, self._noise = target, make_sampler(target), noise
        self._task: Callable[[str], Task] = lru_cache(maxsize=256)(self._read_task)
        self._policy: Callable[[Examples], Policy] = lru_cache(maxsize=2)(self._fit_policy)
        self._read: Callable[[str], PromptParts] = lru_cache(maxsize=256)(self._read_message)

    def sample_replies(self, messages: Sequence[Message], temperature: float, seed: int, n: int) -> list[str]:
        """`n` replies, each from a random generator of its own."""
        prompts = [self._read(message.content) for message in messages if message.role != "assistant"]
        text = next((prompt.task for prompt in reversed(prompts) if prompt.task), "")
        if not text:
            return [_return_untouched(messages)] * n
        policy = self._policy(tuple(example for prompt in prompts for example in prompt.examples))
        seeds = [content_hash(str(seed), str(i)) for i in range(n)]
        task, written = self._task(text), self._choose_writer(messages)
        return [self._sample_reply(policy, task, temperature, random.Random(name), written) for name in seeds]

    def answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request. Raises OpsmithError where its task cannot be read."""
        messages = [Message(role, content) for role, content in body["messages"]]
        return {"texts": self.sample_replies(messages, body["temperature"], body["seed"], body["n"])}

    def _sample_reply(
        self, policy: Policy, task: Task, temperature: float, rng: random.Random, written: Callable[[Task, str], str]
    ) -> str:
        program = policy.sample_program(task, temperature, rng)
        return spoil_reply(program, rng) if self._noise and rng.random() < self._noise else written(task, program)

    def _choose_writer(self, messages: Sequence[Message]) -> Callable[[Task, str], str]:
        """How to answer: as the base prompt asks. The bare one is made last, since that may import much."""
        target, base_prompt = self._target, messages[0].content
        if (
            base_prompt != target.base_prompt(PROPOSER)
            and isinstance(target, Bare)
            and base_prompt == target.bare_prompt()
        ):
            return lambda task, program: f"```python\n{target.bare_answer(task, program)}```\n"
        return lambda task, program: fence_program(program)

    def _fit_policy(self, examples: Examples) -> Policy:
        """A policy fitted on the examples; one that the target cannot read teaches nothing."""
        pairs = []
        for text, program in examples:
            try:
                pairs.append((self._task(text), program))
            except OpsmithError:
                continue
        return self._sampler.fit_policy(pairs)

    def _read_message(self, content: str) -> PromptParts:
        return read_prompt([Message("user", content)], self._target)

    def _read_task(self, text: str) -> Task:
        """The task that a prompt shows; as it is shown, where that is no file's text: a problem of others."""
        if isinstance(self._target, Adapting):
            with contextlib.suppress(TaskError):
                return self._target.read_task(text, "prompt")
            return Task("prompt", self._target.name, text)
        return self._target.read_task(text, "prompt")


def _return_untouched(messages: Sequence[Message]) -> str:
    """A guardian's request names no task; the sampler repairs nothing, so the program comes back as it is."""
    data = yaml.safe_load(messages[-1].content) if messages[-1].content.startswith("input_impl:") else None
    return (
        fence_program(data["input_impl"]) if isinstance(data, dict) and isinstance(data["input_impl"], str) else NO_TASK
    )


def fence_program(program: str) -> str:
    """A program as a model would answer."""
    return f"```yaml\nimpl: {format_yaml_block(program)}\n```\n"


def sample_programs(task: Task, count: int, temperature: float = 0.7, seed: int = 0) -> list[str]:
    """What the embedded model would answer to the task's base prompt, unwrapped; nothing where there is no sampler."""
    target = get_target(task.target)
    if count == 0 or not isinstance(target, Sampled):
        return []
    messages = compose_prompt(task, (), target, None, 0).messages
    replies = _make_sampler(task.target).sample_replies(messages, temperature, seed, count)
    return [source for reply in replies if (source := read_reply(target, task, reply).source) is not None]


@lru_cache(maxsize=2)
def _make_sampler(target: str) -> PromptSampler:
    return PromptSampler(get_target(target), 0.0)


def main(target: str, noise: str) -> None:
    """Answer requests until stdin ends."""
    serve_lines(PromptSampler(get_target(target), float(noise)).answer_request)


if __name__ == "__main__":
    main(*sys.argv[1:])
