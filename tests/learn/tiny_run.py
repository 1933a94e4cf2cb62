"""Small real things for the tests of learning: a chat model over the tiny target's sampler, a judge, tasks.

Run as a program it is one command-line run, to be killed: `python tiny_run.py STORE PAUSE_S [COMPLETIONS]`.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tiny_target import TINY, TinyPolicy, register, tiny_task  # noqa: E402

from opsmith.agents.prompt import read_prompt  # noqa: E402
from opsmith.errors import ProviderError  # noqa: E402
from opsmith.judging.verifier import verify  # noqa: E402
from opsmith.learn.events import Event, RoundStarted  # noqa: E402
from opsmith.learn.loop import improve  # noqa: E402
from opsmith.models import Message, Reply, Request  # noqa: E402
from opsmith.models.tokens import estimate_tokens  # noqa: E402
from opsmith.records import Level, Task, Usage, Verdict  # noqa: E402
from opsmith.settings import Settings  # noqa: E402
from opsmith.store import Store  # noqa: E402

register()

TASKS = [
    tiny_task("sum_0", "x y + z +"),
    tiny_task("sum_1", "x y + z + u +"),
    tiny_task("sum_2", "x y + z + u + v +"),
    tiny_task("mul_0", "x x *"),
    tiny_task("mul_1", "x y * z + x *"),
    tiny_task("max_0", "x y max x y * +"),
]
SETTINGS = Settings(samples=12, temperatures=(0.4, 1.0), concurrency=4, seed=1)


@lru_cache(maxsize=64)
def fitted(messages: tuple[Message, ...]) -> tuple[Task, TinyPolicy]:
    """What a prompt asks for, and a policy fitted on its examples."""
    parts = read_prompt(messages)
    examples = [(TINY.read_task(text, "example"), program) for text, program in parts.examples]
    return TINY.read_task(parts.task, "task"), TINY.make_sampler().fit_policy(examples)


class TinyModel:
    """Answers as a language model would, by sampling a policy fitted on the programs of the prompt."""

    name = "tiny-sampler"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, pause: float = 0.0, price: float | None = 0.0) -> None:
        self.pause = pause
        self.price = price  # of one request, in USD
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        await asyncio.sleep(self.pause)
        assert request.seed is not None
        texts = tuple(self.answer(replace(request, n=1, seed=request.seed + at)) for at in range(request.n))
        prompt = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, prompt, sum(map(estimate_tokens, texts)), 0, self.price)
        return Reply(texts, usage, self.name, ("stop",) * request.n)

    def answer(self, request: Request) -> str:
        if "input_impl:" in request.messages[1].content:
            program = request.messages[1].content.partition("input_impl: |\n")[2].strip()
            return "impl: |\n  " + (TINY.repair_program(TASKS[0], program) or program).replace("\n", "\n  ")
        rng = random.Random(request.seed)
        if rng.random() < 0.1:
            return "I cannot write this program!"
        task, policy = fitted(request.messages)
        return f"Here it is.\n```yaml\nimpl: |\n  {policy.sample_program(task, request.temperature, rng)}```\n"

    async def close(self) -> None:
        """Nothing is open."""


class FaultyModel(TinyModel):
    """A provider that has no answer for a share of the requests, or for those after the first few."""

    def __init__(self, share: float = 0.0, dies_after: int | None = None, status: int | None = 500) -> None:
        super().__init__()
        self.share = share
        self.dies_after = dies_after
        self.status = status

    async def complete(self, request: Request) -> Reply:
        dead = self.dies_after is not None and len(self.asked) >= self.dies_after
        if dead or random.Random(f"{request.seed} fault").random() < self.share:
            self.asked.append(request)
            raise ProviderError(f"server: HTTP {self.status} after 3 tries", status=self.status, retryable=True)
        return await super().complete(request)


class InProcess:
    """The verifier, in this process: the tiny language runs no author's code."""

    def __init__(self) -> None:
        self.judged = 0

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        self.judged += 1
        return verify(task, source)


def main() -> None:
    """Prints `started`, then how the run ended. Every request's seed is added to STORE.asked."""
    path, pause, *more = sys.argv[1], float(sys.argv[2]), *map(int, sys.argv[3:])
    settings = SETTINGS.replace(completions=more[0] if more else 1)
    with open(f"{path}.asked", "a", buffering=1) as log, Store.open(path) as store:

        class Logged(TinyModel):
            async def complete(self, request: Request) -> Reply:
                log.write(f"{request.seed}\n")
                return await super().complete(request)

        def watch(event: Event) -> None:
            if isinstance(event, RoundStarted):
                print("started", flush=True)

        result = improve(TASKS, Logged(pause), settings, store, judge=InProcess(), on_event=watch)
        print(result.end, flush=True)


if __name__ == "__main__":
    main()
