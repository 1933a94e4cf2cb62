"""The functional phase: from the first round without demonstrations to the last. It alone knows the order of what is
tried: select -> compose -> sample -> filter -> experiences -> select ...

The state between rounds is what the store holds and nothing else, so a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opsmith.agents.prompt import Prompt, compose_prompt, read_prompt
from opsmith.judging.verifier import canonical_source
from opsmith.learn.attend import Attendant
from opsmith.learn.budget import Budget
from opsmith.learn.compose import SolvingPrompts
from opsmith.learn.events import RoundEnded, RoundStarted, TaskSolved
from opsmith.learn.filter import choose_answer
from opsmith.learn.select import Past, Selection, get_strategy
from opsmith.learn.session import RunSession
from opsmith.learn.slices import count_unjudged, find_policy, plan_round, sample_slices
from opsmith.learn.speeds import RightProgram, measure_programs
from opsmith.learn.unjudged import require_verdicts
from opsmith.measuring.record import MeasuringGrade
from opsmith.records import Boundary, Candidate, Experience, Task
from opsmith.results.counting import success_rate
from opsmith.store import Row
from opsmith.store.proposers import read_exhausted
from opsmith.store.queries import Answer, Tally
from opsmith.store.rows import (
    FUNCTIONAL,
    RoundInfo,
    experience_rows,
    prompt_rows,
    round_end_row,
    round_row,
)

_AUTHOR = Boundary.TASK.value
NOTHING_SOLVED = "nothing was solved, so there is nothing to learn from"  # why a run ends


@dataclass(frozen=True)
class _State:
    """Where a run is between two rounds."""

    past: tuple[Past, ...]
    experiences: tuple[Experience, ...]
    unsolved: tuple[Task, ...]
    planned: int  # samples of the rounds that have ended
    exhausted: bool  # the model has nothing more for some unsolved task


class FunctionalPhase:
    """Algorithm 1: rounds until all is solved, or there is a reason to end. Fits `Phase`."""

    def __init__(self, session: RunSession, tasks: Sequence[Task], budget: Budget | None, attendant: Attendant) -> None:
        self.session = session
        self.tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self.budget = budget
        self.attendant = attendant
        self.policy = find_policy(session)
        self.strategy = get_strategy(session.settings.method.selection)

    async def run(self) -> str:
        """Why it is over; "" where `session.halt` says that the same command may go on."""
        while not self.session.halt:
            state = self._read_state()
            step = self._choose_selection(state)
            if isinstance(step, str):
                return step
            await self._run_round(state, step)
        return ""

    def _read_state(self) -> _State:
        store, run = self.session.store, self.session.run
        ended = [
            (info, solved) for info, solved in store.read_rounds(run) if solved is not None and info.phase == FUNCTIONAL
        ]
        past = tuple(Past(info.cycle, len(solved)) for info, solved in ended)
        experiences = tuple(solution.experience for solution in store.read_experiences(run))
        closed = {experience.task.digest for experience in experiences}
        closed_rounds = {info.number for info, _ in ended}
        charged = [(task, whom) for number, task, whom in store.read_charges(run) if number in closed_rounds]
        exhausted = self._list_exhausted(closed_rounds)
        given_up = exhausted | {task for task, whom in charged if whom == _AUTHOR}
        unsolved = [task for task in self.tasks.values() if task.digest not in closed and task.id not in given_up]
        planned = sum(info.planned for info, _ in ended)
        unsolved_ids = {task.id for task in self.tasks.values() if task.digest not in closed}
        return _State(past, experiences, tuple(unsolved), planned, not unsolved_ids.isdisjoint(exhausted))

    def _list_exhausted(self, rounds: set[int]) -> set[str]:
        """Tasks for which no proposer has anything more, as these rounds found out."""
        session = self.session
        ended = {
            (task, model) for number, task, model in read_exhausted(session.store, session.run) if number in rounds
        }
        proposers = session.models.proposers
        return {task for task, _ in ended if all((task, model) in ended for model in proposers)}

    def _choose_selection(self, state: _State) -> Selection | str:
        """What the next round shows, or why there is none."""
        settings = self.session.settings
        if not state.unsolved:
            return "nothing left to try" if state.exhausted else "all solved"
        if settings.method.max_rounds is not None and len(state.past) >= settings.method.max_rounds:
            return "max rounds"
        if self._samples_left(state) == 0:
            return "budget spent"
        step = self.strategy(state.experiences, state.past, settings.method.levels, settings.seed)
        return step or ("demonstrations used up" if state.experiences else NOTHING_SOLVED)

    async def _run_round(self, state: _State, step: Selection) -> None:
        session = self.session
        attempted = tuple(task.id for task in state.unsolved)
        plan = plan_round(session, len(state.past), attempted, self._samples_left(state))
        demonstrations = tuple(
            (experience.task.id, Candidate(experience.source).id) for experience in step.shown_to_any(state.unsolved)
        )
        planned = self.policy.count_samples(plan)
        info = RoundInfo(len(state.past), step.cycle, step.level, demonstrations, attempted, planned)
        prompts = {task.id: self._compose_prompt(task, step) for task in state.unsolved}
        texts = [row for prompt in prompts.values() for row in prompt_rows(prompt.messages)[1]]
        session.store.put([round_row(session.run, info), *texts]).result()
        session.on_event(RoundStarted(info, len(session.store.judged_ids(session.run, info.number))))
        composer = SolvingPrompts(prompts, session.settings.method.repair)
        await self.attendant.await_work(sample_slices(session, plan, self.tasks, composer))
        if not session.halt:
            await self._close_round(info, self._filter_round(info, prompts))

    def _samples_left(self, state: _State) -> int | None:
        """The samples that the budget allows the next round; None: any number."""
        if self.budget is None:
            return None
        answered, spent = self.session.store.spent_before(self.session.run, len(state.past))
        return self.budget.samples_left(answered if self.policy.is_sliced else state.planned, answered, spent)

    def _compose_prompt(self, task: Task, step: Selection) -> Prompt:
        session = self.session
        settings, window = session.settings, session.models.context_window
        reserve = settings.method.max_tokens * (
            1 + 2 * settings.method.repair
        )  # each turn brings errors and one more reply
        demonstrations = step.shown_to(task)
        prompt = compose_prompt(
            task,
            demonstrations,
            session.target,
            window,
            reserve,
            ranked=step.nearest is not None,
            style=settings.method.prompt,
        )
        if prompt.left_out:
            names = ", ".join(experience.task.id for experience in prompt.left_out)
            session.warn_once(f"task {task.id}: left out of its prompt to fit {window} tokens: {names}")
        return prompt

    async def _close_round(self, info: RoundInfo, solutions: Sequence[_Solution]) -> None:
        """Measure what was solved, where that is asked for, and end the round: what is stored by then decides later."""
        grade = self.session.settings.measuring.measure
        if grade != "none" and solutions:
            programs = [replace(solution.program, grade=MeasuringGrade(grade)) for solution in solutions]
            await self.attendant.await_work(measure_programs(self.session, programs))
        if not self.session.halt:
            self._end_round(info, solutions)

    def _filter_round(self, info: RoundInfo, prompts: dict[str, Prompt]) -> list[_Solution]:
        """What the round solved, all of its samples judged."""
        session, store = self.session, self.session.store
        tallies = store.read_tallies(session.run, info.number)
        require_verdicts(store, session.run, info)
        return self._collect_solutions(info.number, tallies, prompts)

    def _end_round(self, info: RoundInfo, solutions: Sequence[_Solution]) -> None:
        """Close a round with what it solved: a round that is closed is never sampled again."""
        session, store = self.session, self.session.store
        rows = [row for solution in solutions for row in solution.rows]
        solved = [solution.experience.task.id for solution in solutions]
        store.put([*rows, round_end_row(session.run, info.number, solved)]).result()
        for solution in solutions:
            session.on_event(TaskSolved(solution.experience, solution.contaminated))
        session.on_event(RoundEnded(info, tuple(solved), count_unjudged(session, info), session.spent))

    def _collect_solutions(self, number: int, tallies: Sequence[Tally], prompts: dict[str, Prompt]) -> list[_Solution]:
        answers: dict[str, list[Answer]] = {}
        for answer in self.session.store.read_answers(self.session.run, number):
            answers.setdefault(answer.task, []).append(answer)
        of_task: dict[str, list[Tally]] = {}
        for tally in tallies:
            of_task.setdefault(tally.task, []).append(tally)
        rates = {task: success_rate(of_task[task]) for task in answers}
        return [self._choose_solution(number, answers[task], rates[task], prompts[task]) for task in sorted(answers)]

    def _choose_solution(self, number: int, answers: Sequence[Answer], rate: float, prompt: Prompt) -> _Solution:
        session, task = self.session, self.tasks[answers[0].task]
        names = {answer.source: canonical_source(task, answer.source) for answer in answers}
        best = choose_answer(answers, names.__getitem__, session.settings.seed, session.target.comment)
        experience = Experience(task, best.source, rate, number, session.run)
        examples = {
            canonical_source(task, program) for _, program in read_prompt(prompt.messages, session.target).examples
        }
        contaminated = names[best.source] in examples
        rows = experience_rows(session.run, experience, best.sample, contaminated)
        return _Solution(experience, contaminated, RightProgram(task, best.source, best.sample), rows)


@dataclass(frozen=True)
class _Solution:
    experience: Experience
    contaminated: bool
    program: RightProgram
    rows: list[Row]
