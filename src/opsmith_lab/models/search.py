"""The search model: a chat model without a model. The n-th request of a task in a run gets the task's n-th program.

Programs come from the target's own best-first search (`Searched`), which learns from nothing: prompts, demonstrations,
seeds and temperatures have no say. One worker process does it all, since a task's programs come one after another.
When a task has no more programs, the request is answered by ExhaustedError: the sample counts nowhere, and the task is
not tried further in that run.
"""

from __future__ import annotations

import asyncio
from typing import Any

from opsmith.errors import UsageError
from opsmith.models import ExhaustedError, Reply, Request
from opsmith.models.order import Order
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Usage
from opsmith.targets import Target, is_known_elsewhere
from opsmith_lab.models.sampling import check_answer
from opsmith_lab.models.searching import Searcher
from opsmith_lab.models.workers import Workers


class SearchModel:
    """One instance serves one event loop."""

    name = "search"
    context_window: int | None = None
    is_language_model = False

    def __init__(self, target: Target) -> None:
        self._searcher = Searcher(target)
        self._remote = is_known_elsewhere(target)  # else it is searched in this process
        self._workers = Workers(self.name, ["opsmith_lab.models.searching", target.name], 1)

    async def complete(self, request: Request) -> Reply:
        """Raises ExhaustedError when there are no more programs, ProviderError when the worker dies."""
        messages = [(message.role, message.content) for message in request.messages]
        answer = await self._answer_request({"messages": messages, "attempt": request.attempt})
        if "exhausted" in answer:
            raise ExhaustedError(f"model 'search': there is no program number {request.attempt} for this task")
        check_answer("search", answer)
        texts = tuple(answer["texts"]) * request.n
        tokens = sum(estimate_tokens(message.content) for message in request.messages)
        usage = Usage(1, tokens, sum(map(estimate_tokens, texts)), 0, 0.0)
        return Reply(texts, usage, self.name, ("stop",) * len(texts))

    async def close(self) -> None:
        """End the worker."""
        await self._workers.close()

    async def _answer_request(self, body: dict[str, Any]) -> dict[str, Any]:
        if self._remote:
            return await self._workers.ask_worker(body)
        await asyncio.sleep(0)
        return self._searcher.answer_request(body)


def make_search(order: Order) -> SearchModel:
    """The model that the settings of a run ask for. Raises UsageError."""
    order.refuse_base_url()
    if order.settings.method.repair:
        raise UsageError("--repair: given with model 'search', which reads no errors; expected 0; try: leave it out")
    return SearchModel(order.require_target("search"))
