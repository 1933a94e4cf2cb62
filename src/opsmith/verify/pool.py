"""Verdicts from warm worker processes: `Pool.submit(task, source) -> Future[Verdict]`.

Each worker is a fork of one nursery process that has torch loaded (see `worker.py`), so that a worker starts in
milliseconds and a dead one costs little. Requests and verdicts are JSON on one socket per worker. A worker that dies
or passes its deadline is replaced; its candidate is tried once more, alone among such candidates, in a fresh worker,
and is then unjudged, charged to SANDBOX. It promises that the caller survives, not that authors' code is confined.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from opsmith.errors import VerifierError
from opsmith.records import Boundary, Diagnostic, Task, Verdict
from opsmith.verify.nursery import Nursery, Worker
from opsmith.verify.verifier import unjudged

DEADLINE_S = 60.0  # for one candidate, the first of a task included, which draws the data of all trials


class Pool:
    """`workers` processes, started when first needed; a context manager. Thread-safe."""

    def __init__(self, workers: int = 2, deadline: float = DEADLINE_S) -> None:
        self._deadline = deadline
        self._nursery = Nursery()
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._alone = threading.Lock()
        self._threads = ThreadPoolExecutor(max(1, workers), thread_name_prefix="opsmith-verify")

    def submit(self, task: Task, source: str) -> Future[Verdict]:
        """The verdict to come. The future raises VerifierError only when no worker can be started at all."""
        try:
            return self._threads.submit(self._verdict, task, source)
        except RuntimeError as error:  # after close()
            raise VerifierError(f"verifier: the pool of workers is closed ({error})") from error

    async def judge(self, task: Task, source: str) -> Verdict:
        return await asyncio.wrap_future(self.submit(task, source))

    def verify(self, task: Task, source: str) -> Verdict:
        return self.submit(task, source).result()

    def verify_all(self, task: Task, sources: Sequence[str]) -> list[Verdict]:
        """The verdicts in the order of `sources`, found in parallel."""
        return [future.result() for future in [self.submit(task, source) for source in sources]]

    def close(self) -> None:
        """Kill the workers; candidates that were not judged yet are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._nursery.close()
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            self._idle.get().connection.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _verdict(self, task: Task, source: str) -> Verdict:
        with contextlib.suppress(_WorkerLostError):
            return self._ask(self._idle_or_new(), task, source)
        with self._alone:
            try:
                return self._ask(self._nursery.fork(), task, source)
            except _WorkerLostError as lost:
                return unjudged(source, Boundary.SANDBOX, _finding(lost))

    def _idle_or_new(self) -> Worker:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._nursery.fork()

    def _ask(self, worker: Worker, task: Task, source: str) -> Verdict:
        """One request to one worker, which is idle again afterwards, or gone."""
        try:
            verdict = worker.ask(task, source, self._deadline)
        except TimeoutError:
            self._nursery.kill(worker)
            raise _WorkerLostError(f"no verdict within {self._deadline:g} s") from None
        except (OSError, EOFError, ValueError, LookupError, TypeError):  # it hung up, or said what is no verdict
            raise _WorkerLostError(f"a worker that {self._nursery.kill(worker)}") from None
        self._idle.put(worker)
        return verdict


class _WorkerLostError(Exception):
    """A worker died, was too slow or answered nonsense; the text says which."""


def _finding(lost: _WorkerLostError) -> Diagnostic:
    return Diagnostic(
        kind="SANDBOX",
        where="a worker process, twice",
        given=str(lost),
        expected="a verdict",
        remedy="look for a fn of the task that never ends, exits or takes all memory",
    )
