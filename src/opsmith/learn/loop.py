"""Algorithm 1, from the first round without demonstrations to the last: the only place that knows the order of
what is tried: select -> compose -> sample -> filter -> experiences -> select ...

The state between rounds is what the store holds and nothing else, so a run that was killed goes on where it was.
`improve` is what a program calls; `improve_async` the same inside an event loop. Ctrl-C ends `improve` in good order:
requests in flight are finished and stored, and the result says that the run is not finished; a second one exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from opsmith.agents.prompt import Prompt, compose_prompt, read_prompt
from opsmith.errors import OpsmithError, ProviderError, StoreError, TargetError, TaskError, VerifierError
from opsmith.judging.verifier import canonical_source
from opsmith.learn.budget import Budget, budget_of
from opsmith.learn.events import (
    Event,
    OnEvent,
    RoundEnded,
    RoundStarted,
    RunEnded,
    RunStarted,
    Stopping,
    TaskSolved,
    Warned,
)
from opsmith.learn.filter import choose_answer
from opsmith.learn.identity import run_info
from opsmith.learn.interrupt import stop_on_interrupt
from opsmith.learn.judge import Judge
from opsmith.learn.measurer import Measurer
from opsmith.learn.pause import obey_wishes
from opsmith.learn.sample import sample_round
from opsmith.learn.select import Past, Selection, get_strategy
from opsmith.learn.session import RunSession
from opsmith.learn.speeds import RightProgram, measure_programs
from opsmith.learn.start import begin_run, choose_run, given_experiences, target_of, time_session
from opsmith.models import Batched, ChatModel
from opsmith.models.roles import RoleModels, gather_models
from opsmith.records import Boundary, Candidate, Experience, Task
from opsmith.results.counting import success_rate
from opsmith.results.result import RunResult, result_of
from opsmith.settings import Settings
from opsmith.store import Row, Store
from opsmith.store.batches import StoreLedger
from opsmith.store.queries import Answer, Tally
from opsmith.store.rows import (
    NOBODY,
    RoundInfo,
    SampleKey,
    experience_rows,
    prompt_rows,
    round_end_row,
    round_row,
    run_end_row,
)
from opsmith.store.spending import known_usd

_AUTHOR = Boundary.TASK.value
NOTHING_SOLVED = "nothing was solved, so there is nothing to learn from"  # why a run ends
_OVER = "the run is over, so that nothing is measured now; for what it solved: opsmith measure {run}"
GRACE_S = 20.0  # for requests in flight after Ctrl-C
FLUSH_S = 30.0  # for a database that does not answer at all


def improve(
    tasks: Sequence[Task],
    model: ChatModel | RoleModels,
    settings: Settings,
    store: Store | None = None,
    *,
    judge: Judge,
    measurer: Measurer | None = None,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
) -> RunResult:
    """Run adaptive self-improvement on `tasks` and return what came of it; see `improve_async`.

    `model` has every role, or there are several models by role. Without a store the run is kept in a temporary one. The
    models' connections are closed at the end.
    """
    models = gather_models(model)
    with contextlib.ExitStack() as stack:
        if store is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="opsmith-"))
            store = stack.enter_context(Store.open(Path(folder)))
        begin = partial(
            improve_async,
            tasks,
            models,
            settings,
            store,
            judge,
            measurer=measurer,
            on_event=on_event,
            experiences=experiences,
        )
        return asyncio.run(_improve_interruptibly(begin, models, store))


async def _improve_interruptibly(
    begin: Callable[..., Awaitable[RunResult]], models: RoleModels, store: Store
) -> RunResult:
    stop = asyncio.Event()
    try:
        with stop_on_interrupt(stop, lambda: store.hurry(GRACE_S)):
            return await begin(stop=stop)
    finally:
        await models.close()  # their connections belong to this event loop


async def improve_async(  # noqa: PLR0913  (what is run, with what, and who watches; most of it by name)
    tasks: Sequence[Task],
    model: ChatModel | RoleModels,
    settings: Settings,
    store: Store,
    judge: Judge,
    *,
    measurer: Measurer | None = None,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
    stop: asyncio.Event | None = None,
) -> RunResult:
    """Algorithm 1. The same call on the same store goes on where an earlier one was killed, or returns its result.

    `measurer`: what times programs, where `settings.measuring` asks for it. `experiences`: where D starts, beside those
    of `from_run`; tasks solved by them are not tried. `stop`: set it to end in good order. Raises ProviderError,
    VerifierError, StoreError or TaskError when it cannot go on; what was received by then is in the store.
    """
    emit = on_event or _ignore_event
    models, target = gather_models(model), target_of(tasks, settings)
    start, budget = given_experiences(settings, store, experiences), budget_of(settings, store)
    info = choose_run(store, target, partial(run_info, tasks, start, budget, models, target, settings))
    resumed = store.read_info(info.id) is not None
    if store.end_reason(info.id) is not None:
        if measurer is not None:
            emit(Warned(_OVER.format(run=info.id)))
        return _report_end(store, info.id, emit)
    with store.lock(info.id), store.wait_patiently():
        store.check_file()
        store.recover_rows(info.id)
        begin_run(store, info, tasks, start, settings)
        solved = {experience.task.digest for experience in start}
        solved_before = tuple(task.id for task in tasks if task.digest in solved)
        emit(RunStarted(info.id, models.own.name, tuple(task.id for task in tasks), solved_before, resumed))
        for chat in models.list_models():
            if isinstance(chat, Batched):
                chat.use_ledger(StoreLedger(store))
        spent, usd = store.sum_usage(info.id), known_usd(store, info.id)
        number = store.session_count(info.id)
        session = RunSession(info.id, settings, target, models, judge, store, emit, spent, measurer, usd, number)
        with time_session(store, session):
            await _Loop(session, tasks, budget, stop or asyncio.Event()).run()
    return _report_end(store, info.id, emit)


@dataclass(frozen=True)
class _State:
    """Where a run is between two rounds."""

    past: tuple[Past, ...]
    experiences: tuple[Experience, ...]
    unsolved: tuple[Task, ...]
    planned: int  # samples of the rounds that have ended
    exhausted: bool  # the model has nothing more for some unsolved task


class _Loop:
    """The rounds of one run."""

    def __init__(self, session: RunSession, tasks: Sequence[Task], budget: Budget | None, stop: asyncio.Event) -> None:
        self.session = session
        self.tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self.budget = budget
        self.stop = stop
        self.strategy = get_strategy(session.settings.method.selection)

    async def run(self) -> None:
        """Until there is a reason to end; `session.halt` says so when the same command may go on."""
        while not self.session.halt:
            state = self._read_state()
            step = self._choose_selection(state)
            if isinstance(step, str):
                self.session.store.put([run_end_row(self.session.run, step)]).result()
                return
            await self._run_round(state, step)

    def _read_state(self) -> _State:
        store, run = self.session.store, self.session.run
        ended = [(info, solved) for info, solved in store.read_rounds(run) if solved is not None]
        past = tuple(Past(info.cycle, len(solved)) for info, solved in ended)
        experiences = tuple(solution.experience for solution in store.read_experiences(run))
        closed = {experience.task.digest for experience in experiences}
        closed_rounds = {info.number for info, _ in ended}
        charged = [(task, whom) for number, task, whom in store.read_charges(run) if number in closed_rounds]
        exhausted = {task for task, whom in charged if whom == NOBODY}
        given_up = {task for task, whom in charged if whom in (NOBODY, _AUTHOR)}
        unsolved = [task for task in self.tasks.values() if task.digest not in closed and task.id not in given_up]
        planned = sum(info.planned for info, _ in ended)
        unsolved_ids = {task.id for task in self.tasks.values() if task.digest not in closed}
        return _State(past, experiences, tuple(unsolved), planned, not unsolved_ids.isdisjoint(exhausted))

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
        budget = self._samples_left(state)
        keys = plan_samples(
            session.run, len(state.past), [task.id for task in state.unsolved], session.settings, budget
        )
        demonstrations = tuple(
            (experience.task.id, Candidate(experience.source).id) for experience in step.shown_to_any(state.unsolved)
        )
        attempted = tuple(task.id for task in state.unsolved)
        info = RoundInfo(len(state.past), step.cycle, step.level, demonstrations, attempted, len(keys))
        prompts = {task.id: self._compose_prompt(task, step) for task in state.unsolved}
        texts = [row for prompt in prompts.values() for row in prompt_rows(prompt.messages)[1]]
        session.store.put([round_row(session.run, info), *texts]).result()
        session.on_event(RoundStarted(info, len(session.store.judged_ids(session.run, info.number))))
        await self._await_work(sample_round(session, keys, self.tasks, prompts))
        if not session.halt:
            await self._close_round(info, self._filter_round(info, prompts))

    def _samples_left(self, state: _State) -> int | None:
        """The samples that the budget allows the next round; None: any number."""
        if self.budget is None:
            return None
        return self.budget.samples_left(
            state.planned, *self.session.store.spent_before(self.session.run, len(state.past))
        )

    def _compose_prompt(self, task: Task, step: Selection) -> Prompt:
        session = self.session
        settings, window = session.settings, session.model.context_window
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
        if self.session.measurer is not None and solutions:
            await self._await_work(measure_programs(self.session, [solution.program for solution in solutions]))
        if not self.session.halt:
            self._end_round(info, solutions)

    async def _await_work(self, work: Coroutine[None, None, None]) -> None:
        """Sample a round, or measure what it solved. Raises the error that the session ends with."""
        await self._await_until_stop(work)
        self.session.store.flush(FLUSH_S if self.session.halt else None)
        if self.session.error is not None:
            raise self.session.error

    async def _await_until_stop(self, coroutine: Coroutine[None, None, None]) -> None:
        """After `stop`, wait for what is in flight, but not for ever."""
        self.session.running.clear()  # until the store was asked whether the run is paused
        work = asyncio.create_task(coroutine)
        stopped = asyncio.create_task(self.stop.wait())
        obeying = asyncio.create_task(obey_wishes(self.session))
        try:
            await asyncio.wait([work, stopped, obeying], return_when=asyncio.FIRST_COMPLETED)
            if obeying.done() and self.session.error is None:
                self.session.error = _store_error(obeying)
            if not work.done():
                self.session.halt = self.session.halt or "interrupted"
                if self.stop.is_set():
                    self._say_what_is_waited_for()
                self.session.store.hurry(GRACE_S)
                obeying.cancel()
                self.session.running.set()  # who waits for the end of a pause sees the halt
                await asyncio.wait([work], timeout=GRACE_S)
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work
        finally:
            for task in (stopped, obeying, work):
                task.cancel()

    def _say_what_is_waited_for(self) -> None:
        session = self.session
        in_batches = isinstance(session.model, Batched)
        session.on_event(Stopping(session.asking, session.judging, GRACE_S, in_batches))

    def _filter_round(self, info: RoundInfo, prompts: dict[str, Prompt]) -> list[_Solution]:
        """What the round solved, all of its samples judged."""
        session, store = self.session, self.session.store
        tallies = store.read_tallies(session.run, info.number)
        unjudged = _count_unjudged(info, tallies)
        charged = {whom for number, _, whom in store.read_charges(session.run) if number == info.number}
        if unjudged == info.planned and NOBODY not in charged:
            raise _nothing_judged(store, session.run, info.number)
        return self._collect_solutions(info.number, tallies, prompts)

    def _end_round(self, info: RoundInfo, solutions: Sequence[_Solution]) -> None:
        """Close a round with what it solved: a round that is closed is never sampled again."""
        session, store = self.session, self.session.store
        rows = [row for solution in solutions for row in solution.rows]
        solved = [solution.experience.task.id for solution in solutions]
        store.put([*rows, round_end_row(session.run, info.number, solved)]).result()
        for solution in solutions:
            session.on_event(TaskSolved(solution.experience, solution.contaminated))
        unjudged = _count_unjudged(info, store.read_tallies(session.run, info.number))
        session.on_event(RoundEnded(info, tuple(solved), unjudged, session.spent))

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


def _count_unjudged(info: RoundInfo, tallies: Sequence[Tally]) -> int:
    return info.planned - sum(tally.judged for tally in tallies)


def plan_samples(
    run: str, number: int, tasks: Sequence[str], settings: Settings, limit: int | None = None
) -> list[SampleKey]:
    """The samples of a round, task by task; `limit`: how many the budget allows, spread evenly over the tasks."""
    order = {task: place for place, task in enumerate(tasks)}
    keys = [
        SampleKey(run, number, task, temperature, index, settings.target or "")
        for index in range(settings.method.samples)
        for temperature in settings.method.temperatures
        for task in tasks
    ]
    return sorted(keys[:limit], key=lambda key: (order[key.task], key.temperature, key.number))


def _report_end(store: Store, run: str, emit: OnEvent) -> RunResult:
    store.flush()
    result = result_of(store, run)
    emit(RunEnded(result))
    return result


def _store_error(obeying: asyncio.Task[None]) -> OpsmithError | None:
    """Why nobody can tell any more whether the run is paused."""
    error = obeying.exception()
    return error if error is None or isinstance(error, OpsmithError) else StoreError(f"{type(error).__name__}: {error}")


def _nothing_judged(store: Store, run: str, number: int) -> OpsmithError:
    """Why not one sample of a round could be judged; the round stays open, so the same command tries again."""
    failures = store.read_failures(run, number)
    _, charged, message = failures[-1] if failures else ("", Boundary.OURS.value, "no sample was made")
    kinds: dict[str, type[OpsmithError]] = {
        Boundary.PROVIDER.value: ProviderError,
        Boundary.TASK.value: TaskError,
        Boundary.TARGET.value: TargetError,
    }
    return kinds.get(charged, VerifierError)(f"run {run}, round {number}: no sample could be judged; last: {message}")


def _ignore_event(event: Event) -> None:
    """Nobody watches."""
