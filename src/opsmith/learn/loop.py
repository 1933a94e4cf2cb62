"""What is tried next? Algorithm 1, from the first round without demonstrations to the last; the only place that knows
the order: select -> compose -> sample -> filter -> experiences -> select ...

The state between rounds is what the store holds and nothing else, so a run that was killed goes on where it was.
`improve` is what a program calls; `improve_async` the same inside an event loop. Ctrl-C ends `improve` in good order:
requests in flight are finished and stored, and the result says that the run is not finished; a second one exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.agents.prompt import Prompt, compose, read_prompt
from opsmith.errors import OpsmithError, ProviderError, StoreError, TaskError, VerifierError
from opsmith.learn.budget import Budget, budget_of
from opsmith.learn.events import Event, OnEvent, RoundEnded, RoundStarted, RunEnded, RunStarted, TaskSolved
from opsmith.learn.filter import keep, success_rate
from opsmith.learn.identity import run_info
from opsmith.learn.interrupt import stop_on_interrupt
from opsmith.learn.judge import Judge
from opsmith.learn.pause import obey
from opsmith.learn.result import RunResult, result_of
from opsmith.learn.sample import sample_round
from opsmith.learn.select import Past, Step, get_strategy
from opsmith.learn.session import Session
from opsmith.learn.start import begin, given_experiences, target_of, timed
from opsmith.models import Batched, ChatModel
from opsmith.records import Boundary, Candidate, Experience, Task
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
from opsmith.verification.verifier import canonical

_AUTHOR = Boundary.TASK.value
GRACE_S = 20.0  # for requests in flight after Ctrl-C
FLUSH_S = 30.0  # for a database that does not answer at all


def improve(
    tasks: Sequence[Task],
    model: ChatModel,
    settings: Settings,
    store: Store | None = None,
    *,
    judge: Judge,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
) -> RunResult:
    """Run adaptive self-improvement on `tasks` and return what came of it; see `improve_async`.

    Without a store the run is kept in a temporary one. The model's connections are closed at the end.
    """
    with contextlib.ExitStack() as stack:
        if store is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="opsmith-"))
            store = stack.enter_context(Store.open(Path(folder)))
        return asyncio.run(_interruptible(tasks, model, settings, store, judge, on_event, experiences))


async def _interruptible(
    tasks: Sequence[Task],
    model: ChatModel,
    settings: Settings,
    store: Store,
    judge: Judge,
    on_event: OnEvent | None,
    experiences: Sequence[Experience],
) -> RunResult:
    stop = asyncio.Event()
    try:
        with stop_on_interrupt(stop, lambda: store.hurry(GRACE_S)):
            return await improve_async(
                tasks, model, settings, store, judge, on_event=on_event, experiences=experiences, stop=stop
            )
    finally:
        await model.close()  # its connections belong to this event loop


async def improve_async(
    tasks: Sequence[Task],
    model: ChatModel,
    settings: Settings,
    store: Store,
    judge: Judge,
    *,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
    stop: asyncio.Event | None = None,
) -> RunResult:
    """Algorithm 1. The same call on the same store goes on where an earlier one was killed, or returns its result.

    `experiences`: where D starts, beside those of `settings.from_run`; tasks solved by them are not tried. `stop`: set
    it to end in good order. Raises ProviderError, VerifierError, StoreError or TaskError when it cannot go on; what
    was received by then is in the store.
    """
    emit = on_event or _ignore
    target = target_of(tasks, settings)
    given, budget = given_experiences(settings, store, experiences), budget_of(settings, store)
    info = run_info(tasks, given, budget, model, target, settings)
    known = store.info(info.id) is not None
    if store.end(info.id) is not None:
        return _told(store, info.id, emit)
    with store.lock(info.id), store.patient():
        store.recover(info.id)
        begin(store, info, tasks, given, settings)
        solved = {item.task.digest for item in given}
        done = tuple(task.id for task in tasks if task.digest in solved)
        emit(RunStarted(info.id, model.name, tuple(task.id for task in tasks), done, known))
        if isinstance(model, Batched):
            model.remember(StoreLedger(store))
        spent, usd = store.usage(info.id), known_usd(store, info.id)
        session = Session(info.id, settings, target, model, judge, store, emit, spent, usd)
        with timed(store, session):
            await _Loop(session, tasks, budget, stop or asyncio.Event()).run()
    return _told(store, info.id, emit)


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

    def __init__(self, session: Session, tasks: Sequence[Task], budget: Budget | None, stop: asyncio.Event) -> None:
        self.session = session
        self.tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self.budget = budget
        self.stop = stop
        self.strategy = get_strategy(session.settings.selection)

    async def run(self) -> None:
        """Until there is a reason to end; `session.halt` says so when the same command may go on."""
        while not self.session.halt:
            state = self._state()
            step = self._next(state)
            if isinstance(step, str):
                self.session.store.put([run_end_row(self.session.run, step)]).result()
                return
            await self._round(state, step)

    def _state(self) -> _State:
        store, run = self.session.store, self.session.run
        ended = [(info, solved) for info, solved in store.rounds(run) if solved is not None]
        past = tuple(Past(info.cycle, len(solved)) for info, solved in ended)
        experiences = tuple(kept.experience for kept in store.experiences(run))
        closed = {item.task.digest for item in experiences}
        closed_rounds = {info.number for info, _ in ended}
        charged = [(task, whom) for number, task, whom in store.charged(run) if number in closed_rounds]
        exhausted = {task for task, whom in charged if whom == NOBODY}
        given_up = {task for task, whom in charged if whom in (NOBODY, _AUTHOR)}
        unsolved = [task for task in self.tasks.values() if task.digest not in closed and task.id not in given_up]
        planned = sum(info.planned for info, _ in ended)
        left = {task.id for task in self.tasks.values() if task.digest not in closed}
        return _State(past, experiences, tuple(unsolved), planned, not left.isdisjoint(exhausted))

    def _next(self, state: _State) -> Step | str:
        """What the next round shows, or why there is none."""
        settings = self.session.settings
        if not state.unsolved:
            return "nothing left to try" if state.exhausted else "all solved"
        if settings.max_rounds is not None and len(state.past) >= settings.max_rounds:
            return "max rounds"
        if self._left(state) == 0:
            return "budget spent"
        step = self.strategy(state.experiences, state.past, settings.levels, settings.seed)
        return step or "demonstrations used up"

    async def _round(self, state: _State, step: Step) -> None:
        session = self.session
        left = self._left(state)
        keys = plan(session.run, len(state.past), [task.id for task in state.unsolved], session.settings, left)
        shown = tuple((item.task.id, Candidate(item.source).id) for item in step.shown(state.unsolved))
        attempted = tuple(task.id for task in state.unsolved)
        info = RoundInfo(len(state.past), step.cycle, step.level, shown, attempted, len(keys))
        prompts = {task.id: self._prompt(task, step) for task in state.unsolved}
        texts = [row for prompt in prompts.values() for row in prompt_rows(prompt.messages)[1]]
        session.store.put([round_row(session.run, info), *texts]).result()
        session.on_event(RoundStarted(info, len(session.store.judged(session.run, info.number))))
        await self._sampled(sample_round(session, keys, self.tasks, prompts))
        session.store.flush(FLUSH_S if session.halt else None)
        if session.error is not None:
            raise session.error
        if not session.halt:
            self._end_round(info, prompts)

    def _left(self, state: _State) -> int | None:
        """The samples that the budget allows the next round; None: any number."""
        if self.budget is None:
            return None
        return self.budget.left(state.planned, *self.session.store.spent_before(self.session.run, len(state.past)))

    def _prompt(self, task: Task, step: Step) -> Prompt:
        session = self.session
        settings, window = session.settings, session.model.context_window
        reserve = settings.max_tokens * (1 + 2 * settings.repair)  # each turn brings errors and one more reply
        shown = step.shown_to(task)
        prompt = compose(
            task, shown, session.target, window, reserve, ranked=step.nearest is not None, style=settings.prompt
        )
        if prompt.left_out:
            names = ", ".join(item.task.id for item in prompt.left_out)
            session.warn(f"task {task.id}: left out of its prompt to fit {window} tokens: {names}")
        return prompt

    async def _sampled(self, sampling: Coroutine[None, None, None]) -> None:
        """Run the sampling of a round; after `stop`, wait for what is in flight, but not for ever."""
        self.session.running.clear()  # until the store was asked whether the run is paused
        work = asyncio.create_task(sampling)
        stopped = asyncio.create_task(self.stop.wait())
        obeying = asyncio.create_task(obey(self.session))
        try:
            await asyncio.wait([work, stopped, obeying], return_when=asyncio.FIRST_COMPLETED)
            if obeying.done() and self.session.error is None:
                self.session.error = _store_error(obeying)
            if not work.done():
                self.session.halt = self.session.halt or "interrupted"
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

    def _end_round(self, info: RoundInfo, prompts: dict[str, Prompt]) -> None:
        """Filter what the round found, and close it: a round that is closed is never sampled again."""
        session, store = self.session, self.session.store
        tallies = store.tallies(session.run, info.number)
        unjudged = info.planned - sum(tally.judged for tally in tallies)
        charged = {whom for at, _, whom in store.charged(session.run) if at == info.number}
        if unjudged == info.planned and NOBODY not in charged:
            raise _nothing_judged(store, session.run, info.number)
        found = self._found(info.number, tallies, prompts)
        rows = [row for item in found for row in item.rows]
        solved = [item.experience.task.id for item in found]
        store.put([*rows, round_end_row(session.run, info.number, solved)]).result()
        for item in found:
            session.on_event(TaskSolved(item.experience, item.contaminated))
        session.on_event(RoundEnded(info, tuple(solved), unjudged, session.spent))

    def _found(self, number: int, tallies: Sequence[Tally], prompts: dict[str, Prompt]) -> list[_Found]:
        answers: dict[str, list[Answer]] = {}
        for answer in self.session.store.answers(self.session.run, number):
            answers.setdefault(answer.task, []).append(answer)
        of_task: dict[str, list[Tally]] = {}
        for tally in tallies:
            of_task.setdefault(tally.task, []).append(tally)
        rates = {task: success_rate(of_task[task]) for task in answers}
        return [self._kept(number, answers[task], rates[task], prompts[task]) for task in sorted(answers)]

    def _kept(self, number: int, answers: Sequence[Answer], rate: float, prompt: Prompt) -> _Found:
        session, task = self.session, self.tasks[answers[0].task]
        names = {answer.source: canonical(task, answer.source) for answer in answers}
        comment = getattr(session.target, "comment", "#")
        best = keep(answers, names.__getitem__, session.settings.seed, comment)
        experience = Experience(task, best.source, rate, number, session.run)
        examples = {canonical(task, program) for _, program in read_prompt(prompt.messages, session.target).examples}
        contaminated = names[best.source] in examples
        return _Found(experience, contaminated, experience_rows(session.run, experience, best.sample, contaminated))


@dataclass(frozen=True)
class _Found:
    experience: Experience
    contaminated: bool
    rows: list[Row]


def plan(run: str, number: int, tasks: Sequence[str], settings: Settings, left: int | None = None) -> list[SampleKey]:
    """The samples of a round, task by task; `left`: how many the budget allows, spread evenly over the tasks."""
    order = {task: at for at, task in enumerate(tasks)}
    keys = [
        SampleKey(run, number, task, temperature, index)
        for index in range(settings.samples)
        for temperature in settings.temperatures
        for task in tasks
    ]
    return sorted(keys[:left], key=lambda key: (order[key.task], key.temperature, key.number))


def _told(store: Store, run: str, emit: OnEvent) -> RunResult:
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
    failures = store.failures(run, number)
    _, charged, message = failures[-1] if failures else ("", Boundary.OURS.value, "no sample was made")
    kinds: dict[str, type[OpsmithError]] = {Boundary.PROVIDER.value: ProviderError, Boundary.TASK.value: TaskError}
    return kinds.get(charged, VerifierError)(f"run {run}, round {number}: no sample could be judged; last: {message}")


def _ignore(event: Event) -> None:
    """Nobody watches."""
