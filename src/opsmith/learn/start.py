"""What a run starts from, and when its sessions begin and end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opsmith.agents.prompt import write_system_prompt
from opsmith.errors import OpsmithError, StoreError, UsageError
from opsmith.judging.installation import choose_secret
from opsmith.learn.events import RunStarted
from opsmith.learn.identity import describe_surroundings, read_commit
from opsmith.learn.session import RunSession
from opsmith.records import Experience, Task
from opsmith.results.bests import list_best
from opsmith.results.problems import digest_problems
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import RunInfo, experience_rows, run_rows, session_end_row, session_row
from opsmith.targets import Target, get_target
from opsmith.targets.protocols import GUARDIAN


def given_experiences(from_run: str | None, store: Store, experiences: Sequence[Experience]) -> list[Experience]:
    """Where D starts; of several solutions of a task, the first."""
    earlier = list_best(store, store.find_run(from_run)) if from_run else []
    solved = [best.experience for best in earlier]
    solved = [replace(each, round=-1) if each.is_known else each for each in solved]  # given to that run, once
    every = [*solved, *experiences]
    return list({experience.task.digest: experience for experience in reversed(every)}.values())[::-1]


def target_of(tasks: Sequence[Task], settings: Settings) -> Target:
    """The one target of all tasks. Raises UsageError when there is none, or it lacks what the settings ask for."""
    names = sorted({task.target for task in tasks})
    if len(names) != 1:
        raise UsageError(
            f"tasks: expected at least one, all of one target; given targets: {', '.join(names) or 'none'}"
        )
    ids = [task.id for task in tasks]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise UsageError(f"tasks: given twice: {', '.join(twice)}; each task needs an id of its own")
    target = get_target(names[0])
    asks_guardian = settings.method.agents == "agent" and settings.method.guardian == "llm"
    if asks_guardian and target.base_prompt(GUARDIAN) is None:
        raise UsageError(f"guardian llm: target {target.name!r} has no guardian prompt; try --agents single")
    write_system_prompt(target, settings.method.prompt)
    return target


def begin_run(
    store: Store,
    info: RunInfo,
    tasks: Sequence[Task],
    start: Sequence[Experience],
    settings: Mapping[str, Any],
    recorded: str | None = None,
) -> str:
    """The run's secret, which is made when the run is; `recorded`: that of a run that is played back."""
    rows = run_rows(info, tasks, digest_problems(tasks), choose_secret(recorded))
    for experience in start:
        rows += experience_rows(info.id, experience, None, False)
    store.put([*rows, session_row(info.id, settings, describe_surroundings(), read_commit())]).result()
    return store.read_secret(info.id)


def describe_start(
    store: Store, info: RunInfo, tasks: Sequence[Task], start: Sequence[Experience], resumed: bool
) -> RunStarted:
    """What those who watch are told first."""
    taken = [kept.experience for kept in store.read_experiences(info.id) if kept.experience.is_known]
    known = {experience.task.digest for experience in taken}
    solved = {experience.task.digest for experience in start} - known
    named = (tuple(task.id for task in tasks if task.digest in digests) for digests in (solved, known))
    return RunStarted(info.id, info.model, tuple(task.id for task in tasks), next(named), resumed, next(named))


@contextlib.contextmanager
def discard_refused(store: Store, run: str, resumed: bool) -> Iterator[None]:
    """A new run that is refused before anything was asked leaves nothing in the store. Around the run's lock."""
    try:
        yield
    except UsageError:
        if not resumed and store.read_info(run) is not None and not store.sum_usage(run).requests:
            store.delete_run(run)
        raise


@contextlib.contextmanager
def time_session(store: Store, session: RunSession) -> Iterator[None]:
    """Record how long a session took and why it ended."""
    start = time.monotonic()
    reason = "failed"
    try:
        yield
        reason = session.end
    except OpsmithError as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        written = store.put([session_end_row(session.run, reason, time.monotonic() - start)])
        with contextlib.suppress(StoreError):  # then it is the error that is on its way already
            written.result()
