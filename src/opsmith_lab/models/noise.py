"""Replies spoiled the way models spoil them, so that the whole path can be tried under a model's errors.

Every way is a pure function of (program, generator). Some leave the program right in another wrapping, which must be
read all the same; the others are refused at different stages: no program, no parse, wrong types, double use.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from opsmith.agents.prompt import format_yaml_block


def spoil_reply(program: str, rng: random.Random) -> str:
    """The reply that holds `program`, spoiled in one way."""
    return rng.choice(WAYS)(program, rng)


def wrap_in_chat(program: str, rng: random.Random) -> str:
    block = f"```yaml\nimpl: {format_yaml_block(program)}\n```"
    return f"Sure! Here is the implementation:\n\n{block}\n\nIt reads every input once."


def leave_unclosed(program: str, rng: random.Random) -> str:
    return f"```yaml\nimpl: {format_yaml_block(program)}\n"


def fence_bare(program: str, rng: random.Random) -> str:
    return f"```python\n{program}\n```\n"


def add_keys(program: str, rng: random.Random) -> str:
    """Keys that a reply may not set."""
    return f"```yaml\nimpl: {format_yaml_block(program)}\noutputs: []\nglobal: |\n  E_value = 1\n```\n"


def give_nothing(program: str, rng: random.Random) -> str:
    return rng.choice(["", "I cannot solve this task.", "```yaml\n```", "impl:\n"])


def truncate_reply(program: str, rng: random.Random) -> str:
    text = f"```yaml\nimpl: {format_yaml_block(program)}\n```\n"
    return text[: rng.randrange(len(text) // 4, len(text))]


def misspell_name(program: str, rng: random.Random) -> str:
    """A name after a dot gets one letter twice."""
    names = list(re.finditer(r"\.([A-Za-z]\w+)", program))
    if not names:
        return wrap_in_chat(program, rng)
    name = rng.choice(names)
    position = rng.randrange(name.start(1), name.end(1))
    return wrap_in_chat(program[: position + 1] + program[position:], rng)


def increase_number(program: str, rng: random.Random) -> str:
    """A number in an argument is one more."""
    numbers = list(re.finditer(r"(?<=[=\[ ])\d+(?=[\]),])", program))
    if not numbers:
        return wrap_in_chat(program, rng)
    number = rng.choice(numbers)
    return wrap_in_chat(f"{program[: number.start()]}{int(number[0]) + 1}{program[number.end() :]}", rng)


def drop_line(program: str, rng: random.Random) -> str:
    lines = program.rstrip("\n").split("\n")
    del lines[rng.randrange(len(lines))]
    return wrap_in_chat("\n".join(lines), rng)


def reuse_stream(program: str, rng: random.Random) -> str:
    """A statement that makes two of one (`a, b = ...(x)`) is left out, and `x` used in place of both."""
    pairs = list(re.finditer(r"^(\w+), (\w+) = [^\n]*\((\w+)\)\n", program, re.MULTILINE))
    if not pairs:
        return drop_line(program, rng)
    pair = rng.choice(pairs)
    shortened = program[: pair.start()] + program[pair.end() :]
    return wrap_in_chat(re.sub(rf"\b({pair[1]}|{pair[2]})\b", pair[3], shortened), rng)


WAYS: tuple[Callable[[str, random.Random], str], ...] = (
    wrap_in_chat,
    leave_unclosed,
    fence_bare,
    add_keys,
    give_nothing,
    truncate_reply,
    misspell_name,
    increase_number,
    drop_line,
    reuse_stream,
)
