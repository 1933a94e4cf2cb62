"""Which verdicts are under way in which processes, so that those whose verdicts nobody waits for any longer end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from opsmith.errors import VerifierError
from opsmith.records import Verdict

_Futures = Sequence["Future[Verdict]"]


@dataclass(eq=False)
class _Work:
    """What one thread of the pool is at: the verdicts of a batch, and how the processes end that it waits for."""

    futures: _Futures
    abandoned: set[int] = field(default_factory=set)  # indices of futures
    ends: list[Callable[[], None]] = field(default_factory=list)

    @property
    def is_abandoned(self) -> bool:
        return len(self.abandoned) == len(self.futures)


class WorkUnderWay:
    """Thread-safe. A thread holds at most one batch at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, _Work] = {}

    @contextlib.contextmanager
    def hold_futures(self, futures: _Futures) -> Iterator[None]:
        """While this thread finds these verdicts."""
        thread = threading.get_ident()
        with self._lock:
            self._by_thread[thread] = _Work(futures)
        try:
            yield
        finally:
            with self._lock:
                del self._by_thread[thread]

    @contextlib.contextmanager
    def hold_worker(self, end: Callable[[], None]) -> Iterator[None]:
        """While this thread waits for a worker. Work that is no verdict of a batch is nobody's to end."""
        work = self._by_thread.get(threading.get_ident())
        if work is None:
            yield
            return
        with self._lock:
            work.ends = [end]
        try:
            self.refuse_abandoned()
            yield
        finally:
            with self._lock:
                work.ends = []

    def add_process(self, end: Callable[[], None]) -> None:
        """This thread waits for a candidate's process too, beside the worker that it holds."""
        if (work := self._by_thread.get(threading.get_ident())) is not None:
            work.ends.append(end)

    def abandon_future(self, future: Future[Verdict]) -> Sequence[Callable[[], None]]:
        """Nobody waits for it any longer. How the processes end, where that holds for all that they work on."""
        with self._lock:
            for work in self._by_thread.values():
                for index, waiting in enumerate(work.futures):
                    if waiting is future:
                        work.abandoned.add(index)
                        return tuple(work.ends) if work.is_abandoned else ()
        return ()

    def refuse_abandoned(self) -> None:
        """Raises VerifierError where nobody waits for what this thread is at."""
        work = self._by_thread.get(threading.get_ident())
        if work is not None and work.is_abandoned:
            raise VerifierError("verifier: nobody waits for this verdict any longer")
