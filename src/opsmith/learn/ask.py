"""The text of an agent's reply. From the store or from the model, and it is stored before anybody reads it.

Where the provider keeps prompts, the first request of a task goes ahead, and the others find its prompt there: all
samples of a task share it in a round. The very first one goes ahead of all: they share the system prompt.
`completions` samples of one task and temperature are asked for by one request of the proposer. Each of them
has rows of its own, all committed together, so that whatever follows (judging, resuming, counting) is per sample. Where
fewer texts come than were asked for, these are stored first, and then the rest is asked for as a request of its own.
What came in place of an answer is paid for and stored too, but as nobody's reply: its sample stays unjudged, and a
later session asks again while the round is open.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.errors import ProviderError
from opsmith.learn.session import RunSession
from opsmith.models import Caching, ChatModel, ExhaustedError, Message, Reply, Request, ToolOffer
from opsmith.models.answers import describe_missing_answer
from opsmith.models.limits import WaitingLine
from opsmith.models.tokens import estimate_tokens
from opsmith.records import Boundary, Usage
from opsmith.store import Row
from opsmith.store.rows import FUNCTIONAL, PROPOSER, UNANSWERED, SampleKey, in_turn, prompt_rows, reply_rows

PATIENCE_S = 60.0  # for the request that goes ahead
Group = tuple[SampleKey, ...]


class UnjudgedError(Exception):
    """A sample has no verdict, for a reason that is not the candidate's."""

    def __init__(self, charged_to: Boundary | None, message: str) -> None:
        super().__init__(message)
        self.charged_to = charged_to


class UnansweredError(UnjudgedError):
    """A reply came, and it holds no answer."""


class HaltedError(Exception):
    """The sample was not asked for, because the session is ending."""


@dataclass(frozen=True)
class AgentQuestion:
    """What an agent is asked."""

    messages: tuple[Message, ...]
    prompt: str  # the name of the messages in the store
    tools: tuple[ToolOffer, ...] = ()
    may_call: bool = True  # False: the tools are named since they were called before, and none may be called now

    @property
    def speaks_of_tools(self) -> bool:
        """Whether a call of a tool is an answer."""
        return bool(self.tools)


class Asking:
    """The requests of one round; at most `at_once` are under way."""

    def __init__(
        self,
        session: RunSession,
        groups: Mapping[SampleKey, Group],
        replies: dict[str, Reply],
        attempts: Mapping[SampleKey, int],
        at_once: int,
    ) -> None:
        """`groups`: the samples to be asked for, each with those of its request; `replies`: received by a session that
        was killed before it could judge them, by the request's id."""
        self._session = session
        self._replies = replies
        self._attempts = attempts
        self._slots = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(max(1, at_once)))  # by proposer
        self._lines = defaultdict[str, WaitingLine](WaitingLine)  # before them
        self._groups = groups
        self._shared: dict[Group, asyncio.Task[None]] = {}
        self._ahead: dict[tuple[str, str], asyncio.Event] = {}  # by model and task: has the first one its answer?

    async def request_text(self, key: SampleKey, agent: str, messages: tuple[Message, ...], prompt: str) -> str:
        """The text of an agent's reply; `prompt` names the messages in the store. Raises UnjudgedError, HaltedError."""
        return (await self.request_reply(key, agent, AgentQuestion(messages, prompt))).texts[0]

    async def request_reply(self, key: SampleKey, agent: str, question: AgentQuestion) -> Reply:
        """An agent's reply, which holds an answer: at least one text. Raises UnjudgedError, HaltedError."""
        reply = self._replies.pop(key.request_id(agent), None)
        if reply is None and agent == PROPOSER:
            reply = await self._share_request(key, question)
        elif reply is None:
            [reply] = await self._send_request((key,), agent, question)
        if missing := describe_missing_answer(reply):
            raise UnansweredError(Boundary.PROVIDER, f"{self._session.model_for(agent, key.model).name}: {missing}")
        return reply if reply.texts else replace(reply, texts=("",))

    async def _share_request(self, key: SampleKey, question: AgentQuestion) -> Reply:
        """A sample's part of what is asked for its whole group, once."""
        group = self._groups[key]
        if len(group) == 1:
            return (await self._in_turn(group, question))[0]
        if group not in self._shared:
            self._shared[group] = asyncio.create_task(self._fetch_group(group, question))
        try:
            await self._shared[group]
        except (UnjudgedError, HaltedError):
            if key.id not in self._replies:  # a later request for the rest failed: what came before it counts
                raise
        return self._replies.pop(key.id)

    async def _fetch_group(self, group: Group, question: AgentQuestion) -> None:
        """Ask until all of a group have replies; each is laid where its sample takes it, in the store by then."""
        missing = group
        while missing:
            replies = await self._in_turn(missing, question)
            self._replies |= {key.id: reply for key, reply in zip(missing, replies, strict=False)}
            missing = missing[len(replies) :]

    async def _in_turn(self, group: Group, question: AgentQuestion) -> list[Reply]:
        """The proposer's request for a group, after the first one of its task where that saves money."""
        first = group[0].model, group[0].task
        if first in self._ahead:
            await _wait_for_answer(self._ahead[first])
        elif keeps_prompt(self._session.model_for(PROPOSER, group[0].model), question.messages):
            very_first = next((event for (model, _), event in self._ahead.items() if model == first[0]), None)
            self._ahead[first] = asyncio.Event()
            try:
                if very_first is not None:
                    await _wait_for_answer(very_first)
                return await self._send_request(group, PROPOSER, question)
            finally:
                self._ahead[first].set()
        return await self._send_request(group, PROPOSER, question)

    async def _send_request(self, group: Group, agent: str, question: AgentQuestion) -> list[Reply]:
        """A reply for each sample of the group, or for its first ones if less came; in the store by then."""
        settings, first, model = self._session.settings, group[0], self._session.model_for(agent, group[0].model)
        seed, attempt = first.seed(settings.seed, agent), self._attempts[first]
        limit, reasoning = settings.method.max_tokens, settings.teamwork.thinking.reasoning
        named = (question.tools, reasoning, question.may_call)
        request = Request(question.messages, len(group), first.temperature, limit, seed, attempt, *named)
        async with self._lines[first.model].take_turn(request.messages):
            await self._slots[first.model].acquire()
        try:
            await self._session.running.wait()  # inside: who waits for a slot must not start after a pause began
            started = time.monotonic()
            reply = await self._complete_request(first.model, model, request)
        finally:
            self._slots[first.model].release()
        if not question.speaks_of_tools:  # nobody runs what was never offered: it says nothing
            reply = replace(reply, calls=(), raw=())
        seconds = time.monotonic() - started
        replies = split_reply(reply) if len(group) > 1 and reply.texts else [reply]
        prompt, rows = question.prompt, list[Row]()
        if reply.blind and any(message.images for message in question.messages):
            prompt, rows = prompt_rows([replace(message, images=()) for message in question.messages])  # what it saw
        for key, share in zip(group, replies, strict=False):
            # one without an answer leaves the agent's place free for a later one
            author = in_turn(UNANSWERED, self._session.number) if describe_missing_answer(share) else agent
            rows += reply_rows(key, author, prompt, request, share, seconds, self._session.models.name_of_role(agent))
        await asyncio.wrap_future(self._session.store.put(rows))
        for share in replies:
            self._session.note_reply(describe_missing_answer(share), model)
        return replies

    async def _complete_request(self, proposer: str, model: ChatModel, request: Request) -> Reply:
        session = self._session
        if not session.may_ask(proposer):
            raise HaltedError
        session.asking += 1
        try:
            reply = await model.complete(request)
        except ExhaustedError as error:
            raise UnjudgedError(None, str(error)) from error
        except ProviderError as error:
            session.note_failure(error, model)
            raise UnjudgedError(Boundary.PROVIDER, str(error)) from error
        finally:
            session.asking -= 1
        session.count_usage(reply.usage, model)
        return reply


async def _wait_for_answer(ahead: asyncio.Event) -> None:
    """The request ahead has its answer, or takes too long for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await ahead.wait()


def keeps_prompt(model: ChatModel, messages: Sequence[Message]) -> bool:
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
    first = {task: place for place, task in reversed(list(enumerate(key.task for key in keys)))}
    order = sorted(range(len(keys)), key=lambda place: place - places if first[keys[place].task] == place else place)
    return [keys[place] for place in order]


def group_samples(keys: Sequence[SampleKey], size: int) -> dict[SampleKey, Group]:
    """Which samples share a request: those of one task and temperature whose numbers lie in one block of `size`.

    The blocks are the same in a run that was resumed, and so is each request. Who makes a right program better is asked
    alone: it has a prompt of its own.
    """
    blocks: dict[tuple[str, float, int, str], list[SampleKey]] = {}
    for key in keys:
        block = key.number // (size if key.phase == FUNCTIONAL else 1)
        blocks.setdefault((key.task, key.temperature, block, key.model), []).append(key)
    return {key: tuple(block) for block in blocks.values() for key in block}


def split_reply(reply: Reply) -> list[Reply]:
    """One reply for each text. The first answer has the requests, the input and the cost; output is shared by length,
    which each says of itself where there are several.

    >>> both = split_reply(Reply(("abc", "a"), Usage(1, 100, 9, 60, 0.5), "m", ("stop", "length")))
    >>> [part.usage.output_tokens for part in both], both[1].usage.cost_usd, both[1].finish
    ([7, 2], 0.0, ('length',))
    """
    total, lengths = reply.usage, [len(text) for text in reply.texts]
    ends, thoughts = _split_total(lengths, total.output_tokens), _split_total(lengths, total.reasoning_tokens)
    nothing = Usage(cost_usd=None if total.cost_usd is None else 0.0)
    replies = [
        replace(
            reply,
            texts=(text,),
            usage=nothing,
            finish=reply.finish[place : place + 1],
            calls=reply.calls[place : place + 1],
            raw=reply.raw[place : place + 1],
            shared=len(lengths) if len(lengths) > 1 else 0,
        )
        for place, text in enumerate(reply.texts)
    ]
    payer = next((place for place, share in enumerate(replies) if not describe_missing_answer(share)), 0)
    bills = [
        replace(
            total if place == payer else nothing,
            output_tokens=ends[place + 1] - ends[place],
            reasoning_tokens=thoughts[place + 1] - thoughts[place],
        )
        for place in range(len(replies))
    ]
    return [replace(share, usage=bill) for share, bill in zip(replies, bills, strict=True)]


def _split_total(lengths: Sequence[int], total: int) -> list[int]:
    """Where the part of each ends, from 0 to `total`; empty texts have an equal part if all are empty."""
    weights = lengths if sum(lengths) else [1] * len(lengths)
    ends = [0]
    for count in range(1, len(weights) + 1):
        ends.append(round(total * sum(weights[:count]) / sum(weights)))
    return ends
