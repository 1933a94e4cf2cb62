"""The optimisation phase: rounds that start from right programs, and keep what was measured to be better.

A round: each open task's best programs -> per sample profile, analyst, generator, verdict -> screens of what is right
-> the next round's start. Decided at a round's end only, from stored rows in the order of the samples' keys, so that a
run that was killed goes on where it was. What a figure is, the objective says; the phase knows no language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.judging.verifier import canonical_source
from opsmith.learn.attend import Attendant
from opsmith.learn.briefs import BriefSource
from opsmith.learn.budget import Budget
from opsmith.learn.events import RoundEnded, RoundStarted
from opsmith.learn.improve import ImprovingPrompts
from opsmith.learn.keeping import judge_fully
from opsmith.learn.known import take_known
from opsmith.learn.sample import sample_round
from opsmith.learn.session import RunSession
from opsmith.learn.speeds import RightProgram, measure_programs
from opsmith.learn.unjudged import require_verdicts
from opsmith.measuring.objectives import choose_figures, list_figures
from opsmith.measuring.orders import Measurer
from opsmith.measuring.record import MeasuringGrade
from opsmith.models.roles import NO_MODEL
from opsmith.profiling.profiler import ProfileSource
from opsmith.records import Outcome, Task
from opsmith.results.bests import choose_best, grade_programs
from opsmith.results.lineage import LIMIT, Lineage, OptimisedProgram, read_lineages
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.overruling import overruled_rows
from opsmith.store.rows import NOBODY, OPTIMISATION, RoundInfo, SampleKey, round_end_row, round_row
from opsmith.targets import get_target


def choose_objective(settings: Settings, tasks: Sequence[Task]) -> Settings:
    """With the objective that is usual in the tasks' language, where none is named. Raises UsageError for one that the
    language cannot say."""
    if not settings.optimisation.optimise or not tasks:
        return settings
    figures, objective = list_figures(tasks[0]), settings.optimisation.objective
    if not figures:
        raise UsageError(
            f"optimise: target {tasks[0].target}: its programs are neither timed in rounds nor counted in cycles, so "
            "that none is known to be better; try: run.cycles in a language file, or --target c"
        )
    if objective == "auto":
        return settings.replace(objective=figures[0])
    choose_figures(tasks[0], objective)
    return settings


def read_briefs(
    settings: Settings, tasks: Sequence[Task], store: Store, measurer: Measurer | None, profiler: ProfileSource | None
) -> BriefSource:
    """What generators are told. Raises UsageError and TaskError where the phase could not do what the settings ask
    for: a run that is refused then is none."""
    lack = measurer.explain_lack(tasks[0]) if measurer is not None else "there is no measurer"
    if lack:
        raise UsageError(f"optimise: {lack}")
    if profiler is not None and settings.optimisation.analyst != NO_MODEL:
        profiler.explain_lacks(tasks[0])
    return BriefSource(settings, get_target(tasks[0].target), store, tasks)


@dataclass(frozen=True)
class _Progress:
    """Where the phase is between two rounds."""

    lineages: Mapping[str, Lineage]
    rounds: int  # of this phase that have ended
    number: int  # of the next round
    planned: int  # samples of all rounds that have ended
    closed: frozenset[str]  # tasks that cannot be asked about any more


class OptimisationPhase:
    """Fits `Phase`."""

    def __init__(
        self,
        session: RunSession,
        tasks: Sequence[Task],
        budget: Budget | None,
        attendant: Attendant,
        briefs: BriefSource,
    ) -> None:
        self.session = session
        self.tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self.budget = budget
        self.attendant = attendant
        self._briefs = briefs

    async def run(self) -> str:
        """Why it is over; "" where `session.halt` says that the same command may go on."""
        while not self.session.halt:
            take_known(self.session)
            progress = self._read_progress()
            parents = self._choose_parents(progress)
            if isinstance(parents, str):
                await self._grade_leaders(progress)
                return "" if self.session.halt else parents
            await self._run_round(progress, parents)
        return ""

    def _read_progress(self) -> _Progress:
        store, run, settings = self.session.store, self.session.run, self.session.settings.optimisation
        ended = [info for info, solved in store.read_rounds(run) if solved is not None]
        any_task = next(iter(self.tasks.values()))
        figures = choose_figures(any_task, settings.objective)
        lineages = {
            task: lineage
            for task, lineage in read_lineages(store, run, figures, settings.beam).items()
            if task in self.tasks
        }
        own = [info for info in ended if info.phase == OPTIMISATION]
        exhausted = {task for _, task, whom in store.read_charges(run) if whom == NOBODY}
        return _Progress(lineages, len(own), len(ended), sum(info.planned for info in ended), frozenset(exhausted))

    def _choose_parents(self, progress: _Progress) -> dict[str, tuple[OptimisedProgram, ...]] | str:
        """By task what the next round starts from, or why there is none."""
        settings = self.session.settings.optimisation
        if not progress.lineages:
            return "nothing to optimise"
        if progress.rounds >= settings.optimise:
            return "optimised"
        chosen = {
            task: lineage.beam if settings.refine else (lineage.start,)
            for task, lineage in progress.lineages.items()
            if task not in progress.closed and not _is_finished(lineage, settings.plateau)
        }
        if not chosen:
            return "optimised: nothing gains any more"
        return chosen if self._samples_left(progress) != 0 else "budget spent"

    def _samples_left(self, progress: _Progress) -> int | None:
        """The samples that the budget allows the next round; None: any number."""
        if self.budget is None:
            return None
        spent = self.session.store.spent_before(self.session.run, progress.number)
        return self.budget.samples_left(progress.planned, *spent)

    async def _run_round(self, progress: _Progress, parents: Mapping[str, tuple[OptimisedProgram, ...]]) -> None:
        session = self.session
        keys = plan_attempts(session.run, progress.number, parents, session.settings, self._samples_left(progress))
        names = tuple((task, program.name) for task, programs in parents.items() for program in programs)
        info = RoundInfo(progress.number, 0, "", names, tuple(parents), len(keys), OPTIMISATION)
        session.store.put([round_row(session.run, info)]).result()
        session.on_event(RoundStarted(info, len(session.store.judged_ids(session.run, info.number))))
        composer = ImprovingPrompts(session, self.tasks, parents, progress.lineages, self._briefs, progress.rounds + 1)
        await self.attendant.await_work(sample_round(session, keys, self.tasks, composer))
        if not session.halt:
            require_verdicts(session.store, session.run, info)
            screens: list[RightProgram] = []
            await self.attendant.await_work(self._list_screens(info, progress, screens))
        if not session.halt:
            await self.attendant.await_work(measure_programs(session, screens))
        if not session.halt:
            self._end_round(info, progress)

    async def _list_screens(self, info: RoundInfo, progress: _Progress, screens: list[RightProgram]) -> None:
        """Adds the right programs of a round, each beside its parent; of isomorphs the first one, over all rounds. What
        is measured may be kept: the full level must not refuse it."""
        session = self.session
        forms_of: dict[str, set[str]] = {}
        rows = session.store.read_steps(session.run, info.number)
        for row in rows:
            if row.source is None or row.outcome is not Outcome.PASSED or session.halt:
                continue
            task, lineage = self.tasks[row.task], progress.lineages[row.task]
            forms = forms_of.setdefault(
                row.task, {canonical_source(task, program.source) for program in lineage.list_programs()}
            )
            form = canonical_source(task, row.source)
            if form in forms:
                continue
            same = [other.sample for other in rows if (other.task, other.source) == (row.task, row.source)]
            samples = [row.sample, *(sample for sample in same if sample != row.sample)]
            if await judge_fully(session, task, row.source, samples) is Outcome.PASSED:
                forms.add(form)
                starts = [name for of_task, name in info.demonstrations if of_task == row.task]
                parent = lineage.find_program(starts[row.number % len(starts)])
                figures = choose_figures(task, self.session.settings.optimisation.objective)
                grade = MeasuringGrade.SCREEN
                screens.append(RightProgram(task, row.source, row.sample, grade, parent.source, (), figures))

    def _end_round(self, info: RoundInfo, progress: _Progress) -> None:
        """Close a round. The tasks whose best program it changed are said to be those that it solved."""
        store, run = self.session.store, self.session.run
        unjudged = info.planned - len(store.judged_ids(run, info.number))
        store.put([*overruled_rows(store, run), round_end_row(run, info.number, ())]).result()
        lineages = self._read_progress().lineages
        gained = tuple(task for task in info.attempted if lineages[task].idle_rounds == 0)
        self.session.on_event(RoundEnded(info, gained, unjudged, self.session.spent))

    async def _grade_leaders(self, progress: _Progress) -> None:
        """The leading programs of each task beside the one that it was solved with, as figures that may be published:
        where those do not hold, the next one."""
        session = self.session
        is_screen = session.settings.measuring.measure == "screen"
        grade = MeasuringGrade.SCREEN if is_screen else MeasuringGrade.FULL
        waiting = [(lineage, lineage.list_leaders()) for lineage in progress.lineages.values()]
        while waiting and not session.halt:
            orders = [self._order_grade(lineage, leaders[0], grade) for lineage, leaders in waiting if leaders]
            await self.attendant.await_work(measure_programs(session, orders))
            waiting = [
                (lineage, leaders[1:])
                for lineage, leaders in waiting
                if leaders[1:] and not is_screen and not self._has_best(lineage)
            ]

    def _order_grade(self, lineage: Lineage, program: OptimisedProgram, grade: MeasuringGrade) -> RightProgram:
        task = self.tasks[lineage.task]
        figures = choose_figures(task, self.session.settings.optimisation.objective)
        assert program.sample is not None
        return RightProgram(task, program.source, program.sample, grade, lineage.start.source, (), figures)

    def _has_best(self, lineage: Lineage) -> bool:
        figures = choose_figures(self.tasks[lineage.task], self.session.settings.optimisation.objective)
        speeds = self.session.store.read_speeds(self.session.run, lineage.task)
        return choose_best(grade_programs(speeds, lineage.start.name, figures).values()) is not None


def plan_attempts(
    run: str,
    number: int,
    parents: Mapping[str, Sequence[OptimisedProgram]],
    settings: Settings,
    limit: int | None = None,
) -> list[SampleKey]:
    """The samples of a round, task by task; `limit`: how many the budget allows, spread evenly over the tasks.

    A sample's number says from which of the task's parents it sets out: modulo their number, the place among them.
    """
    temperatures = settings.method.temperatures
    keys = [
        SampleKey(
            run,
            number,
            task,
            temperatures[attempt % len(temperatures)],
            attempt * len(programs) + place,
            settings.target or "",
            OPTIMISATION,
        )
        for attempt in range(settings.optimisation.attempts)
        for task, programs in parents.items()
        for place in range(len(programs))
    ]
    order = {task: place for place, task in enumerate(parents)}
    return sorted(keys[:limit], key=lambda key: (order[key.task], key.temperature, key.number))


def _is_finished(lineage: Lineage, plateau: int) -> bool:
    """Whether a task is left alone: rounds without a gain, or as fast as the device allows."""
    share = lineage.leader.share
    return lineage.idle_rounds >= plateau or (share is not None and share >= LIMIT)
