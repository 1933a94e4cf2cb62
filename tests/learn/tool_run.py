"""A run whose model calls tools, for the tests: what it says depends on what it is sent alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from tiny_run import InProcess, TinyModel
from tiny_target import tiny_task

from opsmith.models import Message, Reply, Request, ToolCall
from opsmith.records import Level, Task, Usage, Verdict
from opsmith.settings import Settings

RIGHT, WRONG = "x y + z +", "x y + z *"
TASKS = [tiny_task("sum_0", RIGHT)]
SETTINGS = Settings(
    samples=1, temperatures=(0.7,), agents="single", tools="all", seed=1, concurrency=2, max_rounds=1, tool_calls=4
)

Turn = tuple[str, Sequence[tuple[str, str, str]]]  # text, calls as (id, name, arguments)


def write_answer(program: str) -> str:
    return f"impl: |\n  {program}\n"


def call(name: str, program: str, identity: str = "a") -> tuple[str, str, str]:
    return identity, name, json.dumps({"program": program})


class CallingModel(TinyModel):
    """Says what a script has for the turn; the last entry is said again for ever."""

    name = "calling"
    is_language_model = True

    def __init__(self, script: Sequence[Turn], price: float | None = 0.0) -> None:
        super().__init__(price=price)
        self.script = script

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        turn = sum(message.role == "assistant" for message in request.messages)
        text, listed = self.script[min(turn, len(self.script) - 1)]
        calls = tuple(ToolCall(*entry) for entry in listed)
        usage = Usage(1, 100, 10, 0, self.price)
        raw = (json.dumps({"thoughts": turn}),) if calls else ()
        return Reply((text,), usage, self.name, ("tool_calls" if calls else "stop",), calls=(calls,), raw=raw)


class CountingJudge(InProcess):
    """Notes what it judged for samples and tools."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        if level is Level.CHEAP:
            self.sources.append(source)
        return await super().judge(task, source, level)


def list_results(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages if message.role == "tool"]


Script = Sequence[Turn]
in_turn: Script = [("I look.", [call("check", WRONG)]), ("", [call("try", WRONG)]), (write_answer(RIGHT), [])]
without_words: Script = [("", [call("try", WRONG), call("try", RIGHT, "b")]), ("Done!", [])]
endless: Script = [("", [call("check", RIGHT)])]
broken: Script = [
    ("", [("a", "check", '{"program": '), ("a", "check", "[]"), ("", "sing", "{}"), ("b", "check", "x" * 2**20)]),
    (write_answer(RIGHT), []),
]
Make = Callable[[], CallingModel]
