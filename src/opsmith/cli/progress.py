"""How far a command is that takes a while: one line on stderr, redrawn on a terminal; elsewhere a line a minute.

On a terminal the line appears after a second, is redrawn twice a second with the time so far, and is gone at the end.
Whoever prints a result meanwhile says `tell("")` first, which takes the line away until something else is told.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from opsmith.records import printable
from opsmith.terminal import own_stream

DELAY_S = 1.0  # before it appears
PER_SECOND = 2  # how often it is drawn: it stands beside measurements
EVERY_S = 60.0  # between two lines in a log
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """The line, drawn by a thread of its own."""

    def __init__(self, stream: TextIO, text: str) -> None:
        self._stream, self._text, self._is_redrawn = stream, text, takes_lines(stream)
        self._began, self._is_drawn = time.monotonic(), False
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep_drawing, daemon=True)
        self._thread.start()

    def update_text(self, text: str) -> None:
        """What the command is at; empty: the line goes until the next text."""
        with self._lock:
            self._text = text
            if not text:
                self._erase()

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        with self._lock:
            self._erase()

    def _keep_drawing(self) -> None:
        wait = DELAY_S if self._is_redrawn else EVERY_S
        while not self._end.wait(wait):
            wait = 1 / PER_SECOND if self._is_redrawn else EVERY_S
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self._text:
            line = f"{time.monotonic() - self._began:.0f} s  {printable(self._text)}"
            if not self._is_redrawn:
                print(line, file=self._stream, flush=True)
                return
            width = _measure_width(self._stream)
            self._stream.write(_CLEAR + (line if len(line) < width else f"{line[: width - 2]}…"))
            self._stream.flush()
            self._is_drawn = True

    def _erase(self) -> None:
        if self._is_drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._is_drawn = False


@contextmanager
def show_progress(first: str) -> Iterator[Callable[[str], None]]:
    """A function that is told what the command is at; the line lives as long as the context."""
    if sys.stderr is None:
        yield lambda text: None
        return
    line = ProgressLine(own_stream(sys.stderr), first)
    try:
        yield line.update_text
    finally:
        line.close()


def takes_lines(stream: TextIO | None) -> bool:
    """Whether a line can be drawn there and taken away again."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _measure_width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80
