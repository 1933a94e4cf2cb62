"""How does Ctrl-C (or SIGTERM) end a run? The first in good order, the second at once; what was received is stored."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

EXIT_CODE = 130  # as a shell reports a program that was ended by Ctrl-C


@contextlib.contextmanager
def stop_on_interrupt(stop: asyncio.Event, hurry: Callable[[], None]) -> Iterator[None]:
    """While inside, the first signal sets `stop` and calls `hurry`, which ends what blocks the event loop; a second one
    ends the process. Does nothing outside the main thread.
    """
    loop = asyncio.get_running_loop()
    signals = [signal.SIGINT, signal.SIGTERM]
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = 0

    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_CODE)
        hurry()
        loop.call_soon_threadsafe(stop.set)

    earlier = [signal.signal(number, interrupt) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, earlier, strict=True):
            signal.signal(number, handler)
