"""Plans are made: what the plan book asks for is asked of the planner, and stored before any round uses it.

The static planner is the target's own list of splits; of these the first one that was not tried. With `llm` a model is
asked, under a sample key of its own, so that its replies are stored before they are read and found again by a run that
was killed. What comes of it is a plan with a split that has no faults, or one that says why there is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import replace

from opsmith.agents.planning import (
    EarlierSplit,
    PlanBrief,
    RefusedProgram,
    read_plan,
    request_better_plan,
    request_plan,
    require_planner,
)
from opsmith.errors import OpsmithError, ProviderError, StoreError, UsageError
from opsmith.judging.judge import Judge, Splitting
from opsmith.learn.ask import Asking, HaltedError, UnansweredError, UnjudgedError
from opsmith.learn.events import PlanMade
from opsmith.learn.plans import PlanStep, find_active
from opsmith.learn.session import RunSession
from opsmith.models import Message
from opsmith.models.roles import RoleModels
from opsmith.records import Diagnostic, Outcome, Task
from opsmith.splits import Split
from opsmith.store.attempts import list_attempts
from opsmith.store.plans import CONTRACT, StoredPlan, plan_rows
from opsmith.store.rows import PLANNER, SampleKey, in_turn, prompt_rows
from opsmith.targets import Target
from opsmith.targets.protocols import Planned

MOST_SPLITS = 16  # of a list of splits, those that are looked at
SHOWN_REFUSALS = 3  # of an unmet contract, the nearest
NO_OTHER_SPLIT = "the reference's statements and the functions offered suggest no other split"
NO_OTHER_CONTRACT = "there is no other contract for it"


def require_planning(plan: str, target: Target, models: RoleModels, judge: Judge) -> None:
    """Raises UsageError where plans are asked for that cannot be made."""
    if plan == "none":
        return
    if not isinstance(target, Planned):
        raise UsageError(f"plan {plan}: target {target.name!r} cannot split its tasks; try --plan none")
    if not isinstance(judge, Splitting):
        raise UsageError(f"plan {plan}: the judge runs no splits; try --executor local, or --plan none")
    if plan == "llm":
        require_planner(target)
        planner = models.model_for(PLANNER)
        if not planner.is_language_model:
            raise UsageError(
                f"plan llm: model {planner.name!r} plans nothing; expected a language model; try: --plan static, or "
                "--planner MODEL"
            )


class PlanMaker:
    """Makes and stores plans, one at a time. `own`: ids of the run's own tasks, which no child may have."""

    def __init__(self, session: RunSession, own: Collection[str]) -> None:
        self._session = session
        self._own = own

    async def make_plan(self, step: PlanStep, number: int) -> None:
        """Make the plan of a step, for round `number`. Where the session halts it is not made. Raises ProviderError."""
        try:
            offer = await self._find_split(step, number)
        except HaltedError:
            return
        planner = CONTRACT if step.changed else self._session.settings.teamwork.planning.plan
        plan = StoredPlan(step.task.id, step.number, planner, step.reason, number, None, "", step.changed)
        if isinstance(offer, str):
            plan = replace(plan, problem=offer)
        else:
            plan = replace(plan, split=offer, children=tuple(self._make_children(step, offer)))
        self._session.store.put(plan_rows(self._session.run, plan)).result()
        self._session.on_event(PlanMade(plan))

    async def _find_split(self, step: PlanStep, number: int) -> Split | str:
        """The split, or in words why there is none."""
        judge = self._session.judge
        assert isinstance(judge, Splitting)
        try:
            if step.changed:
                split = await _renegotiate_split(step, judge)
            elif self._session.settings.teamwork.planning.plan == "llm":
                split = await self._ask_planner(step, number, judge)
            else:
                split = await _choose_split(step, judge)
            if isinstance(split, Split):
                tuple(self._make_children(step, split))  # whose texts must be tasks
        except (ProviderError, StoreError):
            raise
        except OpsmithError as error:  # of the task's code, of the target, or a worker that was lost
            return f"it could not be split: {error}"
        return split

    def _make_children(self, step: PlanStep, split: Split) -> Iterator[Task]:
        """The children under ids that no other plan of the run gives. Raises TaskError."""
        target = self._session.target
        assert isinstance(target, Planned)
        prefix = f"{step.task.id}.{step.number}." if step.number else f"{step.task.id}."
        for node, child in zip(split.nodes, target.make_children(step.task, split), strict=True):
            name = prefix + node.name
            while name in self._own:
                name += "_"
            yield replace(child, id=name)

    async def _ask_planner(self, step: PlanStep, number: int, judge: Splitting) -> Split | str:
        """What the model says; an answer with faults goes back once."""
        session = self._session
        key = SampleKey(
            session.run, number, step.task.id, 0.0, step.number, session.settings.target or "", model=PLANNER
        )
        replies = session.store.unused_replies(session.run, number)
        asking = Asking(session, {}, replies, {key: 0}, session.settings.provider.concurrency)
        messages = request_plan(session.target, self._make_brief(step))
        problem = ""
        for turn in range(2):
            try:
                text = await self._ask_model(asking, key, in_turn(PLANNER, turn), messages)
            except UnansweredError as error:
                return f"the planner gave no answer: {error}"
            answer = read_plan(text)
            if isinstance(answer, Split):
                faults, problem = await _check_split(step, answer, judge)
                if not problem:
                    return answer
            else:
                faults, problem = (), answer
            messages = request_better_plan(messages, text, problem, faults)
        return f"the planner's answer was no split that can be used: {problem}"

    async def _ask_model(self, asking: Asking, key: SampleKey, agent: str, messages: tuple[Message, ...]) -> str:
        """Raises ProviderError where no answer comes, so that the same command asks again."""
        name, rows = prompt_rows(messages)
        self._session.store.put(rows)
        try:
            return await asking.request_text(key, agent, messages, name)
        except UnansweredError:
            raise
        except UnjudgedError as error:
            raise ProviderError(f"planner: {error}") from error

    def _make_brief(self, step: PlanStep) -> PlanBrief:
        splits = [plan for plan in step.before if plan.split is not None]
        reasons = [*(plan.reason for plan in step.before[1:]), step.reason]
        earlier = [EarlierSplit(plan.split, reasons[plan.number]) for plan in splits if plan.split is not None]
        return PlanBrief(step.task, step.reason, tuple(earlier), tuple(self._list_refused(step)))

    def _list_refused(self, step: PlanStep) -> Iterator[RefusedProgram]:
        """The programs that came nearest: to the contracts of the last split that nobody met, or to the task."""
        session, active = self._session, find_active(step.before)
        if active is None or active.split is None:
            yield from self._list_nearest(step.task, "")
            return
        solved = {solution.experience.task.digest for solution in session.store.read_experiences(session.run, True)}
        for node, child in zip(active.split.nodes, active.children, strict=True):
            if child.digest not in solved:
                yield from self._list_nearest(child, node.name)

    def _list_nearest(self, task: Task, node: str) -> Iterator[RefusedProgram]:
        store, run = self._session.store, self._session.run
        attempts = [row for row in list_attempts(store, run, task.id, 200) if row.outcome is Outcome.REFUSED]
        nearest = sorted((row for row in attempts if row.program), key=lambda row: -row.stage.rank)[:SHOWN_REFUSALS]
        details = store.read_details([row.sample for row in nearest])
        for row in nearest:
            finals = [candidate for candidate in details[row.sample].candidates if candidate.final]
            if finals and finals[0].source is not None:
                yield RefusedProgram(node or "(the whole task)", finals[0].source, finals[0].verdict.message)


async def _choose_split(step: PlanStep, judge: Splitting) -> Split | str:
    """The first split of the target's list that was not tried."""
    tried = [plan.split for plan in step.before]
    answer = await asyncio.to_thread(judge.plan, step.task, "list", most=min(MOST_SPLITS, 2 * len(tried) + 4))
    untried = (split for split in answer.splits if split not in tried)
    return next(untried, answer.reason or NO_OTHER_SPLIT)


async def _renegotiate_split(step: PlanStep, judge: Splitting) -> Split | str:
    """The split that holds with another contract for one of its nodes."""
    active = find_active(step.before)
    assert active is not None
    answer = await asyncio.to_thread(judge.plan, step.task, "renegotiate", active.split, node=step.changed)
    return next(iter(answer.splits), answer.reason or NO_OTHER_CONTRACT)


async def _check_split(step: PlanStep, split: Split, judge: Splitting) -> tuple[tuple[Diagnostic, ...], str]:
    """What is wrong with a model's split: faults, and the same in words; "": nothing."""
    if split in [plan.split for plan in step.before]:
        return (), "that split was tried before"
    answer = await asyncio.to_thread(judge.plan, step.task, "check", split)
    return answer.findings, answer.reason or "; ".join(map(str, answer.findings))
