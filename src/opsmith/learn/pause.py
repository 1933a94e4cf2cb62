"""Pauses that somebody who watches asks for. Asked of the store, so that it may be said by any process.

Requests in flight are finished; no new one starts until the wish is taken back, in this session or a later one.
"""

from __future__ import annotations

import asyncio

from opsmith.errors import UsageError
from opsmith.learn.events import Warned
from opsmith.learn.session import RunSession
from opsmith.store import Store
from opsmith.store.rows import Wish, control_row

LOOK_S = 0.5
_PAUSED = "paused: no new request starts before `opsmith resume {run}`"


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
