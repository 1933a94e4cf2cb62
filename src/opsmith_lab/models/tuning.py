"""The work of the chat models `tuner` and `analyst`: a prompt's texts in, a rewritten program or a suggestion out.

The tuner is a generator: it applies what the suggestion names to the program of its prompt, or else a move drawn from
those that the language has. The analyst writes the suggestion that the language's rules expect most of, less what was
tried. Both read the messages alone, and equal requests get equal replies.

`python -m opsmith_lab.models.tuning TARGET ROLE` answers JSON lines on stdin with JSON lines on stdout until stdin
ends.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opsmith.agents.analysis import read_analysis_prompt
from opsmith.agents.generation import read_generation_prompt
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.records import content_hash
from opsmith.targets import Target, get_target
from opsmith.targets.protocols import Tuned
from opsmith_lab.models.advising import Adviser
from opsmith_lab.models.rewriting import Rewriter
from opsmith_lab.models.sampling import fence_program
from opsmith_lab.models.workers import serve_lines

TUNER, ANALYST = "tuner", "analyst"
NO_PROGRAM = "I rewrite the program under `program:` of a YAML message, and this message holds none."
NO_MOVE = "I know no further rewriting of this program."
NO_ANALYSIS = "I suggest what to do with the program of an analyst's prompt, and these messages are none."

Write = Callable[[Sequence[Message], float, random.Random], str]


def make_writer(target: Target, role: str) -> Write:
    """What replies to a prompt in that role. Raises UsageError for a target whose programs cannot be rewritten."""
    if not isinstance(target, Tuned):
        raise UsageError(
            f"model {role!r}: target {target.name!r} has no rewritings; try: --model with a language model's name "
            f"(opsmith models lists them)"
        )
    tuner = target.make_tuner()
    if role == TUNER:
        return partial(_write_program, Rewriter(tuner))
    return partial(_write_suggestion, Adviser(tuner))


def _write_program(rewriter: Rewriter, messages: Sequence[Message], temperature: float, rng: random.Random) -> str:
    """A program that no earlier turn of the conversation answered with."""
    prompt = read_generation_prompt(messages)
    if prompt is None:
        return NO_PROGRAM
    answered = {message.content for message in messages if message.role == "assistant"}
    for program in rewriter.list_programs(prompt.source, prompt.suggestion, temperature, rng, is_first=not answered):
        if (reply := fence_program(program)) not in answered:
            return reply
    return NO_MOVE


def _write_suggestion(adviser: Adviser, messages: Sequence[Message], temperature: float, rng: random.Random) -> str:
    prompt = read_analysis_prompt(messages)
    return NO_ANALYSIS if prompt is None else adviser.write_suggestion(prompt, temperature, rng)


def answer_request(write: Write, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request, each reply from a random generator of its own."""
    messages = [Message(role, content) for role, content in body["messages"]]
    seeds = [content_hash(str(body["seed"]), str(number)) for number in range(body["n"])]
    return {"texts": [write(messages, body["temperature"], random.Random(seed)) for seed in seeds]}


def main(target: str, role: str) -> None:
    """Answer requests until stdin ends."""
    serve_lines(partial(answer_request, make_writer(get_target(target), role)))


if __name__ == "__main__":
    main(*sys.argv[1:])
