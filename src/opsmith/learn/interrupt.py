"""How does Ctrl-C end a run? The first one in good order, the second at once; what was received is in the store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

EXIT_CODE = 130  # as a shell reports a program that was ended by Ctrl-C


@contextlib.contextmanager
def stop_on_interrupt(stop: asyncio.Event) -> Iterator[None]:
    """While inside, Ctrl-C sets `stop`; a second one ends the process. Does nothing outside the main thread."""
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if stop.is_set():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(EXIT_CODE)
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt there
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
