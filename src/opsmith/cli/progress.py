"""How far a long command is: one line on stderr, where that is a terminal, and nothing elsewhere."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

PER_SECOND = 2  # how often the line is drawn: it stands beside measurements


@contextmanager
def show_progress(first: str) -> Iterator[Callable[[str], None]]:
    """A function that is told what the command is at; the line lives as long as the context."""
    from opsmith.report.tables import open_console

    with open_console(stderr=True).status(first, refresh_per_second=PER_SECOND) as status:
        yield status.update
