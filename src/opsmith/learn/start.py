"""What does a run start from, and when did a session of it begin and end?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from opsmith.agents.prompt import base_prompt
from opsmith.errors import OpsmithError, StoreError, UsageError
from opsmith.learn.identity import commit, plain, surroundings
from opsmith.learn.session import Session
from opsmith.records import Experience, Task
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import RunInfo, experience_rows, run_rows, session_end_row, session_row
from opsmith.targets import Target, get_target


def given_experiences(settings: Settings, store: Store, experiences: Sequence[Experience]) -> list[Experience]:
    """Where D starts; of several solutions of a task, the first."""
    earlier = store.experiences(store.find_run(settings.from_run)) if settings.from_run else []
    every = [*(kept.experience for kept in earlier), *experiences]
    return list({item.task.digest: item for item in reversed(every)}.values())[::-1]


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
    if settings.agents == "agent" and settings.guardian == "llm" and target.guardian_prompt() is None:
        raise UsageError(f"guardian llm: target {target.name!r} has no guardian prompt; try --agents single")
    base_prompt(target, settings.prompt)
    return target


def begin(store: Store, info: RunInfo, tasks: Sequence[Task], given: Sequence[Experience], settings: Settings) -> None:
    rows = run_rows(info, tasks)
    for item in given:
        rows += experience_rows(info.id, item, None, False)
    store.put([*rows, session_row(info.id, plain(settings), surroundings(), commit())]).result()


@contextlib.contextmanager
def timed(store: Store, session: Session) -> Iterator[None]:
    """Record how long a session took and why it ended."""
    start = time.monotonic()
    reason = "failed"
    try:
        yield
        reason = session.halt or "finished"
    except OpsmithError as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        written = store.put([session_end_row(session.run, reason, time.monotonic() - start)])
        with contextlib.suppress(StoreError):  # then it is the error that is on its way already
            written.result()
