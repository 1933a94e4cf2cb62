"""Model servers whose answers are kernels in any language: right ones, wrong ones, some that are mended when asked to.

Answers are YAML, and every third one a fenced block, as models' replies are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from models.servers import AnthropicServer, OpenAIServer

from opsmith.records import Task

SERVERS = {"openai/served": OpenAIServer, "anthropic/served": AnthropicServer}
COMMENTS = {**dict.fromkeys(("c", "cuda", "wgsl", "metal"), "//"), "tvm": "#", "triton": "#"}  # languages with comments
MENDED, WRONG = "softmax", "scale_shift_silu"  # whose first answers do not compile; whose answers are all wrong


def write_reply(program: str) -> str:
    return "impl: |\n" + "".join(f"  {line}\n" for line in program.splitlines())


def answer_with_programs(tasks: Iterable[Task], is_fenced: bool = False) -> Any:
    """A server's handler: for each of the tasks its own program, spoiled where it is MENDED or WRONG.

    A last line makes some of the samples different programs. `is_fenced`: some of them stand in a fence.
    """
    known = [(yaml.safe_load(task.shown), task) for task in tasks]

    def answer(body: dict[str, Any]) -> str:
        turns = [message["content"] for message in body["messages"] if message["role"] != "system"]
        asked = yaml.safe_load(turns[0])["task"]
        task = next(task for shown, task in known if shown == asked)
        program = task.impl or ""
        if task.id == WRONG:
            program = program.replace("1.0f", "2.0f").replace("(1.0 +", "(2.0 +").replace("(1) +", "(2) +")
        if task.id == MENDED and len(turns) == 1:
            program = _drop_semicolon(program)
        number = body.get("seed", 0) % 3
        text = f"{program.rstrip()}\n" + (f"{COMMENTS[task.target]} {number}\n" if task.target in COMMENTS else "")
        return f"Here:\n```{task.target}\n{text}```\n" if is_fenced and number == 2 else write_reply(text)

    return answer


def _drop_semicolon(program: str) -> str:
    """The first one of the function; of a language without them its first colon."""
    head, brace, rest = program.partition("{")
    return head + brace + rest.replace(";", "", 1) if brace else program.replace("):\n", ")\n", 1)
