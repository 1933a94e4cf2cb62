"""What the tests of the models share: a model of a server, one call, a retry policy whose clock is the test's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from opsmith.models import Message, Reply, Request
from opsmith.models.retry import Retry
from opsmith.models.table import get_model
from opsmith.settings import Settings

ASKED = Request((Message("system", "You write programs."), Message("user", "task: {}")))
CANARY = "sk-canary-0123456789abcdef"


@dataclass
class FakeTime:
    """A clock that only sleeping moves; `slept` keeps every wait in seconds."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def retry(self, **changes: Any) -> Retry:
        return Retry(sleep=self.sleep, clock=lambda: self.now, jitter=lambda: 0.5, **changes)


def ask(name: str, url: str | None, request: Request = ASKED, retry: Retry | None = None, times: int = 1) -> Reply:
    """The last reply of `times` calls of one model."""

    async def go() -> Reply:
        model = get_model(Settings(model=name, base_url=url), retry=retry or FakeTime().retry())
        try:
            for _ in range(times):
                reply = await model.complete(request)
            return reply
        finally:
            await model.close()

    return asyncio.run(go())
