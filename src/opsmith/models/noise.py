"""Replies spoiled the way models spoil them, so that the whole path can be tried under a model's errors.

Every way is a pure function of (program, generator). Some leave the program right in another wrapping, which must be
read all the same; the others are refused at different stages: no program, no parse, wrong types, double use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from opsmith.agents.prompt import yaml_block


def spoiled(program: str, rng: random.Random) -> str:
    """The reply that holds `program`, spoiled in one way."""
    return rng.choice(WAYS)(program, rng)


def chatty(program: str, rng: random.Random) -> str:
    return (
        f"Sure! Here is the implementation:\n\n```yaml\nimpl: {yaml_block(program)}\n```\n\nIt reads every input once."
    )


def unclosed(program: str, rng: random.Random) -> str:
    return f"```yaml\nimpl: {yaml_block(program)}\n"


def bare(program: str, rng: random.Random) -> str:
    return f"```python\n{program}\n```\n"


def greedy(program: str, rng: random.Random) -> str:
    """Keys that a reply may not set."""
    return f"```yaml\nimpl: {yaml_block(program)}\noutputs: []\nglobal: |\n  E_value = 1\n```\n"


def silent(program: str, rng: random.Random) -> str:
    return rng.choice(["", "I cannot solve this task.", "```yaml\n```", "impl:\n"])


def truncated(program: str, rng: random.Random) -> str:
    text = f"```yaml\nimpl: {yaml_block(program)}\n```\n"
    return text[: rng.randrange(len(text) // 4, len(text))]


def misspelt(program: str, rng: random.Random) -> str:
    """A name after a dot gets one letter twice."""
    names = list(re.finditer(r"\.([A-Za-z]\w+)", program))
    if not names:
        return chatty(program, rng)
    name = rng.choice(names)
    at = rng.randrange(name.start(1), name.end(1))
    return chatty(program[: at + 1] + program[at:], rng)


def off_by_one(program: str, rng: random.Random) -> str:
    """A number in an argument is one more."""
    numbers = list(re.finditer(r"(?<=[=\[ ])\d+(?=[\]),])", program))
    if not numbers:
        return chatty(program, rng)
    number = rng.choice(numbers)
    return chatty(f"{program[: number.start()]}{int(number[0]) + 1}{program[number.end() :]}", rng)


def without_a_line(program: str, rng: random.Random) -> str:
    lines = program.rstrip("\n").split("\n")
    del lines[rng.randrange(len(lines))]
    return chatty("\n".join(lines), rng)


def reused(program: str, rng: random.Random) -> str:
    """A statement that makes two of one (`a, b = ...(x)`) is left out, and `x` used in place of both."""
    pairs = list(re.finditer(r"^(\w+), (\w+) = [^\n]*\((\w+)\)\n", program, re.MULTILINE))
    if not pairs:
        return without_a_line(program, rng)
    pair = rng.choice(pairs)
    rest = program[: pair.start()] + program[pair.end() :]
    return chatty(re.sub(rf"\b({pair[1]}|{pair[2]})\b", pair[3], rest), rng)


WAYS: tuple[Callable[[str, random.Random], str], ...] = (
    chatty,
    unclosed,
    bare,
    greedy,
    silent,
    truncated,
    misspelt,
    off_by_one,
    without_a_line,
    reused,
)
