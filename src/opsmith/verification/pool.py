"""Verdicts from warm worker processes: `Pool.submit(task, source) -> Future[Verdict]`.

Each worker is a fork of one nursery process that has torch loaded (see `forks`), so that a worker starts in
milliseconds and a dead one costs little. A worker that dies or passes its deadline is replaced; its candidate is tried
once more, alone among such candidates, in a fresh worker, and is then unjudged, charged to SANDBOX.

Workers are confined (see `sandbox`), and one that has seen a task which is not bundled judges that task only, so that
nobody's code can touch the verdicts on another's task. Where the system offers no isolation, that is said once, and
only bundled tasks are judged, unless the caller trusts the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, cast

from opsmith.errors import OpsmithError, UsageError, VerifierError
from opsmith.records import Boundary, Diagnostic, Task, Verdict
from opsmith.targets import Executed, Target, get_target
from opsmith.verification import executed
from opsmith.verification.answers import read_verdict
from opsmith.verification.nursery import Nursery, Worker
from opsmith.verification.sandbox import Sandbox
from opsmith.verification.trust import is_bundled
from opsmith.verification.verifier import unjudged

Found = TypeVar("Found")

DEADLINE_S = 60.0  # for one candidate, the first of a task included, which draws the data of all trials
BATCH = 64  # programs that one worker judges together
WAITING = 32  # workers without work that are kept, each with the data of its task
_SHARED = ""  # the owner of the workers that serve all bundled tasks


class Pool:
    """`workers` at work at once (None: one per core), started when first needed; a context manager. Thread-safe."""

    def __init__(
        self,
        workers: int | None = None,
        deadline: float = DEADLINE_S,
        *,
        trust_tasks: bool = False,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._deadline = deadline
        self._trust_tasks = trust_tasks
        self._sandbox = sandbox or Sandbox()
        self._nursery = Nursery()
        self._idle = _Idle()
        self._asked: dict[str, list[tuple[str, Future[Verdict]]]] = {}  # by task: programs that wait
        self._asking = threading.Lock()
        self._alone = threading.Lock()
        self._said = threading.Lock()  # taken for good by the thread that says that nothing is isolated
        self._workers = workers or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="opsmith.verification")

    def admit(self, tasks: Iterable[Task]) -> None:
        """Raises UsageError if one of the tasks may not be judged on this system; starts nothing."""
        for task in tasks:
            self._check(task, self._sandbox.missing)

    def submit(self, task: Task, source: str) -> Future[Verdict]:
        """The verdict to come. Its future raises VerifierError only when no worker can be started at all.

        It raises UsageError for a task that may not be judged on this system. Programs for one task that wait while
        all workers are busy are judged together.
        """
        future: Future[Verdict] = Future()
        with self._asking:
            self._asked.setdefault(task.digest, []).append((source, future))
        self._submit(self._next, task)
        return future

    def _next(self, task: Task) -> None:
        """Judge what waits for a task; nothing, when an earlier one took it along."""
        with self._asking:
            asked = self._asked.pop(task.digest, [])
            if asked[BATCH:]:
                self._asked[task.digest] = asked[BATCH:]
        taken = [(source, future) for source, future in asked[:BATCH] if future.set_running_or_notify_cancel()]
        try:
            verdicts = self._verdicts(task, [source for source, _ in taken])
        except BaseException as error:
            for _, future in taken:
                future.set_exception(error)
        else:
            for (_, future), verdict in zip(taken, verdicts, strict=True):
                future.set_result(verdict)

    def _submit(self, work: Callable[..., Found], task: Task, *given: Any) -> Future[Found]:
        is_bundled(task)  # it parses files, which CPython 3.11 cannot do in two threads at once: here, not in theirs
        try:
            return self._threads.submit(work, task, *given)
        except RuntimeError as error:  # after close()
            raise VerifierError(f"verifier: the pool of workers is closed ({error})") from error

    async def judge(self, task: Task, source: str) -> Verdict:
        return await asyncio.wrap_future(self.submit(task, source))

    def verify(self, task: Task, source: str) -> Verdict:
        return self.submit(task, source).result()

    def verify_all(self, task: Task, sources: Sequence[str]) -> list[Verdict]:
        """The verdicts in the order of `sources`, found in parallel; what programs of a batch share is computed once.

        Raises UsageError, VerifierError.
        """
        unique = list(dict.fromkeys(sources))
        size = max(1, min(BATCH, -(-len(unique) // self._workers)))
        batches = [unique[at : at + size] for at in range(0, len(unique), size)]
        waiting = [self._submit(self._verdicts, task, batch) for batch in batches]
        verdicts = [verdict for future in waiting for verdict in future.result()]
        found = dict(zip(unique, verdicts, strict=True))
        return [found[source] for source in sources]

    def cost(self, task: Task, source: str) -> dict[str, Any]:
        """The figures of the target's cost model, for which authors' fns are run. Raises UsageError, VerifierError."""
        return self._figures("cost", task, source)

    def timings(self, task: Task, source: str, candidates: Sequence[str] = ()) -> dict[str, Any]:
        """How long verdicts on this task take (`bench.timings`). Raises UsageError, VerifierError."""
        return self._figures("timings", task, source, candidates=list(candidates))

    def audit(self, task: Task) -> Future[dict[str, Any]]:
        """What is wrong with the task file itself (`audit.audit`), to come. Raises UsageError, VerifierError."""
        return self._submit(partial(self._figures, "audit"), task, task.impl or "")

    def _figures(self, what: str, task: Task, source: str, **more: Any) -> dict[str, Any]:
        try:
            with self._worker(task) as worker:
                answer = worker.ask(what, task, source, self._deadline, **more)
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
        with self._asking:
            for _, future in [pair for asked in self._asked.values() for pair in asked]:
                future.cancel()
        for worker in self._idle.take_all():
            worker.channel.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- verdicts

    def _verdicts(self, task: Task, sources: Sequence[str]) -> list[Verdict]:
        """Those of a batch. When it costs a worker, each program is judged alone: one of them did it."""
        if len(sources) > 1 and _executing(task) is None:
            with contextlib.suppress(_WorkerLostError), self._worker(task) as worker:
                answer = worker.ask("verify_many", task, "", self._deadline, sources=list(sources))
                if answer["verdicts"] is not None:
                    return [read_verdict(*pair) for pair in zip(answer["verdicts"], sources, strict=True)]
        return [self._verdict(task, source) for source in sources]

    def _verdict(self, task: Task, source: str) -> Verdict:
        target = _executing(task)
        judge = partial(self._interpreted, task, source) if target is None else partial(self._run, target, task, source)
        with contextlib.suppress(_WorkerLostError):
            return judge()
        with self._alone:
            try:
                return judge(fresh=True)
            except _WorkerLostError as lost:
                return unjudged(source, Boundary.SANDBOX, _finding(lost))

    def _interpreted(self, task: Task, source: str, fresh: bool = False) -> Verdict:
        with self._worker(task, fresh) as worker:
            return read_verdict(worker.ask("verify", task, source, self._deadline), source)

    def _run(self, target: Target, task: Task, source: str, fresh: bool = False) -> Verdict:
        """The verdict on a candidate that is executed, in a process of its own beside the task's worker."""
        with self._worker(task, fresh) as worker:

            def ask(what: str, **more: Any) -> dict[str, Any]:
                return worker.ask(what, task, source, self._deadline, **more)

            start = partial(executed.started, self._nursery, task, source, self._sandbox, self._deadline)
            return executed.judge(target, source, ask, start)

    # -- workers

    @contextlib.contextmanager
    def _worker(self, task: Task, fresh: bool = False) -> Iterator[Worker]:
        """A worker for this task, which is idle again afterwards, or gone. Raises _WorkerLostError."""
        owner, worker = self._owned(task, fresh)
        try:
            yield worker
        except TimeoutError:
            self._nursery.kill(worker)
            raise _WorkerLostError(f"no answer within {self._deadline:g} s") from None
        except (OSError, EOFError):
            raise _WorkerLostError(f"a worker that {self._nursery.kill(worker)}") from None
        except (ValueError, LookupError, TypeError, RecursionError):
            self._nursery.kill(worker)
            raise _WorkerLostError("an answer that is none to the request") from None
        except OpsmithError:  # no process can be started at all
            self._nursery.kill(worker)
            raise
        for forgotten in self._idle.put(owner, worker):
            self._nursery.kill(forgotten)

    def _owned(self, task: Task, fresh: bool) -> tuple[str, Worker]:
        """Whose worker serves the task, and one of those. A digest owns the workers of a task that is not bundled."""
        missing = self._sandbox.missing or self._nursery.missing
        self._check(task, missing)
        owner = _SHARED if is_bundled(task) else task.digest
        worker = None if fresh else self._idle.take(owner, task.digest)
        return owner, worker or self._nursery.worker(replace(self._sandbox, isolate=not missing))

    def _check(self, task: Task, missing: str) -> None:
        """Raises UsageError unless code of this task may run, given what is missing for isolation."""
        if not missing:
            return
        if self._said.acquire(blocking=False):
            logging.getLogger("opsmith.sandbox").warning("code of task files is not isolated here: %s", missing)
        if _executing(task) is not None:
            raise UsageError(
                f"task {task.id}: candidates of target {task.target} are executed, and nothing isolates them here "
                f"({missing}); expected Linux with Landlock and seccomp"
            )
        if not self._trust_tasks and not is_bundled(task):
            raise UsageError(
                f"task {task.id}: its file holds code of its author, and nothing isolates it here ({missing}); "
                "expected a bundled task; try: read the file, then --trust-tasks (trust_tasks=True)"
            )


class _Idle:
    """Workers without work, by owner; the one used last is the first to be used again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: list[tuple[str, Worker]] = []

    def take(self, owner: str, digest: str) -> Worker | None:
        """The last one used that has prepared this task's data, or else the last one used."""
        with self._lock:
            mine = [at for at, (name, _) in enumerate(self._workers) if name == owner]
            if not mine:
                return None
            return self._workers.pop(max(mine, key=lambda at: (digest in self._workers[at][1].known, at)))[1]

    def put(self, owner: str, worker: Worker) -> list[Worker]:
        """Keep a worker; returns those that are too many."""
        with self._lock:
            self._workers.append((owner, worker))
            surplus = self._workers[:-WAITING]
            self._workers = self._workers[-WAITING:]
            return [worker for _, worker in surplus]

    def take_all(self) -> list[Worker]:
        with self._lock:
            workers, self._workers = self._workers, []
            return [worker for _, worker in workers]


class _WorkerLostError(Exception):
    """A worker died, was too slow or answered nonsense; the text says which."""


def _executing(task: Task) -> Target | None:
    """The task's target if its candidates are executed; one that is not known here is its worker's to report."""
    with contextlib.suppress(OpsmithError):
        target = get_target(task.target)
        return target if isinstance(target, Executed) else None
    return None


def _finding(lost: _WorkerLostError) -> Diagnostic:
    return Diagnostic(
        kind="SANDBOX",
        where="a worker process, twice",
        given=str(lost),
        expected="a verdict",
        remedy="look for a fn of the task that never ends, exits or takes all memory",
    )
