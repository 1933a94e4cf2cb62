"""The chat models `tuner` and `analyst`: programs that rewrite programs, offline. They are no language models.

What they do is `tuning`, in processes of their own (`workers`); all that they know of a request are its messages.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from opsmith.models import Reply, Request
from opsmith.models.order import Order
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Usage
from opsmith.targets import Target, is_known_elsewhere
from opsmith_lab.models.sampling import check_answer
from opsmith_lab.models.tuning import answer_request, make_writer
from opsmith_lab.models.workers import Workers


class TuningModel:
    """One of the two, by its role. One instance serves one event loop."""

    context_window: int | None = None
    is_language_model = False

    def __init__(self, target: Target, role: str, workers: int | None = None) -> None:
        self.name = role
        self._write = make_writer(target, role)
        self._remote = is_known_elsewhere(target)  # else it is done in this process
        self._workers = Workers(role, ["opsmith_lab.models.tuning", target.name, role], workers)

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when a worker dies or cannot be started."""
        body = {
            "messages": [(message.role, message.content) for message in request.messages],
            "temperature": request.temperature,
            "seed": secrets.randbits(63) if request.seed is None else request.seed,
            "n": request.n,
        }
        answer = await self._answer_request(body)
        check_answer(self.name, answer)
        texts = tuple(answer["texts"])
        tokens = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, tokens, sum(map(estimate_tokens, texts)), 0, 0.0)
        return Reply(texts, usage, self.name, ("stop",) * len(texts))

    async def close(self) -> None:
        """End the workers."""
        await self._workers.close()

    async def _answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._remote:
            return await self._workers.ask_worker(body)
        await asyncio.sleep(0)
        return answer_request(self._write, body)


def make_tuning(order: Order) -> TuningModel:
    """The one of the two that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    return TuningModel(order.require_target("rewrite"), order.settings.provider.model, order.settings.place.workers)
