"""The functional phase: from the first round without demonstrations to the last. It alone knows the order of what is
tried: plan -> select -> compose -> sample -> filter -> experiences -> plan ...

With plans, a round samples the frontier (`plans`): tasks, and children of those that are split; and it joins the
programs of children that are all solved, one sample for each task whose they are. The state between rounds is what the
store holds and nothing else, so a run that was killed goes on where it was.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.agents.joining import request_join
from opsmith.agents.manual import Manual
from opsmith.agents.prompt import Prompt, compose_prompt, read_prompt
from opsmith.agents.repair import write_findings
from opsmith.judging.verifier import canonical_source
from opsmith.learn.attend import Attendant
from opsmith.learn.budget import Budget
from opsmith.learn.compose import SolvingPrompts, choose_style
from opsmith.learn.conversation import count_tool_turns
from opsmith.learn.events import NodeSolved, RoundEnded, RoundStarted, TaskSolved
from opsmith.learn.filter import choose_answer
from opsmith.learn.keeping import judge_fully
from opsmith.learn.known import take_known
from opsmith.learn.plan_facts import read_facts
from opsmith.learn.planning import PlanMaker
from opsmith.learn.plans import PlanFacts, PlanForest, PlannedTask, PlanStep, grow_forest
from opsmith.learn.policies import POLICIES, RoundPlan
from opsmith.learn.select import Past, Selection, get_strategy
from opsmith.learn.session import RunSession
from opsmith.learn.slices import count_unjudged, read_past, sample_slices
from opsmith.learn.speeds import RightProgram, measure_programs
from opsmith.learn.unjudged import require_verdicts
from opsmith.measuring.record import MeasuringGrade
from opsmith.records import Candidate, Experience, Outcome, Task
from opsmith.results.counting import success_rate
from opsmith.store import Row
from opsmith.store.overruling import overruled_rows
from opsmith.store.queries import Answer, Tally
from opsmith.store.refused import list_refused_programs
from opsmith.store.rows import (
    FUNCTIONAL,
    JOIN,
    PromptFit,
    RoundInfo,
    SampleKey,
    experience_rows,
    prompt_rows,
    round_end_row,
    round_row,
)
from opsmith.store.spending import measure_estimates
from opsmith.store.verdicts import verdict_of

MOST_FACTOR = 4.0  # tokens that a server counts for one of ours: beyond it, it counts something else
MOST_FINDINGS = 3  # refusals of a task that its next prompt looks up in a manual
NAMED = 3  # tasks whose prompts are said to lack demonstrations; the store has all
NOTHING_SOLVED = "nothing was solved, so there is nothing to learn from"  # why a run ends


@dataclass(frozen=True)
class _State:
    """Where a run is between two rounds."""

    past: tuple[Past, ...]  # the rounds that have ended, less those that only joined programs in vain
    number: int  # of the next round
    experiences: tuple[Experience, ...]  # those of children too
    facts: PlanFacts
    forest: PlanForest
    planned: int  # samples of the rounds that have ended
    exhausted: bool  # the model has nothing more for some unsolved task

    @property
    def is_replanned(self) -> bool:
        """Whether plans were made since the last round: what they split is tried from the first demonstrations on."""
        return any(plan.split is not None and plan.round == self.number for plan in self.facts.plans)


class FunctionalPhase:
    """Algorithm 1: rounds until all is solved, or there is a reason to end. Fits `Phase`."""

    def __init__(self, session: RunSession, tasks: Sequence[Task], budget: Budget | None, attendant: Attendant) -> None:
        self.session = session
        self.tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self.budget = budget
        self.attendant = attendant
        settings, method = session.settings, session.settings.method
        self.policy = POLICIES[settings.teamwork.team.policy]
        self.plan = RoundPlan(
            session.run, 0, (), session.models.proposers, method.samples, method.temperatures, settings.target or ""
        )  # of no round yet
        self.repairs = method.repair
        strategy = get_strategy(method.selection)
        self.planner = PlanMaker(session, self.tasks.keys())

        def select_demonstrations(experiences: Sequence[Experience], past: Sequence[Past]) -> Selection | None:
            return strategy(experiences, past, method.levels, settings.seed)

        self.select_demonstrations = select_demonstrations

    async def run(self) -> str:
        """Why it is over; "" where `session.halt` says that the same command may go on."""
        while not self.session.halt:
            take_known(self.session)
            state = self._read_state()
            step = self._choose_step(state)
            if isinstance(step, str):
                return step
            if isinstance(step, PlanStep):
                await self.attendant.await_work(self.planner.make_plan(step, state.number))
            else:
                await self._run_round(state, step)
        return ""

    def _read_state(self) -> _State:
        store, run = self.session.store, self.session.run
        ended = [
            (info, solved)
            for info, solved in store.read_rounds(run, with_children=True)
            if solved is not None and info.phase == FUNCTIONAL
        ]
        first = store.find_optimisation(run)
        solutions = [
            solution
            for solution in store.read_experiences(run, with_children=True)
            if solution.is_earlier or first is None or solution.experience.round < first
        ]
        # what is given between two rounds begins a cycle, as what the first one solves does
        given = {each.experience.round for each in solutions if each.sample is None and not each.is_earlier}
        gains = [(info, len(solved) + (info.number + 1 in given)) for info, solved in ended]
        past = tuple(Past(info.cycle, gain) for info, gain in gains if gain or info.level != JOIN)
        facts = read_facts(store, run, [info for info, _ in ended], solutions)
        unsolved_ids = {task.id for task in self.tasks.values() if task.digest not in facts.solved}
        return _State(
            past,
            len(ended),
            tuple(solution.experience for solution in solutions),
            facts,
            grow_forest(self.tasks.values(), facts, self.session.settings.teamwork.planning),
            sum(info.planned for info, _ in ended),
            not unsolved_ids.isdisjoint(facts.exhausted),
        )

    def _choose_step(self, state: _State) -> Selection | PlanStep | str:
        """What the next round shows, what is to be planned before it, or why there is neither."""
        settings, forest = self.session.settings, state.forest
        if not forest.is_open:
            return "nothing left to try" if state.exhausted else "all solved" if state.number else "nothing to solve"
        if settings.method.max_rounds is not None and state.number >= settings.method.max_rounds:
            return "max rounds"
        budget = self._samples_left(state)
        is_spent = budget is not None and budget <= forest.coming_joins
        if budget == 0 or (is_spent and not forest.joins):
            return "budget spent"
        selection = self.select_demonstrations(state.experiences, state.past)
        if selection is None and not forest.joins:
            forest = grow_forest(self.tasks.values(), state.facts, settings.teamwork.planning, stuck=True)
        if forest.steps:
            return forest.steps[0]
        if state.is_replanned:
            # as if the last round had solved something: the next one begins a cycle
            ended = [replace(last, solved=max(1, last.solved)) for last in state.past[-1:]]
            past = (*state.past[:-1], *ended) if state.experiences else ()
            selection = self.select_demonstrations(state.experiences, past)
        if forest.joins and (selection is None or is_spent or not forest.frontier):
            return Selection(state.past[-1].cycle if state.past else 0, JOIN)
        return selection or ("demonstrations used up" if state.experiences else NOTHING_SOLVED)

    async def _run_round(self, state: _State, step: Selection) -> None:
        session, joins = self.session, {node.task.id: node for node in state.forest.joins}
        sampled = () if step.level == JOIN else state.forest.frontier
        budget = self._samples_left(state)
        keys = plan_joins(session.run, state.number, state.forest.joins, self.plan.target)[:budget]
        remaining = None if budget is None else max(0, budget - len(keys) - state.forest.coming_joins)
        names, shares = tuple(task.id for task in sampled), state.forest.share_samples(self.plan.samples)
        plan = replace(self.plan, number=state.number, tasks=names, limit=remaining, shares=shares)
        plan = read_past(session, self.policy, plan)
        demonstrations = tuple(
            (experience.task.id, Candidate(experience.source).id) for experience in step.shown_to_any(sampled)
        )
        attempted = (*names, *joins)
        planned = len(keys) + self.policy.count_samples(plan)
        info = RoundInfo(state.number, step.cycle, step.level, demonstrations, attempted, planned)
        fit = self._read_fit(state.number)
        prompts = {task.id: self._compose_prompt(task, step, fit, state.number) for task in sampled}
        self._tell_left_out(prompts, fit)
        if fit is not None:
            left_out = {name: tuple(each.task.id for each in prompt.left_out) for name, prompt in prompts.items()}
            info = replace(info, fit=replace(fit, left_out=tuple(pair for pair in left_out.items() if pair[1])))
        prompts |= {name: self._compose_join(node, state.experiences) for name, node in joins.items()}
        texts = [row for prompt in prompts.values() for row in prompt_rows(prompt.messages)[1]]
        session.store.put([round_row(session.run, info), *texts]).result()
        session.on_event(RoundStarted(info, len(session.store.judged_ids(session.run, info.number))))
        composer = SolvingPrompts(prompts, self.repairs)
        tasks = {task.id: task for task in (*sampled, *(node.task for node in joins.values()))}
        await self.attendant.await_work(sample_slices(session, self.policy, plan, tasks, composer, keys))
        solutions: list[_Solution] = []
        if not session.halt:
            rate_by_digest = {experience.task.digest: experience.success_rate for experience in state.experiences}
            rates = {
                name: math.prod(rate_by_digest[child.task.digest] for child in node.children)
                for name, node in joins.items()
            }
            material = _RoundMaterial(tasks, prompts, rates)
            require_verdicts(session.store, session.run, info)
            await self.attendant.await_work(self._filter_round(info, material, solutions))
        if not session.halt:
            await self._close_round(info, solutions)

    def _samples_left(self, state: _State) -> int | None:
        """The samples that the budget allows the next round; None: any number."""
        if self.budget is None:
            return None
        answered, spent = self.session.store.spent_before(self.session.run, state.number)
        return self.budget.samples_left(answered if self.policy.is_sliced else state.planned, answered, spent)

    def _read_fit(self, number: int) -> PromptFit | None:
        """How the round's prompts are fitted into a context window that is stated: as stored, where it has begun, else
        by what servers counted in the last round that they counted in. None: no window is stated."""
        store, run, window = self.session.store, self.session.run, self.session.settings.provider.context_window
        if window is None:
            return None
        begun = next((info for info, _ in store.read_rounds(run) if info.number == number), None)
        if begun is not None and begun.fit is not None:
            return replace(begun.fit, left_out=())
        counted = (measure_estimates(store, run, earlier) for earlier in reversed(range(number)))
        factor = max(next(filter(None, counted), [1.0]))
        return PromptFit(window, round(min(max(factor, 1.0), MOST_FACTOR), 4))

    def _tell_left_out(self, prompts: Mapping[str, Prompt], fit: PromptFit | None) -> None:
        """Which demonstrations did not fit, and which prompts do not even without any."""
        window = self.session.models.context_window if fit is None else fit.window
        left_out = [
            f"{name} ({', '.join(each.task.id for each in prompt.left_out)})"
            for name, prompt in prompts.items()
            if prompt.left_out
        ]
        if left_out:
            more = f" and {len(left_out) - NAMED} tasks more" if len(left_out) > NAMED else ""
            names = ", ".join(left_out[:NAMED])
            self.session.warn_once(f"left out of prompts to fit {window:,} tokens, the easiest first: {names}{more}")
        reserve = self._count_reserve()
        for name, prompt in prompts.items():
            tokens = math.ceil(prompt.input_tokens * (1.0 if fit is None else fit.factor))
            if fit is not None and tokens + reserve > fit.window and not prompt.demonstrations_used:
                self.session.warn_once(
                    f"task {name}: its prompt of about {tokens:,} tokens and {reserve:,} of replies exceed the context "
                    f"window of {fit.window:,}; try: a smaller max_tokens, --no-example or a larger window"
                )

    def _count_reserve(self) -> int:
        """The tokens of the context window that are kept for replies."""
        settings = self.session.settings
        # each turn brings errors, or what a tool says, and one more reply
        turns = 2 * settings.method.repair + count_tool_turns(settings.teamwork.tooling)
        quoted = 0 if self.session.manual is None else self.session.manual.tokens // 2
        return settings.method.max_tokens * (1 + turns) + settings.method.repair * quoted

    def _compose_prompt(self, task: Task, step: Selection, fit: PromptFit | None, number: int) -> Prompt:
        session = self.session
        settings, window, reserve = session.settings, session.models.context_window, self._count_reserve()
        if fit is not None:
            window, reserve = int((fit.window - reserve) / fit.factor), 0
        prompt = compose_prompt(
            task,
            step.shown_to(task),
            session.target,
            window,
            reserve,
            ranked=step.nearest is not None,
            style=choose_style(settings),
            reference=session.references.get(task.id),
            manual=self._add_findings(task, number),
        )
        if session.references and task.id not in session.references and task.id in self.tasks:
            where = settings.teamwork.showing.translate
            session.warn_once(f"task {task.id}: {where} has no program for its problem, so that its prompt shows none")
        return prompt

    def _add_findings(self, task: Task, number: int) -> Manual | None:
        """The run's manual, for a prompt after a round whose programs for the task were refused."""
        manual, store = self.session.manual, self.session.store
        if manual is None or not number:
            return manual
        counts = Counter[str]()
        for row in list_refused_programs(store, self.session.run, number - 1, task.id):
            counts[row.body] += row.samples
        bodies = sorted(counts, key=lambda body: (-counts[body], body))[:MOST_FINDINGS]
        return replace(manual, findings="\n".join(write_findings(verdict_of(store, body)) for body in bodies))

    def _compose_join(self, node: PlannedTask, experiences: Sequence[Experience]) -> Prompt:
        """What asks for one program from those of a task's children."""
        split = node.active.split if node.active is not None else None
        assert split is not None
        source_by_digest = {experience.task.digest: experience.source for experience in experiences}
        programs = {child.name: source_by_digest[child.task.digest] for child in node.children}
        return Prompt(request_join(node.task, split, programs))

    async def _close_round(self, info: RoundInfo, solutions: Sequence[_Solution]) -> None:
        """Measure what was solved, where that is asked for, and end the round: what is stored by then decides later."""
        grade = self.session.settings.measuring.measure
        programs = [solution.program for solution in solutions if solution.program.task.id in self.tasks]
        if grade != "none" and programs:
            programs = [replace(program, grade=MeasuringGrade(grade)) for program in programs]
            await self.attendant.await_work(measure_programs(self.session, programs))
        if not self.session.halt:
            self._end_round(info, solutions)

    async def _filter_round(self, info: RoundInfo, material: _RoundMaterial, solutions: list[_Solution]) -> None:
        """Adds what the round solved, all of its samples judged."""
        answers: dict[str, list[Answer]] = {}
        for answer in self.session.store.read_answers(self.session.run, info.number):
            answers.setdefault(answer.task, []).append(answer)
        tallies: dict[str, list[Tally]] = {}
        for tally in self.session.store.read_tallies(self.session.run, info.number, with_children=True):
            tallies.setdefault(tally.task, []).append(tally)
        names = sorted(answers)
        choosing = [self._choose_solution(info.number, answers[name], tallies[name], material) for name in names]
        chosen = await asyncio.gather(*choosing)
        solutions += [solution for solution in chosen if solution is not None]

    def _end_round(self, info: RoundInfo, solutions: Sequence[_Solution]) -> None:
        """Close a round with what it solved: a round that is closed is never sampled again."""
        session, store = self.session, self.session.store
        rows = [*overruled_rows(store, session.run), *(row for solution in solutions for row in solution.rows)]
        solved = [solution.experience.task.id for solution in solutions]
        store.put([*rows, round_end_row(session.run, info.number, solved)]).result()
        for solution in solutions:
            is_own = solution.experience.task.id in self.tasks
            event = TaskSolved(solution.experience, solution.contaminated)
            session.on_event(event if is_own else NodeSolved(solution.experience))
        unjudged = count_unjudged(session, self.policy, info)
        own = tuple(task for task in solved if task in self.tasks)
        session.on_event(RoundEnded(info, own, unjudged, session.spent))

    async def _choose_solution(
        self, number: int, answers: Sequence[Answer], tallies: Sequence[Tally], material: _RoundMaterial
    ) -> _Solution | None:
        """The first choice of those that the full level does not refuse; None: there is none."""
        session, task = self.session, material.tasks[answers[0].task]
        names = {answer.source: canonical_source(task, answer.source) for answer in answers}
        waiting, refused = list(answers), Counter[float]()  # by temperature
        while waiting:
            best = choose_answer(waiting, names.__getitem__, session.settings.seed, session.target.comment)
            equal = [answer for answer in waiting if answer.source == best.source]
            samples = [best.sample, *(answer.sample for answer in equal if answer != best)]
            outcome = await judge_fully(session, task, best.source, samples)
            if outcome is Outcome.PASSED:
                break
            refused.update(answer.temperature for answer in equal if outcome is Outcome.REFUSED)
            waiting = [answer for answer in waiting if answer.source != best.source]
        else:
            return None
        counted = [replace(tally, right=tally.right - refused[tally.temperature]) for tally in tallies]
        rate = material.rates.get(task.id) or success_rate(counted)
        experience = Experience(task, best.source, rate, number, session.run)
        prompt = material.prompts[task.id]
        examples = {
            canonical_source(task, program) for _, program in read_prompt(prompt.messages, session.target).examples
        }
        contaminated = names[best.source] in examples
        rows = experience_rows(session.run, experience, best.sample, contaminated)
        return _Solution(experience, contaminated, RightProgram(task, best.source, best.sample), rows)


@dataclass(frozen=True)
class _RoundMaterial:
    """What a round was made from, by task."""

    tasks: Mapping[str, Task]
    prompts: Mapping[str, Prompt]
    rates: Mapping[str, float]  # of tasks whose children's programs were joined: the product of theirs


@dataclass(frozen=True)
class _Solution:
    experience: Experience
    contaminated: bool
    program: RightProgram
    rows: list[Row]


def plan_joins(run: str, number: int, nodes: Sequence[PlannedTask], target: str) -> list[SampleKey]:
    """One sample for each task whose children are solved; its number is that of the plan."""
    return [
        SampleKey(run, number, node.task.id, 0.0, node.active.number, target, model=JOIN)
        for node in nodes
        if node.active is not None
    ]
