"""Replies at half the price, by a provider's batch API: many requests at once, and hours of waiting.

`BatchModel` gathers what is asked until nothing new comes for a moment, hands it in as one batch and looks after it
from time to time. Which request lies in which batch is told to a ledger before anybody waits, so that a run that was
stopped picks its batches up instead of paying for them again. A request is named by the hash of its content (its seed
is part of it). What came back with an error or without an answer is handed in again by the next session; a request that
failed only for a parameter which the model refuses, or for pictures, at once and without them.

Two gaps. Killed between a provider's "accepted" and the ledger's commit, that batch is paid for and not found again. A
batch of which no answer says whether it was accepted is not handed in again by this session, but by the next one: who
waits for it is told to look at the provider's list of batches before.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from opsmith.models import Ledger, Reply, Request
from opsmith.models.answers import holds_answer
from opsmith.models.attempt import Failure
from opsmith.models.retry import make_provider_error
from opsmith.models.sdk import fit_reply
from opsmith.records import content_hash, dumps

DISCOUNT = 0.5  # OpenAI and Anthropic, 2026-11: batches cost half
MOST = 10_000  # requests of one batch; both providers take more
log = logging.getLogger("opsmith.models")

Result = tuple[str, Reply | Failure]


class BatchApi(Protocol):
    """A provider's batch endpoint. Raises ProviderError when it cannot be reached or refuses."""

    name: str
    context_window: int | None

    async def submit_requests(self, requests: Mapping[str, Request]) -> str:
        """Hand in requests by name; the batch's id."""

    async def has_ended(self, batch: str) -> bool:
        """Whether nothing more will come of it."""

    def read_results(self, batch: str) -> AsyncIterator[Result]:
        """What came of a batch that has ended."""

    def learn_refusal(self, failure: Failure, request: Request) -> bool:
        """Whether a request failed for a parameter, or pictures, that are left out from now on."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Pace:
    """Seconds: without a new request until a batch is handed in; between two looks at it."""

    linger_s: float = 2.0
    poll_s: float = 30.0


class BatchModel:
    """A chat model whose replies take hours. Belongs to one event loop."""

    is_language_model = True

    def __init__(self, api: BatchApi, pace: Pace = Pace()) -> None:
        self.name = api.name
        self.context_window = api.context_window
        self._api, self._pace = api, pace
        self._ledger: Ledger | None = None
        self._batch_of: dict[str, str] = {}  # by the name of a request
        self._arrived: dict[str, Reply | Failure] = {}  # before anybody asked
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._queue: dict[str, Request] = {}
        self._requests: dict[str, Request] = {}  # of those who wait
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[str] = set()
        self._hand_in: asyncio.TimerHandle | None = None

    def use_ledger(self, ledger: Ledger) -> None:
        """Keep account there from now on, and know what earlier sessions handed in."""
        self._ledger = ledger
        self._batch_of = ledger.list_batches(self.name)

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError when the batch, or this request in it, failed."""
        name = self._choose_name(request)
        self._requests[name] = request
        future = self._waiting[name] = asyncio.get_running_loop().create_future()
        if name in self._arrived:
            self._deliver_result(name, self._arrived.pop(name))
        elif name in self._batch_of:
            self._watch_batch(self._batch_of[name])
        else:
            self._enqueue_request(name, request)
        try:
            return fit_reply(request, await future)
        finally:
            for waiters in (self._waiting, self._queue, self._requests):
                waiters.pop(name, None)

    async def close(self) -> None:
        """Leave the batches to the provider; the same run finds them again."""
        if self._hand_in is not None:
            self._hand_in.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._api.close()

    def _choose_name(self, request: Request) -> str:
        """Equal requests that wait at the same time are numbered."""
        name = content_hash(self.name, dumps(request))[:40]
        number = 0
        while f"{name}-{number}" in self._waiting:
            number += 1
        return f"{name}-{number}"

    def _enqueue_request(self, name: str, request: Request) -> None:
        self._queue[name] = request
        if self._hand_in is not None:
            self._hand_in.cancel()
        if len(self._queue) >= MOST:
            self._start_task(self._submit_queue())
        else:
            loop = asyncio.get_running_loop()
            self._hand_in = loop.call_later(self._pace.linger_s, lambda: self._start_task(self._submit_queue()))

    async def _submit_queue(self) -> None:
        requests, self._queue = self._queue, {}
        if not requests:
            return
        with self._report_errors(list(requests)):
            batch = await self._api.submit_requests(requests)
            if self._ledger is not None:
                await self._ledger.note_submitted(self.name, batch, list(requests))
            log.info("%s: batch %s of %d requests handed in", self.name, batch, len(requests))
            self._batch_of |= dict.fromkeys(requests, batch)
            self._watch_batch(batch)

    def _watch_batch(self, batch: str) -> None:
        if batch not in self._watched:
            self._watched.add(batch)
            self._start_task(self._follow_batch(batch))

    async def _follow_batch(self, batch: str) -> None:
        """Wait for a batch, and give everybody what came for him."""
        names = [name for name, lies_in in self._batch_of.items() if lies_in == batch]
        lost: dict[str, Reply | Failure] = dict.fromkeys(
            names, Failure(f"batch {batch} ended without a reply to this request", status=500)
        )
        with self._report_errors(lost):
            while not await self._api.has_ended(batch):
                await asyncio.sleep(self._pace.poll_s)
            async for name, received in self._api.read_results(batch):
                if name not in lost:  # it failed here before, and was handed in again
                    continue
                result = received
                if isinstance(received, Reply) and name in self._requests:  # somebody waits for it already
                    result = fit_reply(self._requests[name], received)
                if isinstance(result, Failure) or not holds_answer(result):
                    lost[name] = result
                else:
                    del lost[name]
                    self._deliver_result(name, result)
            await self._settle_lost(batch, lost)

    async def _settle_lost(self, batch: str, lost: Mapping[str, Reply | Failure]) -> None:
        """Requests of which no answer came; who waits is told when the ledger knows."""
        if self._ledger is not None and lost:
            await self._ledger.note_failed(batch, sorted(lost))
        for name, result in lost.items():
            if isinstance(result, Reply) or not self._requeue_request(name, result):
                self._deliver_result(name, result)

    def _requeue_request(self, name: str, failure: Failure) -> bool:
        """Whether the request is handed in anew: it held a parameter that is left out by now."""
        if name not in self._requests or not self._api.learn_refusal(failure, self._requests[name]):
            return False
        self._batch_of.pop(name, None)
        self._enqueue_request(name, self._requests[name])
        return True

    def _deliver_result(self, name: str, result: Reply | Failure) -> None:
        future = self._waiting.get(name)
        if future is None:
            self._arrived.setdefault(name, result)
        elif future.done():
            return
        elif isinstance(result, Failure):
            future.set_exception(make_provider_error(f"{self.name}, batch", result, 1))
        else:
            cost = result.usage.cost_usd
            usage = replace(result.usage, cost_usd=None if cost is None else cost * DISCOUNT)
            future.set_result(replace(result, usage=usage))

    @contextlib.contextmanager
    def _report_errors(self, names: Collection[str]) -> Iterator[None]:
        """Who waits for these requests is told when nothing can come of them, by the provider's fault or ours."""
        try:
            yield
        except Exception as error:
            self._watched -= {self._batch_of[name] for name in names if name in self._batch_of}
            for name in names:
                future = self._waiting.get(name)
                if future is not None and not future.done():
                    future.set_exception(error)

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
