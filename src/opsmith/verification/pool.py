"""Verdicts from warm worker processes: `Pool.submit(task, source) -> Future[Verdict]`.

Each worker is a fork of one nursery process that has torch loaded (see `worker.py`), so that a worker starts in
milliseconds and a dead one costs little. Requests and verdicts are JSON on one socket per worker. A worker that dies
or passes its deadline is replaced; its candidate is tried once more, alone among such candidates, in a fresh worker,
and is then unjudged, charged to SANDBOX. It promises that the caller survives, not that authors' code is confined.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar, cast

from opsmith.errors import UsageError, VerifierError
from opsmith.records import Boundary, Diagnostic, Task, Verdict, verdict_from_json
from opsmith.verification.nursery import Nursery, Worker
from opsmith.verification.verifier import unjudged

Answer = TypeVar("Answer")

DEADLINE_S = 60.0  # for one candidate, the first of a task included, which draws the data of all trials


class Pool:
    """`workers` processes (None: one per core), started when first needed; a context manager. Thread-safe."""

    def __init__(self, workers: int | None = None, deadline: float = DEADLINE_S) -> None:
        self._deadline = deadline
        self._nursery = Nursery()
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._alone = threading.Lock()
        self._threads = ThreadPoolExecutor(workers or os.cpu_count() or 1, thread_name_prefix="opsmith.verification")

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

    def cost(self, task: Task, source: str) -> dict[str, Any]:
        """The figures of the target's cost model, for which authors' fns are run. Raises UsageError, VerifierError."""
        return self._figures("cost", task, source)

    def timings(self, task: Task, source: str) -> dict[str, Any]:
        """How long verdicts on this task take (`bench.timings`). Raises UsageError, VerifierError."""
        return self._figures("timings", task, source)

    def audit(self, task: Task) -> Future[dict[str, Any]]:
        """What is wrong with the task file itself (`audit.audit`), to come. Raises UsageError, VerifierError."""
        return self._threads.submit(self._figures, "audit", task, task.impl or "")

    def _figures(self, what: str, task: Task, source: str) -> dict[str, Any]:
        try:
            answer = self._ask(dict, what, task, source)
        except _WorkerLostError as lost:
            raise VerifierError(f"{what} of task {task.id}: {lost}") from lost
        if "problem" in answer:
            raise UsageError(f"{what} of task {task.id}: {answer['problem']}")
        return cast(dict[str, Any], answer["figures"])

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
            return self._ask(verdict_from_json, "verify", task, source)
        with self._alone:
            try:
                return self._ask(verdict_from_json, "verify", task, source, fresh=True)
            except _WorkerLostError as lost:
                return unjudged(source, Boundary.SANDBOX, _finding(lost))

    def _ask(self, read: Callable[[Any], Answer], what: str, task: Task, source: str, fresh: bool = False) -> Answer:
        """One request to one worker, which is idle again afterwards, or gone."""
        worker = self._nursery.fork() if fresh else self._idle_or_new()
        try:
            answer = read(worker.ask(what, task, source, self._deadline))
        except TimeoutError:
            self._nursery.kill(worker)
            raise _WorkerLostError(f"no answer within {self._deadline:g} s") from None
        except (OSError, EOFError, ValueError, LookupError, TypeError):  # it hung up, or talked nonsense
            raise _WorkerLostError(f"a worker that {self._nursery.kill(worker)}") from None
        self._idle.put(worker)
        return answer

    def _idle_or_new(self) -> Worker:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self._nursery.fork()


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
