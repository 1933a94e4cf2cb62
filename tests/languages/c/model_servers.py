"""Model servers whose answers are programs in C: right ones, wrong ones, and some that are mended when asked to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from models.servers import AnthropicServer, OpenAIServer

from opsmith.records import Task

SERVERS = {"openai/served": OpenAIServer, "anthropic/served": AnthropicServer}
MENDED, WRONG = "softmax", "scale_shift_silu"  # whose first answers do not compile; whose answers are all wrong


def write_reply(program: str) -> str:
    return "impl: |\n" + "".join(f"  {line}\n" for line in program.splitlines())


def answer_with_programs(tasks: Iterable[Task]) -> Any:
    """A server's handler: for each of the tasks its own program, spoiled where it is MENDED or WRONG."""
    known = [(yaml.safe_load(task.shown), task) for task in tasks]

    def answer(body: dict[str, Any]) -> str:
        turns = [message["content"] for message in body["messages"] if message["role"] != "system"]
        asked = yaml.safe_load(turns[0])["task"]
        task = next(task for shown, task in known if shown == asked)
        program = task.impl or ""
        if task.id == WRONG:
            program = program.replace("1.0f", "2.0f")
        if task.id == MENDED and len(turns) == 1:
            program = _drop_semicolon(program)
        return write_reply(f"{program.rstrip()}\n{_number_program(task, body)}")

    return answer


def _drop_semicolon(program: str) -> str:
    """The first one of the function."""
    head, brace, rest = program.partition("{")
    return head + brace + rest.replace(";", "", 1)


def _number_program(task: Task, body: dict[str, Any]) -> str:
    """A last line that makes some of the samples different programs."""
    return f"// {body.get('seed', 0) % 3}\n" if task.target == "c" else ""
