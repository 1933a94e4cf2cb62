"""The embedded model: a chat model that needs no key, no network and no weights. It is no language model.

What is built in is a target's program sampler (grammar, types, a cost prior); everything else it learns from the text
of one prompt, by `sampling`. Sampling is computing, so it runs in processes of its own (`workers`).
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
from opsmith_lab.models.sampling import PromptSampler, answer_request, check_answer
from opsmith_lab.models.workers import Workers


class EmbeddedModel:
    """`workers` processes, started when first needed. One instance serves one event loop."""

    name = "embedded"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, target: Target, noise: float = 0.0, workers: int | None = None) -> None:
        self._session = PromptSampler(target, noise)
        self._remote = is_known_elsewhere(target)  # else it is sampled in this process
        self._workers = Workers(self.name, ["opsmith_lab.models.sampling", target.name, str(noise)], workers)

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when a worker dies or cannot be started, or the prompt's task cannot be read."""
        seed = secrets.randbits(63) if request.seed is None else request.seed
        body = {
            "messages": [(message.role, message.content) for message in request.messages],
            "temperature": request.temperature,
            "seed": seed,
            "n": request.n,
        }
        texts = _read_texts(await self._answer_request(body))
        tokens = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, tokens, sum(map(estimate_tokens, texts)), 0, 0.0)
        return Reply(tuple(texts), usage, self.name, ("stop",) * len(texts))

    async def close(self) -> None:
        """End the workers."""
        await self._workers.close()

    async def _answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._remote:
            return await self._workers.ask_worker(body)
        await asyncio.sleep(0)  # not in a thread: CPython 3.11 cannot parse in two threads at once
        return answer_request(self._session, body)


def make_embedded(order: Order) -> EmbeddedModel:
    """The model that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    return EmbeddedModel(order.require_target("sample"), order.settings.method.noise, order.settings.place.workers)


def _read_texts(answer: dict[str, Any]) -> list[str]:
    check_answer("embedded", answer)
    return list(answer["texts"])
