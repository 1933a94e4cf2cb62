"""How is the text of an agent's reply got? From the store or from the model, and it is stored before anybody reads it.

Where the provider keeps prompts, the first request of a task goes ahead, and the others find its prompt there: all
samples of a task share it in a round. The very first one goes ahead of all: they share the system prompt.
`settings.completions` samples of one task and temperature are asked for by one request of the proposer. Each of them
has rows of its own, all committed together, so that whatever follows (judging, resuming, counting) is per sample. Where
fewer texts come than were asked for, these are stored first, and then the rest is asked for as a request of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opsmith.agents.prompt import estimate_tokens
from opsmith.errors import ProviderError
from opsmith.learn.session import Session
from opsmith.models import Caching, ChatModel, ExhaustedError, Message, Reply, Request
from opsmith.records import Boundary, Usage
from opsmith.store.rows import PROPOSER, SampleKey, reply_rows

PATIENCE_S = 60.0  # for the request that goes ahead
Group = tuple[SampleKey, ...]


class UnjudgedError(Exception):
    """A sample has no verdict, for a reason that is not the candidate's."""

    def __init__(self, charged_to: Boundary | None, message: str) -> None:
        super().__init__(message)
        self.charged_to = charged_to


class HaltedError(Exception):
    """The sample was not asked for, because the session is ending."""


class Asking:
    """The requests of one round; at most `at_once` are under way."""

    def __init__(
        self,
        session: Session,
        todo: Sequence[SampleKey],
        replies: dict[str, Reply],
        attempts: Mapping[SampleKey, int],
        at_once: int,
    ) -> None:
        """`replies`: received by a session that was killed before it could judge them, by the request's id."""
        self._session = session
        self._replies = replies
        self._attempts = attempts
        self._slots = asyncio.Semaphore(max(1, at_once))
        self._groups = groups([key for key in todo if key.id not in replies], session.settings.completions)
        self._shared: dict[Group, asyncio.Task[None]] = {}
        self._ahead: dict[str, asyncio.Event] = {}  # by task: whether its first request has its answer

    async def text(self, key: SampleKey, agent: str, messages: tuple[Message, ...], prompt: str) -> str:
        """The text of an agent's reply; `prompt` names the messages in the store. Raises UnjudgedError, HaltedError."""
        reply = self._replies.pop(key.request_id(agent), None)
        if reply is None and agent == PROPOSER:
            reply = await self._share(key, messages, prompt)
        elif reply is None:
            [reply] = await self._ask((key,), agent, messages, prompt)
        return reply.texts[0] if reply.texts else ""

    async def _share(self, key: SampleKey, messages: tuple[Message, ...], prompt: str) -> Reply:
        """A sample's part of what is asked for its whole group, once."""
        group = self._groups[key]
        if len(group) == 1:
            return (await self._in_turn(group, messages, prompt))[0]
        if group not in self._shared:
            self._shared[group] = asyncio.create_task(self._fetch(group, messages, prompt))
        try:
            await self._shared[group]
        except (UnjudgedError, HaltedError):
            if key.id not in self._replies:  # a later request for the rest failed: what came before it counts
                raise
        return self._replies.pop(key.id)

    async def _fetch(self, group: Group, messages: tuple[Message, ...], prompt: str) -> None:
        """Ask until all of a group have replies; each is laid where its sample takes it, in the store by then."""
        left = group
        while left:
            found = await self._in_turn(left, messages, prompt)
            self._replies |= {key.id: reply for key, reply in zip(left, found, strict=False)}
            left = left[len(found) :]

    async def _in_turn(self, group: Group, messages: tuple[Message, ...], prompt: str) -> list[Reply]:
        """The proposer's request for a group, after the first one of its task where that saves money."""
        task = group[0].task
        if task in self._ahead:
            await _passed(self._ahead[task])
        elif keeps(self._session.model, messages):
            very_first = next(iter(self._ahead.values()), None)
            self._ahead[task] = asyncio.Event()
            try:
                if very_first is not None:
                    await _passed(very_first)
                return await self._ask(group, PROPOSER, messages, prompt)
            finally:
                self._ahead[task].set()
        return await self._ask(group, PROPOSER, messages, prompt)

    async def _ask(self, group: Group, agent: str, messages: tuple[Message, ...], prompt: str) -> list[Reply]:
        """A reply for each sample of the group, or for its first ones if less came; in the store by then."""
        settings, first = self._session.settings, group[0]
        seed, attempt = first.seed(settings.seed, agent), self._attempts[first]
        request = Request(messages, len(group), first.temperature, settings.max_tokens, seed, attempt)
        async with self._slots:
            await self._session.running.wait()  # inside: who waits for a slot must not start after a pause began
            started = time.monotonic()
            reply = await self._completed(request)
        seconds = time.monotonic() - started
        found = shares(reply) if len(group) > 1 and reply.texts else [reply]
        parts = zip(group, found, strict=False)
        rows = [row for key, part in parts for row in reply_rows(key, agent, prompt, request, part, seconds)]
        await asyncio.wrap_future(self._session.store.put(rows))
        return found

    async def _completed(self, request: Request) -> Reply:
        session = self._session
        if not session.may_ask():
            raise HaltedError
        try:
            reply = await session.model.complete(request)
        except ExhaustedError as error:
            raise UnjudgedError(None, str(error)) from error
        except ProviderError as error:
            session.failed(error)
            raise UnjudgedError(Boundary.PROVIDER, str(error)) from error
        session.count(reply.usage)
        return reply


async def _passed(ahead: asyncio.Event) -> None:
    """The request ahead has its answer, or takes too long for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await ahead.wait()


def keeps(model: ChatModel, messages: Sequence[Message]) -> bool:
    """Whether the model's provider keeps this prompt."""
    if not isinstance(model, Caching) or model.caches_from is None:
        return False
    return sum(estimate_tokens(message.content) for message in messages) >= model.caches_from


def firsts_early(keys: Sequence[SampleKey], places: int) -> list[SampleKey]:
    """The samples, the first one of each task moved up: the rest of its task need not wait for it when they come.

    >>> keys = [SampleKey("r", 0, task, 1.0, number) for task in "ab" for number in range(3)]
    >>> [key.task for key in firsts_early(keys, 2)]
    ['a', 'a', 'b', 'a', 'b', 'b']
    """
    first = {task: at for at, task in reversed(list(enumerate(key.task for key in keys)))}
    order = sorted(range(len(keys)), key=lambda at: at - places if first[keys[at].task] == at else at)
    return [keys[at] for at in order]


def groups(keys: Sequence[SampleKey], size: int) -> dict[SampleKey, Group]:
    """Which samples share a request: those of one task and temperature whose numbers lie in one block of `size`.

    The blocks are the same in a run that was resumed, and so is each request.
    """
    blocks: dict[tuple[str, float, int], list[SampleKey]] = {}
    for key in keys:
        blocks.setdefault((key.task, key.temperature, key.number // size), []).append(key)
    return {key: tuple(block) for block in blocks.values() for key in block}


def shares(reply: Reply) -> list[Reply]:
    """One reply for each text. The first has the requests, the input and the cost; output is shared out by length.

    >>> both = shares(Reply(("abc", "a"), Usage(1, 100, 9, 60, 0.5), "m", ("stop", "length")))
    >>> [part.usage.output_tokens for part in both], both[1].usage.cost_usd, both[1].finish
    ([7, 2], 0.0, ('length',))
    """
    whole, ends = reply.usage, _ends([len(text) for text in reply.texts], reply.usage.output_tokens)
    nothing = Usage(cost_usd=None if whole.cost_usd is None else 0.0)
    found = []
    for at, text in enumerate(reply.texts):
        usage = replace(whole if at == 0 else nothing, output_tokens=ends[at + 1] - ends[at])
        found.append(Reply((text,), usage, reply.model, reply.finish[at : at + 1]))
    return found


def _ends(lengths: Sequence[int], total: int) -> list[int]:
    """Where the part of each ends, from 0 to `total`; empty texts have an equal part if all are empty."""
    weights = lengths if sum(lengths) else [1] * len(lengths)
    ends = [0]
    for at in range(1, len(weights) + 1):
        ends.append(round(total * sum(weights[:at]) / sum(weights)))
    return ends
