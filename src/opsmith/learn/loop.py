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
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from opsmith.agents.manual import find_manual
from opsmith.by_name import import_by_name
from opsmith.judging.judge import Judge, Secretive
from opsmith.learn.attend import GRACE_S, Attendant
from opsmith.learn.briefs import BriefSource
from opsmith.learn.budget import Budget, budget_of
from opsmith.learn.events import (
    Event,
    OnEvent,
    RunEnded,
    Warned,
)
from opsmith.learn.functional import FunctionalPhase
from opsmith.learn.identity import plain_settings, run_info
from opsmith.learn.interrupt import stop_on_interrupt
from opsmith.learn.known import KnownPrograms, judge_known, read_known
from opsmith.learn.optimisation import OptimisationPhase, choose_objective, read_briefs
from opsmith.learn.planning import require_planning
from opsmith.learn.references import require_references
from opsmith.learn.session import RunSession
from opsmith.learn.start import (
    begin_run,
    describe_start,
    discard_refused,
    given_experiences,
    target_of,
    time_session,
)
from opsmith.measuring.orders import Measurer
from opsmith.models import Batched, ChatModel, Recorded
from opsmith.models.roles import RoleModels, gather_models
from opsmith.profiling.profiler import ProfileSource
from opsmith.records import Experience, Task
from opsmith.results.result import RunResult, result_of
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.batches import StoreLedger
from opsmith.store.notes import name_run
from opsmith.store.rows import JOIN, run_end_row
from opsmith.store.spending import known_usd

_JOINER = "opsmith_lab.models.joining:JoinModel"
_OVER = "the run is over, so that nothing is measured now; for what it solved: opsmith measure {run}"


class Phase(Protocol):
    """Rounds of one purpose. Its state is what the store holds, so that it may begin anywhere in it."""

    async def run(self) -> str:
        """Why it is over; "" where `session.halt` says that the same command may go on."""


def improve(  # noqa: PLR0913  (as `improve_async`)
    tasks: Sequence[Task],
    model: ChatModel | RoleModels,
    settings: Settings,
    store: Store | None = None,
    *,
    judge: Judge,
    measurer: Measurer | None = None,
    profiler: ProfileSource | None = None,
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
            profiler=profiler,
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
    profiler: ProfileSource | None = None,
    on_event: OnEvent | None = None,
    experiences: Sequence[Experience] = (),
    stop: asyncio.Event | None = None,
) -> RunResult:
    """Algorithm 1, and the optimisation phase after it, where the settings ask for one. The same call on the same store
    goes on where an earlier one was killed, or returns its result.

    `measurer`: what times programs, where the settings ask for it; `profiler`: what says why they are as fast.
    `experiences`: where D starts, beside those of `from_run`; tasks solved by them are not tried. `stop`: set it to end
    in good order. Raises ProviderError, VerifierError, StoreError or TaskError when it cannot go on; what was received
    by then is in the store.
    """
    emit = on_event or _ignore_event
    models, target = gather_models(model), target_of(tasks, settings)
    settings = choose_objective(settings, tasks)
    known, budget = read_known(settings, tasks), budget_of(settings, store)
    tasks, start = known.tasks, given_experiences(settings.method.from_run, store, experiences)
    require_planning(settings.teamwork.planning.plan, target, models, judge)
    references = require_references(settings.teamwork.showing.translate, tasks, store)
    showing = settings.teamwork.showing
    manual = find_manual(target, showing.manual, showing.manual_tokens, showing.manual_sections, settings.seed)
    shown = {"manual": "" if manual is None else manual.digest, "known": known.digest}
    info = run_info(tasks, start, budget, models, target, settings, references, shown)
    if settings.place.name is not None:
        name_run(store, info.id, settings.place.name)
    resumed = store.read_info(info.id) is not None
    if store.end_reason(info.id) is not None:
        if measurer is not None:
            emit(Warned(_OVER.format(run=info.id)))
        return _report_end(store, info.id, emit)
    if settings.teamwork.planning.plan != "none":
        models = replace(models, programs={JOIN: import_by_name(_JOINER, "--plan")(target)})
    briefs = read_briefs(settings, tasks, store, measurer, profiler) if settings.optimisation.optimise else None
    with discard_refused(store, info.id, resumed), store.lock(info.id), store.wait_patiently():
        store.check_file()
        store.recover_rows(info.id)
        first = () if known.programs else start  # else when those are judged
        secret = begin_run(store, info, tasks, first, plain_settings(settings), _find_recorded(models))
        judge = judge.with_secret(secret) if isinstance(judge, Secretive) else judge
        emit(describe_start(store, info, tasks, start, resumed))
        for chat in models.list_models():
            if isinstance(chat, Batched):
                chat.use_ledger(StoreLedger(store))
        spent, usd, number = store.sum_usage(info.id), known_usd(store, info.id), store.session_count(info.id)
        session = RunSession(
            info.id, settings, target, models, judge, store, emit, spent, measurer, profiler, usd, number
        )
        session.references, session.manual = references, manual
        with time_session(store, session):
            await _run_phases(session, known, start, budget, Attendant(session, stop or asyncio.Event()), briefs)
    return _report_end(store, info.id, emit)


async def _run_phases(
    session: RunSession,
    known: KnownPrograms,
    start: Sequence[Experience],
    budget: Budget | None,
    attendant: Attendant,
    briefs: BriefSource | None,
) -> None:
    """One after the other, until the session halts; a phase that is over finds that out from the store at once. Before
    them, what is known is judged. `briefs`: of the optimisation phase, if there is one."""
    if known.digest:
        await attendant.await_work(judge_known(session, known, start))
    phases: list[Phase] = [FunctionalPhase(session, known.tasks, budget, attendant)]
    if briefs is not None:
        phases.append(OptimisationPhase(session, known.tasks, budget, attendant, briefs))
    reasons = []
    for phase in phases:
        if not session.halt:
            reasons.append(await phase.run())
    if session.halt:
        return
    session.store.put([run_end_row(session.run, "; ".join(reasons))]).result()


def _find_recorded(models: RoleModels) -> str | None:
    """The secret of the run that a model plays back; None: none does."""
    return next((chat.secret for chat in models.list_models() if isinstance(chat, Recorded)), None)


def _report_end(store: Store, run: str, emit: OnEvent) -> RunResult:
    store.flush()
    result = result_of(store, run)
    emit(RunEnded(result))
    return result


def _ignore_event(event: Event) -> None:
    """Nobody watches."""
