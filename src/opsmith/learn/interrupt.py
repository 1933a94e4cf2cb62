"""Ctrl-C, SIGTERM and a closed terminal end a run: the first in good order, a second one at once.

What was received is stored. A terminal that is closed says so up to three times (SIGHUP from the kernel and from the
shell), so that only its first word counts; where it is ignored (`nohup`) it stays so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from opsmith.terminal import hangup_signals

EXIT_CODE = 130  # as a shell reports a program that was ended by Ctrl-C


@contextlib.contextmanager
def stop_on_interrupt(stop: asyncio.Event, hurry: Callable[[], None]) -> Iterator[None]:
    """While inside, the first signal sets `stop` and calls `hurry`, which ends what blocks the event loop; a second one
    ends the process. Does nothing outside the main thread. Once a terminal was closed, SIGHUP stays ignored.
    """
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = 0

    def handle_signal(number: int, _: FrameType | None) -> None:
        nonlocal interrupts
        if number in hangup_signals():
            signal.signal(number, signal.SIG_IGN)
        else:
            interrupts += 1
        if interrupts > 1:
            with contextlib.suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(EXIT_CODE)
        hurry()
        loop.call_soon_threadsafe(stop.set)

    earlier = {
        number: signal.signal(number, handle_signal) for number in (signal.SIGINT, signal.SIGTERM, *hangup_signals())
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            if signal.getsignal(number) is handle_signal:
                signal.signal(number, handler)
