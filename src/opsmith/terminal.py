"""What this process prints passes here, so that no text of others can steer the terminal that shows it.

`guard_output` puts a `PlainStream` in the place of stdout and of stderr. Whatever is printed then, by a command, a
library or a traceback, reaches the terminal without control characters, escape sequences and marks that turn the
direction of reading. What may steer the terminal (our own colours, the display of a run) goes through `own_stream`; who
writes there answers for the texts of others in it, as `opsmith.report.fitting` does.

A reader who has gone ends nothing: a terminal that was closed, or a pipe for messages, takes what is written from then
on and shows it to nobody. Only results that go into a closed pipe raise, as the shell's tools expect.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from contextvars import ContextVar
from types import FrameType
from typing import TextIO, cast

from opsmith.records import printable

has_wide_tables: ContextVar[bool] = ContextVar("has_wide_tables", default=False)  # not cut to the terminal's lines

Stream = TextIO | io.TextIOBase


class _Stream(io.TextIOBase):
    """A stream of text in front of another one. It has no `buffer`, through which one could write past it."""

    def __init__(self, behind: Stream) -> None:
        self._behind = behind

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute there
        return self._behind.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._behind.errors

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._behind.fileno()

    def isatty(self) -> bool:
        return self._behind.isatty()

    def flush(self) -> None:
        self._behind.flush()


class OwnStream(_Stream):
    """stdout or stderr as it is, but for readers who have gone: `forgiven` are the errors that say so."""

    def __init__(self, behind: Stream, forgiven: frozenset[int]) -> None:
        super().__init__(behind)
        self._forgiven = forgiven

    def write(self, text: str) -> int:
        try:
            return self._behind.write(text)
        except OSError as error:
            self._write_to_nobody(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._behind.flush()
        except OSError as error:
            self._write_to_nobody(error)

    def _write_to_nobody(self, error: OSError) -> None:
        if error.errno not in self._forgiven:
            raise error
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, self._behind.fileno())
        os.close(nobody)


class PlainStream(_Stream):
    """A stream for texts of anybody: characters that are not printed are replaced, newlines and tabs stay."""

    @property
    def own(self) -> TextIO:
        """The stream behind it, which takes everything as it is."""
        return cast(TextIO, self._behind)

    def write(self, text: str) -> int:
        self._behind.write(printable(text.replace("\r\n", "\n"), keep="\n\t"))
        return len(text)


def guard_output() -> None:
    """From now on nothing that is printed steers the terminal, whoever prints it."""
    for name, forgiven in (("stdout", {errno.EIO}), ("stderr", {errno.EIO, errno.EPIPE})):
        stream = getattr(sys, name)
        if stream is not None:  # it is closed: `opsmith ... >&-`
            stream.reconfigure(errors="backslashreplace")  # what takes a character's place may be unknown there too
            setattr(sys, name, PlainStream(OwnStream(stream, frozenset(forgiven))))


def hangup_signals() -> tuple[int, ...]:
    """The signal of a terminal that is closed, unless it is ignored, as under `nohup`, or the system has none."""
    number = getattr(signal, "SIGHUP", None)
    return () if number is None or signal.getsignal(number) is signal.SIG_IGN else (number,)


def interrupt_on_hangup() -> None:
    """From now on a terminal that is closed interrupts this process as Ctrl-C does, once."""

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in hangup_signals():
        signal.signal(number, interrupt)


def own_stream(stream: TextIO) -> TextIO:
    """The stream that takes everything as it is; `stream` itself where nothing guards it."""
    return stream.own if isinstance(stream, PlainStream) else stream


def write_document(text: str) -> None:
    """Print what is to be a file: as it is into a file or a pipe, and on a terminal like all else."""
    stream = sys.stdout if sys.stdout is None or sys.stdout.isatty() else own_stream(sys.stdout)
    print(text, end="", file=stream)
