"""Events for open pages: one poller per subject (a run, or the list of runs) makes the subject's fragments while
somebody looks, and every page is sent those that it has not got.

A page that is slow misses versions in between, never the last one; nothing is queued for it. A poller ends with its
last page.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

from opsmith.errors import OpsmithError

LOOK_S = 0.5  # between two looks at the store
STILL_HERE_S = 15.0  # after which a silent connection gets a comment: it is how one that is gone is noticed
END = "end"  # the event after the last


@dataclass(frozen=True)
class Fragments:
    """Parts of a page by name, as HTML; `last`: nothing follows."""

    html_by_name: Mapping[str, str]
    last: bool = False


@dataclass
class _Subject:
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    fragments: Fragments | None = None
    pages: int = 0
    poller: asyncio.Task[None] | None = None
    error: Exception | None = None  # what ended the poller too early


class Feed:
    """Lives in one event loop; `make` is called in a thread, for one subject never twice at the same time."""

    def __init__(self, make: Callable[[str], Fragments]) -> None:
        self._make = make
        self._subjects: dict[str, _Subject] = {}
        self._closing = False

    @property
    def page_counts(self) -> dict[str, int]:
        """The subjects that somebody looks at, and on how many pages."""
        return {name: subject.pages for name, subject in self._subjects.items()}

    async def stream_events(self, name: str) -> AsyncIterator[str]:
        """What is sent to one page, as server-sent events, until the subject ends or the server does."""
        subject = self._subjects.setdefault(name, _Subject())
        subject.pages += 1
        if subject.poller is None or subject.poller.done():
            subject.error = None
            subject.poller = asyncio.create_task(self._poll_subject(name, subject))
        try:
            async for event in self._follow_subject(subject):
                yield event
        finally:
            subject.pages -= 1
            if subject.pages == 0:
                self._subjects.pop(name, None)
                subject.poller.cancel()

    async def close(self) -> None:
        """End every stream."""
        self._closing = True
        for subject in list(self._subjects.values()):
            async with subject.changed:
                subject.changed.notify_all()

    async def _follow_subject(self, subject: _Subject) -> AsyncIterator[str]:
        got: dict[str, str] = {}
        yield "retry: 2000\n\n"
        while not self._closing:
            fragments = subject.fragments
            news = {} if fragments is None else {k: v for k, v in fragments.html_by_name.items() if got.get(k) != v}
            for name, html in news.items():
                yield format_event(name, html)
            got.update(news)
            if fragments is not None and fragments.last:
                yield format_event(END, "")
                return
            if subject.error is not None:
                raise subject.error  # the browser asks again, and gets a new poller
            if not await self._await_change(subject, fragments):
                yield ": still here\n\n"

    async def _await_change(self, subject: _Subject, fragments: Fragments | None) -> bool:
        """Wait for something new; False when nothing came for a while."""
        try:
            async with asyncio.timeout(STILL_HERE_S), subject.changed:
                await subject.changed.wait_for(
                    lambda: self._closing or subject.error or subject.fragments is not fragments
                )
        except TimeoutError:
            return False
        return True

    async def _poll_subject(self, name: str, subject: _Subject) -> None:
        while not (subject.error or (subject.fragments and subject.fragments.last)):
            fragments = subject.fragments
            try:
                fragments = await asyncio.to_thread(self._make, name)
            except OpsmithError:
                pass  # a store that is locked for a moment: the next look tells
            except Exception as error:
                subject.error = error
            if fragments != subject.fragments or subject.error:
                async with subject.changed:
                    subject.fragments = fragments
                    subject.changed.notify_all()
            await asyncio.sleep(LOOK_S)


def format_event(name: str, data: str) -> str:
    """
    >>> format_event("state", "<b>a</b>\\n<i>b</i>")
    'event: state\\ndata: <b>a</b>\\ndata: <i>b</i>\\n\\n'
    """
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
