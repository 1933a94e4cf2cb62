"""Work of a session, awaited until it is done or something ends it: Ctrl-C, a pause that nobody ends, the store.

Somebody who watches asks for a pause in the store, so that any process may. Requests in flight are finished; no new one
starts until the wish is taken back, in this session or a later one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine

from opsmith.errors import OpsmithError, StoreError, UsageError
from opsmith.learn.events import Stopping, Warned
from opsmith.learn.session import RunSession
from opsmith.models import Batched
from opsmith.store import Store
from opsmith.store.rows import Wish, control_row

GRACE_S = 20.0  # for requests in flight after Ctrl-C
LOOK_S = 0.5  # between two questions whether the run is paused
FLUSH_S = 30.0  # for a database that does not answer at all
_PAUSED = "paused: no new request starts before `opsmith resume {run}`"


class Attendant:
    """`stop`: set it to end in good order."""

    def __init__(self, session: RunSession, stop: asyncio.Event) -> None:
        self.session = session
        self.stop = stop

    async def await_work(self, work: Coroutine[None, None, None]) -> None:
        """Until it is done, or the session halts. Raises the error that the session ends with."""
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
                    in_batches = isinstance(self.session.model, Batched)
                    waiting = Stopping(self.session.asking, self.session.judging, GRACE_S, in_batches)
                    self.session.on_event(waiting)
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


def _store_error(obeying: asyncio.Task[None]) -> OpsmithError | None:
    """Why nobody can tell any more whether the run is paused."""
    error = obeying.exception()
    return error if error is None or isinstance(error, OpsmithError) else StoreError(f"{type(error).__name__}: {error}")


async def obey_wishes(session: RunSession) -> None:
    """Keep `session.running` as the store says, until cancelled; nothing starts either while nothing can be stored.

    It is cleared before. Raises StoreError when the store cannot be asked.
    """
    paused = False
    while True:
        if session.store.trouble:  # it says so itself, and would not answer
            session.running.clear()
        else:
            wished = await asyncio.to_thread(session.store.is_paused, session.run)
            if wished != paused:
                session.on_event(Warned(_PAUSED.format(run=session.run) if wished else "resumed"))
            paused = wished
            (session.running.clear if paused else session.running.set)()
        await asyncio.sleep(LOOK_S)


def store_wish(store: Store, run: str, wish: Wish) -> None:
    """Store the wish, for whichever process works on the run. Raises UsageError when the run is finished."""
    end = store.end_reason(run)
    if end is not None:
        raise UsageError(f"run {run}: it is finished ({end}); only one that goes on can be paused or resumed")
    store.put([control_row(run, wish)]).result()
