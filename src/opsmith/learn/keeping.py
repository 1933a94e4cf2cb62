"""What would be kept is judged at the full level first, and the verdict is stored before anything goes by it.

A program that is refused there makes its samples refused, from the end of the round on (`store.overruling`); one that
cannot be judged there is not kept, and counts as what it was. A run that was killed asks for no such verdict twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from opsmith.errors import VerifierError
from opsmith.learn.session import RunSession
from opsmith.records import Candidate, Level, Outcome, Task
from opsmith.store.overruling import find_full_verdict
from opsmith.store.rows import full_verdict_rows


async def judge_fully(session: RunSession, task: Task, source: str, samples: Sequence[str]) -> Outcome:
    """What the full level says of a program for a task; `samples`: those of the round that hold it, the one first that
    it would be kept from."""
    store, run = session.store, session.run
    verdict = find_full_verdict(store, run, task.id, Candidate(source).id)
    if verdict is None:
        try:
            verdict = await session.judge.judge(task, source, Level.FULL)
        except VerifierError as error:
            session.warn_once(f"task {task.id}: a program was not judged at the full level, so it is not kept: {error}")
            return Outcome.UNJUDGED
    if verdict.outcome is Outcome.UNJUDGED:
        reason = verdict.message
        session.warn_once(f"task {task.id}: a program was not judged at the full level, so it is not kept: {reason}")
        return verdict.outcome
    judged = samples if verdict.outcome is Outcome.REFUSED else samples[:1]
    rows = [row for sample in judged for row in full_verdict_rows(run, sample, verdict)]
    await asyncio.wrap_future(store.put(rows))
    if verdict.outcome is Outcome.REFUSED:
        session.warn_once(f"task {task.id}: a program that was right so far was refused at the full level")
    return verdict.outcome
