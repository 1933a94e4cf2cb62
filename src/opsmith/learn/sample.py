"""How are the samples of one round made? Per task, temperature and number a reply and its verdict, many at a time.

A reply is committed to the store before it is read. A sample has its verdict or is left unjudged (no reply, or a
failure that is not the candidate's); what the store holds already is not made again. New requests stop on Ctrl-C, when
the money is spent and when the provider keeps failing; requests in flight are finished. The order is the loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opsmith.agents import bare, guardian, repair
from opsmith.agents.guardian import Guarded
from opsmith.agents.prompt import Prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import VerifierError
from opsmith.learn.ask import Asking, HaltedError, UnjudgedError, firsts_early
from opsmith.learn.events import SampleJudged
from opsmith.learn.session import Session
from opsmith.models import Batched, Message
from opsmith.records import Boundary, Candidate, Outcome, Stage, Task, Verdict
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
)
from opsmith.targets.bare import Bare

KEPT = (
    10_000  # verdicts for programs that come again; samples of a task come together, so older ones are of other tasks
)


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
    asking = Asking(session, todo, replies, _attempts(session, keys), at_once)
    sampling = _Sampling(session, tasks, prompts, asking)
    # twice as many as may ask at once: while one's candidate is judged, another's request is under way
    size = min(len(todo), 2 * at_once * session.settings.completions)
    left = iter(firsts_early(todo, size))
    workers = [asyncio.create_task(sampling.work(left)) for _ in range(size)]
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
        asking: Asking,
    ) -> None:
        self.session = session
        self.tasks = tasks
        self.messages = {task: prompt.messages for task, prompt in prompts.items()}
        self.names = {task: prompt_rows(messages)[0] for task, messages in self.messages.items()}
        self.asking = asking
        target = session.target
        asks_bare = session.settings.prompt == "bare"
        self.wanted = bare.wanted(target) if asks_bare and isinstance(target, Bare) else None
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
        except HaltedError:
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
        text = await self.asking.text(key, PROPOSER, messages, self.names[key.task])
        judged = await self._candidates(key, PROPOSER, text, 0)
        for turn in range(1, self.session.settings.repair + 1):
            last = judged[-1]
            if last.verdict.passed:
                break
            messages = repair.request(messages, text, last.verdict, last.source if last.parent else None)
            text = await self.asking.text(key, in_turn(REPAIR, turn), messages, self._stored(messages))
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
        text = await self.asking.text(key, agent, messages, self._stored(messages))
        return guardian.read(target, task, candidate, text)

    def _stored(self, messages: tuple[Message, ...]) -> str:
        """The name of a prompt, whose texts are in the store from now on."""
        name, rows = prompt_rows(messages)
        self.session.store.put(rows)
        return name

    async def _verdict(self, task: Task, source: str) -> Verdict:
        """Equal programs for a task are judged once, as long as their verdict is kept."""
        name = task.id, source
        judging = self.verdicts.get(name)
        if judging is None:
            judging = self.verdicts[name] = asyncio.create_task(self.session.judge.judge(task, source))
            if len(self.verdicts) > KEPT:
                del self.verdicts[next(iter(self.verdicts))]
        try:
            verdict = await judging
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
