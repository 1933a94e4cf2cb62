"""What the samples of an optimisation round are asked: profile -> analyst -> generator, each from the program before.

What a program's profile says and what was suggested is stored before anybody is asked with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from opsmith.agents.analysis import AnalystBrief, EarlierAttempt, request_analysis
from opsmith.agents.generation import request_program
from opsmith.agents.suggestion import read_suggestion_reply
from opsmith.learn.ask import Asking
from opsmith.learn.briefs import BriefSource
from opsmith.learn.compose import Parent
from opsmith.learn.profiles import fetch_profiles
from opsmith.learn.session import RunSession
from opsmith.learn.speeds import RightProgram
from opsmith.models import Message
from opsmith.records import ProfileReport, Suggestion, Task, Verdict
from opsmith.results.lineage import Lineage, OptimisationStep, OptimisedProgram
from opsmith.results.states import name_state
from opsmith.store.rows import ANALYST, SampleKey, prompt_rows, suggestion_rows

UNJUDGED = "not judged"  # the state of an attempt whose verdict is missing


class ImprovingPrompts:
    """Fits `Composer`."""

    def __init__(
        self,
        session: RunSession,
        tasks: Mapping[str, Task],
        parents: Mapping[str, Sequence[OptimisedProgram]],
        lineages: Mapping[str, Lineage],
        briefs: BriefSource,
        number: int,  # of the optimisation round, from 1
    ) -> None:
        self.turns = session.settings.optimisation.fixes
        self._session = session
        self._tasks = tasks
        self._parents = parents
        self._lineages = lineages
        self._briefs = briefs
        self._number = number
        self._changes = briefs.remember(lineages)
        self._profiles: dict[tuple[str, str], asyncio.Task[tuple[ProfileReport, ...]]] = {}

    def find_parent(self, key: SampleKey) -> Parent:
        program = self._find_program(key)
        return Parent(program.name, program.sample)

    def refuse_program(self, source: str) -> Verdict | None:
        return self._briefs.refuse_program(source)

    async def compose_messages(self, key: SampleKey, asking: Asking) -> tuple[Message, ...]:
        """The generator's, after the analyst was asked. Raises UnjudgedError, HaltedError."""
        task, program = self._tasks[key.task], self._find_program(key)
        suggestion = await self._ask_analyst(key, asking) if self._session.has_analyst else None
        brief = self._briefs.make_brief(task, program.source, suggestion, self._number, self._changes)
        return request_program(self._session.target, brief)

    async def _ask_analyst(self, key: SampleKey, asking: Asking) -> Suggestion | None:
        """One suggestion for the sample's program; None where the reply holds none."""
        session, task, program = self._session, self._tasks[key.task], self._find_program(key)
        profiles = await self._profile_program(task, program)
        attempts = tuple(map(describe_step, self._lineages[key.task].steps))
        objective, rules = session.settings.optimisation.objective, self._briefs.rules
        brief = AnalystBrief(task, objective, program.source, profiles, attempts, rules)
        messages = request_analysis(session.target, brief)
        name, rows = prompt_rows(messages)
        session.store.put(rows)
        reply = read_suggestion_reply(await asking.request_text(key, ANALYST, messages, name))
        if reply.suggestion is None:
            session.warn_once(f"analyst: a reply without a suggestion: {reply.problem}")
        else:
            session.store.put(suggestion_rows(key, reply.suggestion))
        return reply.suggestion

    async def _profile_program(self, task: Task, program: OptimisedProgram) -> tuple[ProfileReport, ...]:
        """Once for all samples that set out from it."""
        name = task.id, program.name
        if name not in self._profiles:
            self._profiles[name] = asyncio.create_task(profile_program(self._session, task, program))
        return await self._profiles[name]

    def _find_program(self, key: SampleKey) -> OptimisedProgram:
        programs = self._parents[key.task]
        return programs[key.number % len(programs)]


async def profile_program(session: RunSession, task: Task, program: OptimisedProgram) -> tuple[ProfileReport, ...]:
    """What profilers say of a program; nothing where there are none."""
    if session.profiler is None:
        return ()
    return await fetch_profiles(session, session.profiler, RightProgram(task, program.source, program.sample or ""))


def describe_step(step: OptimisationStep) -> EarlierAttempt:
    """What came of a suggestion, as a later analyst is told."""
    state = name_state(step.row.stage, step.row.outcome)
    gain = None if step.program is None else step.parent.gain * (step.ratio or 1.0)
    return EarlierAttempt(step.row.suggestion, UNJUDGED if state is None else state.value, gain)
