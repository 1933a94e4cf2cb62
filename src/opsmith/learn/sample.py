"""The samples of one round. Per task, temperature and number a reply and its verdict, many at a time.

A reply is committed to the store before it is read. A sample has its verdict or is left unjudged (no reply, or a
failure that is not the candidate's); what the store holds already is not made again. New requests stop on Ctrl-C, when
the money is spent and when the provider keeps failing; requests in flight are finished. The order is the loop's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opsmith.agents import bare, guardian, repair
from opsmith.agents.guardian import Guarded
from opsmith.agents.reply import PLAIN, ReadReply, ReplyForm, read_reply
from opsmith.errors import TargetError, UsageError, VerifierError
from opsmith.judging.judge import Costing
from opsmith.learn.ask import Asking, HaltedError, UnjudgedError, firsts_early, group_samples
from opsmith.learn.compose import Composer
from opsmith.learn.conversation import Conversing, find_last_program
from opsmith.learn.events import SampleJudged
from opsmith.learn.session import RunSession
from opsmith.models import Batched, Message
from opsmith.models.answers import describe_cut
from opsmith.records import Boundary, Candidate, Level, Outcome, Task, Verdict
from opsmith.store.rows import (
    GUARDIAN,
    REPAIR,
    Judged,
    SampleKey,
    ToolCallEntry,
    failure_row,
    in_turn,
    judged_rows,
    prompt_rows,
    turn_of,
)
from opsmith.targets.capabilities import explain_message
from opsmith.targets.protocols import Bare, Repaired
from opsmith.tools import ToolContext

KEPT = (
    10_000  # verdicts for programs that come again; samples of a task come together, so older ones are of other tasks
)


async def sample_round(
    session: RunSession,
    keys: Sequence[SampleKey],
    tasks: dict[str, Task],
    composer: Composer,
    earlier: Sequence[SampleKey] = (),
) -> None:
    """Make those samples of a round that the store does not hold yet; returns early when the session halts.

    `earlier`: those of the round that came before, where it is made in parts. Raises StoreError when nothing can be
    stored any more.
    """
    number = keys[0].round
    judged_ids = session.store.judged_ids(session.run, number)
    replies = session.store.unused_replies(session.run, number)
    todo = [key for key in keys if key.id not in judged_ids]
    if isinstance(session.model, Batched) and session.settings.spending.max_cost is not None:
        session.warn_once("--batch hands in a round as a whole, so --max-cost is kept between rounds only")
    completions = session.settings.provider.completions
    at_once = len(todo) if isinstance(session.model, Batched) else session.settings.provider.concurrency
    groups = group_samples([key for key in todo if key.id not in replies], completions)
    asking = Asking(session, groups, replies, _count_attempts(session, [*earlier, *keys]), at_once)
    sampling = _Sampling(session, tasks, composer, asking, session.store.unused_tool_calls(session.run, number))
    workers = []
    for of_model in _split_by_model(todo):  # each at its own pace: a slow one keeps no other from being asked
        # twice as many as may ask at once: while one's candidate is judged, another's request is under way
        size = min(len(of_model), 2 * at_once * completions)
        places = iter(firsts_early(of_model, size))
        workers += [asyncio.create_task(sampling.make_samples(places)) for _ in range(size)]
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
        session: RunSession,
        tasks: dict[str, Task],
        composer: Composer,
        asking: Asking,
        stored_calls: Mapping[str, Sequence[ToolCallEntry]],
    ) -> None:
        self.session = session
        self.tasks = tasks
        self.composer = composer
        self.asking = asking
        target = session.target
        self.style = session.settings.method.prompt
        expected = bare.expected_reply(target) if self.style == "bare" and isinstance(target, Bare) else None
        self.form = ReplyForm(expected, outlined=session.settings.teamwork.thinking.think)
        self.verdicts: dict[tuple[str, str], asyncio.Task[Verdict]] = {}
        self.prompts: set[str] = set()  # names of those whose texts are stored
        self.conversing = Conversing(session, asking, self._store_prompt, stored_calls)
        self.closed: set[str] = set()  # tasks whose author is at fault
        self.exhausted: set[tuple[str, str]] = set()  # (model, task): there is nothing more to ask

    async def make_samples(self, todo: Iterator[SampleKey]) -> None:
        for key in todo:
            if self.session.halt:
                return
            if key.task not in self.closed and (key.model, key.task) not in self.exhausted:
                await self._make_sample(key)

    async def _make_sample(self, key: SampleKey) -> None:
        store = self.session.store
        try:
            candidates = await self._judge_turns(key)
        except HaltedError:
            return
        except (UnjudgedError, TargetError) as failure:
            reason = failure if isinstance(failure, UnjudgedError) else UnjudgedError(Boundary.TARGET, str(failure))
            store.put([failure_row(key, reason.charged_to, str(reason))])
            self._report_sample(key, None, str(reason))
            if reason.charged_to is None:
                self.exhausted.add((key.model, key.task))
            if reason.charged_to is Boundary.TASK:
                self.closed.add(key.task)
                self.session.warn_once(f"task {key.task}: its file is at fault, so it is not tried further: {reason}")
        else:
            store.put(judged_rows(key, candidates))
            self._report_sample(key, candidates[-1].verdict, "")

    def _report_sample(self, key: SampleKey, verdict: Verdict | None, problem: str) -> None:
        self.session.on_event(SampleJudged(key, verdict, problem, self.session.spent))

    async def _judge_turns(self, key: SampleKey) -> list[Judged]:
        """All candidates of a sample with their verdicts: the proposer's, then those of its repairs, until one passes.

        Each is followed by what the guardian made of it, where it made anything.
        """
        task, messages = self.tasks[key.task], await self.composer.compose_messages(key, self.asking)
        conversation = await self.conversing.converse(key, messages, self._make_context(task))
        messages, text = conversation.messages, conversation.last.text
        form = PLAIN if key.is_join else self.form
        answer, agent = find_last_program(conversation, self.session.target, task, self.conversing.tools, form)
        candidates = await self._judge_answer(key, agent, answer, 0)
        for turn in range(1, 1 + (0 if key.is_join else self.composer.turns)):
            last = candidates[-1]
            if last.verdict.passed:
                break
            is_rewritten = turn_of(last.agent)[1]
            rewritten, explain = last.source if is_rewritten else None, partial(explain_message, task)
            messages = repair.request_repair(messages, text, last.verdict, rewritten, explain, self.session.manual)
            reply = await self.asking.request_reply(key, in_turn(REPAIR, turn), self.conversing.ask_again(messages))
            text = reply.texts[0]
            answer = read_reply(self.session.target, task, text, form=self.form).blame_limit(describe_cut(reply), text)
            candidates += await self._judge_answer(key, in_turn(REPAIR, turn), answer, turn)
        return candidates

    async def _judge_answer(self, key: SampleKey, agent: str, answer: ReadReply, turn: int) -> list[Judged]:
        """The candidate of one answer, and the guardian's where there is one, with their verdicts."""
        session, task = self.session, self.tasks[key.task]
        if answer.source is None:
            return [Judged(None, answer.make_refusal(session.target.verifier), agent)]
        verdict = self.composer.refuse_program(answer.source) or await self._find_verdict(task, answer.source)
        proposed = Judged(answer.source, _warn_of_dropped(verdict, answer.dropped), agent)
        if (start := self.composer.find_parent(key)) is not None:
            proposed = replace(proposed, parent=start.candidate, parent_sample=start.sample)
        guarding = in_turn(GUARDIAN, turn)
        rewritten = (
            await self._ask_guardian(key, task, proposed, guarding)
            if session.settings.method.agents == "agent"
            else None
        )
        if rewritten is None or rewritten.candidate.parent is None:
            return [proposed]
        source, parent = rewritten.candidate.source, rewritten.candidate.parent
        verdict = _warn_of_dropped(await self._find_verdict(task, source), rewritten.dropped)
        return [proposed, Judged(source, verdict, guarding, parent)]

    async def _ask_guardian(self, key: SampleKey, task: Task, proposed: Judged, agent: str) -> Guarded | None:
        """What the guardian, under its name in this turn, makes of a candidate; None where it is not asked."""
        assert proposed.source is not None
        target, candidate, verdict = self.session.target, Candidate(proposed.source), proposed.verdict
        if self.session.settings.method.guardian == "static":
            is_repairable = isinstance(target, Repaired) and verdict.stage.name == target.repaired_stage
            return guardian.repair_statically(target, task, candidate) if is_repairable else None
        if verdict.stage.name in target.stages[:1]:
            return None  # it is no program
        messages = guardian.request_guarding(target, candidate)
        text = await self.asking.request_text(key, agent, messages, self._store_prompt(messages))
        return guardian.read_guarded(target, task, candidate, text)

    def _store_prompt(self, messages: tuple[Message, ...]) -> str:
        """The name of a prompt, whose texts are in the store from now on."""
        name, rows = prompt_rows(messages)
        if name not in self.prompts:
            self.prompts.add(name)
            self.session.store.put(rows)
        return name

    async def _find_verdict(self, task: Task, source: str) -> Verdict:
        """The verdict that a sample has. Raises UnjudgedError."""
        try:
            verdict = await self.judge_once(task, source)
        except VerifierError as error:
            raise UnjudgedError(Boundary.OURS, str(error)) from error
        if verdict.outcome is Outcome.UNJUDGED:
            raise UnjudgedError(verdict.charged_to, verdict.message)
        return verdict

    async def judge_once(self, task: Task, source: str) -> Verdict:
        """Equal programs for a task are judged once, as long as their verdict is kept. Raises VerifierError."""
        name = task.id, source
        judging = self.verdicts.get(name)
        if judging is None:
            judging = self.verdicts[name] = asyncio.create_task(self.session.judge.judge(task, source))
            if len(self.verdicts) > KEPT:
                del self.verdicts[next(iter(self.verdicts))]
        self.session.judging += 1
        try:
            return await judging
        finally:
            self.session.judging -= 1

    def _make_context(self, task: Task) -> ToolContext:
        """What the tools of a sample of that task work on."""
        session = self.session
        return ToolContext(
            session.target,
            task,
            _TryingJudge(self),
            session.store,
            session.run,
            session.measurer,
            self.style,
            session.manual,
        )


class _TryingJudge:
    """What tools judge by. A verdict counts as a sample's only if its answer is that program in the end."""

    def __init__(self, sampling: _Sampling) -> None:
        self._sampling = sampling

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        """Who is told that time is up leaves the verdict to those who wait for it too."""
        refusal = self._sampling.composer.refuse_program(source)
        if refusal is not None:
            return refusal
        return await asyncio.shield(self._sampling.judge_once(task, source))

    def cost(self, task: Task, source: str) -> Mapping[str, Any]:
        """Raises UsageError where who judges runs no cost model."""
        judge = self._sampling.session.judge
        if not isinstance(judge, Costing):
            raise UsageError("no cost model is run where this run is judged; try: a run on one machine")
        return judge.cost(task, source)


def _count_attempts(session: RunSession, keys: Sequence[SampleKey]) -> dict[SampleKey, int]:
    """How many requests of its task to its model came before each sample's, over all rounds: the same in a run that was
    resumed."""
    counts, attempts = session.store.attempts_before(session.run, keys[0].round), {}
    for key in keys:
        attempts[key] = counts.get((key.task, key.model), 0)
        counts[key.task, key.model] = attempts[key] + 1
    return attempts


def _split_by_model(keys: Sequence[SampleKey]) -> list[list[SampleKey]]:
    of_model: dict[str, list[SampleKey]] = {}
    for key in keys:
        of_model.setdefault(key.model, []).append(key)
    return list(of_model.values())


def _warn_of_dropped(verdict: Verdict, dropped: Sequence[str]) -> Verdict:
    """The verdict, with a warning for every key of the reply that was not the program."""
    warnings = tuple(f"reply: key {key!r} was dropped: only a program may come from a reply" for key in dropped)
    return replace(verdict, warnings=warnings + verdict.warnings) if warnings else verdict
