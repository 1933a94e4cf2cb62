"""How are the samples of one round made? One request per task, temperature and number, many at a time.

A reply is committed to the store before it is read. A sample has its verdict or is left unjudged (no reply, or a
failure that is not the candidate's); what the store holds already is not made again. New requests stop on Ctrl-C, when
the money is spent and when the provider keeps failing; requests in flight are finished. The order is the loop's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from opsmith.agents import bare, guardian, repair
from opsmith.agents.guardian import Guarded
from opsmith.agents.prompt import Prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import OpsmithError, ProviderError, VerifierError
from opsmith.learn.events import OnEvent, SampleJudged, Warned
from opsmith.learn.judge import Judge
from opsmith.models import Batched, ChatModel, ExhaustedError, Message, Reply, Request
from opsmith.records import Boundary, Candidate, Outcome, Stage, Task, Usage, Verdict
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import (
    GUARDIAN,
    PROPOSER,
    REPAIR,
    Judged,
    SampleKey,
    failure_row,
    in_turn,
    judged_rows,
    prompt_rows,
    reply_rows,
)
from opsmith.targets import Target
from opsmith.targets.bare import Bare

REFUSED_BY_PROVIDER = (401, 403)  # no later request can succeed either
WARN_AT = (0.5, 0.8)  # shares of the money
FAILURES = 10  # without a reply in between: the provider is down; at least as many as requests in flight


@dataclass
class Session:
    """What one process needs to work on a run, and what it has seen so far."""

    run: str
    settings: Settings
    target: Target
    model: ChatModel
    judge: Judge
    store: Store
    on_event: OnEvent
    spent: Usage  # of the whole run, earlier sessions included
    halt: str = ""  # why no further request may start
    error: OpsmithError | None = None  # what the session ends with once the requests in flight are done
    said: set[str] = field(default_factory=set)
    running: asyncio.Event = field(default_factory=asyncio.Event)  # cleared while the run is paused
    _failures: int = 0

    def warn(self, message: str) -> None:
        if message not in self.said:
            self.said.add(message)
            self.on_event(Warned(message))

    def count(self, usage: Usage) -> None:
        self.spent += usage
        self._failures = 0
        cap, cost = self.settings.max_cost, self.spent.cost_usd
        if cap is not None and cost is None:
            self.warn(f"model {self.model.name}: its price is not known, so --max-cost cannot be kept")
        elif cap is not None and cost is not None:
            for share in [share for share in WARN_AT if cost >= share * cap][-1:]:
                self.warn(f"{share:.0%} of --max-cost {cap:g} USD are spent")

    def may_ask(self) -> bool:
        """Whether one more request may start."""
        cap, cost = self.settings.max_cost, self.spent.cost_usd
        if not self.halt and cap is not None and cost is not None and cost >= cap:
            self.halt = "max cost"
        return not self.halt

    def failed(self, error: ProviderError) -> None:
        self._failures += 1
        down = self._failures >= max(FAILURES, self.settings.concurrency)
        if not self.halt and (down or error.status in REFUSED_BY_PROVIDER):
            self.halt, self.error = "provider", error


class UnjudgedError(Exception):
    """A sample has no verdict, for a reason that is not the candidate's."""

    def __init__(self, charged_to: Boundary | None, message: str) -> None:
        super().__init__(message)
        self.charged_to = charged_to


class _HaltedError(Exception):
    """The sample was not asked for, because the session is ending."""


async def sample_round(
    session: Session, keys: Sequence[SampleKey], tasks: dict[str, Task], prompts: dict[str, Prompt]
) -> None:
    """Make those samples of a round that the store does not hold yet; returns early when the session halts.

    Raises StoreError when nothing can be stored any more.
    """
    number = keys[0].round
    done = session.store.judged(session.run, number)
    replies = session.store.unused_replies(session.run, number)
    todo = [key for key in keys if key.id not in done]
    if isinstance(session.model, Batched) and session.settings.max_cost is not None:
        session.warn("--batch hands in a round as a whole, so --max-cost is kept between rounds only")
    at_once = len(todo) if isinstance(session.model, Batched) else session.settings.concurrency
    sampling = _Sampling(session, tasks, prompts, replies, _attempts(session, keys), at_once)
    left = iter(todo)
    # twice as many as may ask at once: while one's candidate is judged, another's request is under way
    workers = [asyncio.create_task(sampling.work(left)) for _ in range(2 * at_once)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


class _Sampling:
    """The samples of one round in the making."""

    def __init__(
        self,
        session: Session,
        tasks: dict[str, Task],
        prompts: dict[str, Prompt],
        replies: dict[str, Reply],
        attempts: dict[SampleKey, int],
        at_once: int,
    ) -> None:
        self.session = session
        self.tasks = tasks
        self.messages = {task: prompt.messages for task, prompt in prompts.items()}
        self.names = {task: prompt_rows(messages)[0] for task, messages in self.messages.items()}
        self.attempts = attempts
        self.replies = replies  # received by a session that was killed before it could judge them
        target = session.target
        asks_bare = session.settings.prompt == "bare"
        self.wanted = bare.wanted(target) if asks_bare and isinstance(target, Bare) else None
        self.slots = asyncio.Semaphore(max(1, at_once))
        self.verdicts: dict[tuple[str, str], asyncio.Task[Verdict]] = {}
        self.closed: set[str] = set()  # tasks whose author is at fault, or for which there is nothing more to ask

    async def work(self, todo: Iterator[SampleKey]) -> None:
        for key in todo:
            if self.session.halt:
                return
            if key.task not in self.closed:
                await self._sample(key)

    async def _sample(self, key: SampleKey) -> None:
        store = self.session.store
        try:
            judged = await self._judged(key)
        except _HaltedError:
            return
        except UnjudgedError as left:
            store.put([failure_row(key, left.charged_to, str(left))])
            self._report(key, None, str(left))
            if left.charged_to is None:
                self.closed.add(key.task)
            if left.charged_to is Boundary.TASK:
                self.closed.add(key.task)
                self.session.warn(f"task {key.task}: its file is at fault, so it is not tried further: {left}")
        else:
            store.put(judged_rows(key, judged))
            self._report(key, judged[-1].verdict, "")

    def _report(self, key: SampleKey, verdict: Verdict | None, problem: str) -> None:
        self.session.on_event(SampleJudged(key, verdict, problem, self.session.spent))

    async def _judged(self, key: SampleKey) -> list[Judged]:
        """All candidates of a sample with their verdicts: the proposer's, then those of its repairs, until one passes.

        Each is followed by what the guardian made of it, where it made anything.
        """
        messages = self.messages[key.task]
        text = await self._ask(key, PROPOSER, messages, self.names[key.task])
        judged = await self._candidates(key, PROPOSER, text, 0)
        for turn in range(1, self.session.settings.repair + 1):
            last = judged[-1]
            if last.verdict.passed:
                break
            messages = repair.request(messages, text, last.verdict, last.source if last.parent else None)
            text = await self._ask(key, in_turn(REPAIR, turn), messages, self._stored(messages))
            judged += await self._candidates(key, in_turn(REPAIR, turn), text, turn)
        return judged

    async def _candidates(self, key: SampleKey, agent: str, text: str, turn: int) -> list[Judged]:
        """The candidate of one reply, and the guardian's where there is one, with their verdicts."""
        session, task = self.session, self.tasks[key.task]
        found = read_reply(session.target, task, text, wanted=self.wanted)
        if found.source is None:
            return [Judged(None, found.refusal(session.target.verifier), agent)]
        proposed = Judged(found.source, _reported(await self._verdict(task, found.source), found.dropped), agent)
        guarding = in_turn(GUARDIAN, turn)
        rewritten = await self._guarded(key, task, proposed, guarding) if session.settings.agents == "agent" else None
        if rewritten is None or rewritten.candidate.parent is None:
            return [proposed]
        source, parent = rewritten.candidate.source, rewritten.candidate.parent
        verdict = _reported(await self._verdict(task, source), rewritten.dropped)
        return [proposed, Judged(source, verdict, guarding, parent)]

    async def _guarded(self, key: SampleKey, task: Task, proposed: Judged, agent: str) -> Guarded | None:
        """What the guardian, under its name in this turn, makes of a candidate; None where it is not asked."""
        assert proposed.source is not None
        target, candidate, verdict = self.session.target, Candidate(proposed.source), proposed.verdict
        if self.session.settings.guardian == "static":
            unaffine = verdict.stage is Stage.AFFINE and not verdict.passed
            return guardian.static(target, task, candidate) if unaffine else None
        if verdict.stage.value <= Stage.PARSE.value:
            return None  # it is no program
        messages = guardian.request(target, candidate)
        return guardian.read(target, task, candidate, await self._ask(key, agent, messages, self._stored(messages)))

    def _stored(self, messages: tuple[Message, ...]) -> str:
        """The name of a prompt, whose texts are in the store from now on."""
        name, rows = prompt_rows(messages)
        self.session.store.put(rows)
        return name

    async def _ask(self, key: SampleKey, agent: str, messages: tuple[Message, ...], prompt: str) -> str:
        """The text of an agent's reply, from the store or from the model; it is in the store by then."""
        reply = self.replies.pop(key.request_id(agent), None)
        if reply is None:
            seed = key.seed(self.session.settings.seed, agent)
            most, attempt = self.session.settings.max_tokens, self.attempts[key]
            request = Request(messages, 1, key.temperature, most, seed, attempt)
            async with self.slots:
                await self.session.running.wait()  # inside: who waits for a slot must not start after a pause began
                started = time.monotonic()
                reply = await self._completed(request)
            rows = reply_rows(key, agent, prompt, request, reply, time.monotonic() - started)
            await asyncio.wrap_future(self.session.store.put(rows))
        return reply.texts[0] if reply.texts else ""

    async def _completed(self, request: Request) -> Reply:
        session = self.session
        if not session.may_ask():
            raise _HaltedError
        try:
            reply = await session.model.complete(request)
        except ExhaustedError as error:
            raise UnjudgedError(None, str(error)) from error
        except ProviderError as error:
            session.failed(error)
            raise UnjudgedError(Boundary.PROVIDER, str(error)) from error
        session.count(reply.usage)
        return reply

    async def _verdict(self, task: Task, source: str) -> Verdict:
        """Equal programs for a task are judged once a round."""
        name = task.id, source
        if name not in self.verdicts:
            self.verdicts[name] = asyncio.create_task(self.session.judge.judge(task, source))
        try:
            verdict = await self.verdicts[name]
        except VerifierError as error:
            raise UnjudgedError(Boundary.OURS, str(error)) from error
        if verdict.outcome is Outcome.UNJUDGED:
            raise UnjudgedError(verdict.charged_to, verdict.message)
        return verdict


def _attempts(session: Session, keys: Sequence[SampleKey]) -> dict[SampleKey, int]:
    """How many requests of its task came before each sample's, over all rounds: the same in a run that was resumed."""
    counts, found = session.store.attempts_before(session.run, keys[0].round), {}
    for key in keys:
        found[key] = counts.get(key.task, 0)
        counts[key.task] = found[key] + 1
    return found


def _reported(verdict: Verdict, dropped: Sequence[str]) -> Verdict:
    """The verdict, with a warning for every key of the reply that was not the program."""
    warnings = tuple(f"reply: key {key!r} was dropped: only a program may come from a reply" for key in dropped)
    return replace(verdict, warnings=warnings + verdict.warnings) if warnings else verdict
