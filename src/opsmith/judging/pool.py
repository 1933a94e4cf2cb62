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
import copy
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, TypeVar, cast

from opsmith.errors import OpsmithError, TargetError, UsageError, VerifierError
from opsmith.judging.abandonment import WorkUnderWay
from opsmith.judging.answers import read_verdict
from opsmith.judging.commanded import count_cycles, start_commands
from opsmith.judging.executed import TaskWorker, build_checked, judge_executed
from opsmith.judging.executed_audit import Processes, audit_executed
from opsmith.judging.execution import Execution, Launcher, NotStartedError, start_process
from opsmith.judging.installation import read_scrutiny_here
from opsmith.judging.limits import CANDIDATE_S, OPTIONS, TRIAL_S, Limits
from opsmith.judging.plans import PlanAnswer, read_plans
from opsmith.judging.trust import is_bundled
from opsmith.judging.verifier import leave_unjudged
from opsmith.records import Boundary, Diagnostic, Level, Scrutiny, Task, Verdict, to_json
from opsmith.running.cgroups import GroupLimits
from opsmith.running.nursery import Nursery, Services, Worker
from opsmith.running.sandbox import Sandbox
from opsmith.running.turnstile import use_device
from opsmith.splits import Split
from opsmith.targets import Build, Built, Commanded, Executed, Loaded, Target, get_target, is_own
from opsmith.targets.protocols import Audited, Equipped, Planned

Found = TypeVar("Found")
_Question = tuple[str, Level, str | None]  # digest of a task, and how hard its programs are tried

BATCH = 64  # programs that one worker judges together
MOST_JUDGED = 1000  # candidates, for one audit of a target's own
_NURSERY_BYTES = 2 << 30  # for what workers share, and what those without work keep
WAITING = 32  # workers without work that are kept, each with the data of its task
_KINDS = {"worker": "opsmith.judging.worker:serve_requests", "candidate": "opsmith.judging.candidate:serve_candidate"}
WITH_TORCH = Services("opsmith.running.preload:load_torch", "opsmith.judging.preload:load_language", _KINDS)
WITHOUT_TORCH = Services(
    "opsmith.judging.preload:load_libraries",
    "opsmith.judging.preload:find_language",
    {"candidate": _KINDS["candidate"]},
)
_SHARED = ""  # the owner of the workers that serve all bundled tasks in built-in languages


class Pool:
    """`workers` at work at once (None: one per core), started when first needed; a context manager. Thread-safe.

    `secret`: what hidden sizes are drawn from (`records.Scrutiny`); None: the installation's.
    `deadline` and `trial_deadline`: seconds for a candidate, and for each trial of one that is executed (`Limits`).
    Each verdict, or batch of them, waits while somebody has this machine's processor alone (`turnstile`).
    """

    def __init__(
        self,
        workers: int | None = None,
        deadline: float = CANDIDATE_S,
        *,
        trial_deadline: float = TRIAL_S,
        trust_tasks: bool = False,
        sandbox: Sandbox | None = None,
        secret: str | None = None,
    ) -> None:
        self._secret = secret
        self._limits = Limits(deadline, trial_deadline)
        self._trust_tasks = trust_tasks
        self._sandbox = sandbox or Sandbox()
        self.workers = workers or os.cpu_count() or 1
        self._nursery = Nursery(WITH_TORCH, _limit_workers(self._sandbox, self.workers))
        self._light_nursery = Nursery(WITHOUT_TORCH)  # of candidates whose artefacts are loaded
        self._idle = _Idle()
        self._under_way = WorkUnderWay()
        self._asked: dict[_Question, list[tuple[str, Future[Verdict]]]] = {}  # programs that wait
        self._asking = threading.Lock()
        self._alone = threading.Lock()
        self._closing = threading.Event()
        self._said = threading.Lock()  # taken for good by the thread that says that nothing is isolated
        self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="opsmith.verification")

    def with_secret(self, secret: str) -> Pool:
        """The same workers, asked with another secret, which are started now (`start_early`); it is closed with this
        one."""
        self.start_early()
        pool = copy.copy(self)
        pool._secret = secret
        return pool

    def admit(self, tasks: Iterable[Task]) -> None:
        """Raises UsageError if one of the tasks may not be judged on this system; starts nothing."""
        for task in tasks:
            self._refuse_unconfined(task, self._sandbox.missing)
            _refuse_unequipped(task)

    def start_early(self) -> None:
        """Start what workers are forks of, and wait for nothing: its imports run beside those of the caller."""
        self._nursery.start_early()

    def submit(self, task: Task, source: str, level: Level = Level.CHEAP) -> Future[Verdict]:
        """The verdict to come. Its future raises VerifierError only when no worker can be started at all.

        It raises UsageError for a task that may not be judged on this system. Programs for one task that wait while
        all workers are busy are judged together.
        """
        future: Future[Verdict] = Future()
        with self._asking:
            self._asked.setdefault((task.digest, level, self._secret), []).append((source, future))
        self._submit_work(self._judge_waiting, task, level)
        return future

    def _judge_waiting(self, task: Task, level: Level) -> None:
        """Judge what waits for a task; nothing, when an earlier one took it along."""
        size = BATCH if _find_executing(task) is None else 1  # each has a process: nothing is shared
        with self._asking:
            waiting = self._asked.pop((task.digest, level, self._secret), [])
            if waiting[size:]:
                self._asked[task.digest, level, self._secret] = waiting[size:]
        running = [(source, future) for source, future in waiting[:size] if future.set_running_or_notify_cancel()]
        try:
            with self._under_way.hold_futures([future for _, future in running]):
                verdicts = self._judge_batch(task, [source for source, _ in running], level)
        except BaseException as error:
            for _, future in running:
                future.set_exception(error)
        else:
            for (_, future), verdict in zip(running, verdicts, strict=True):
                future.set_result(verdict)

    def _submit_work(self, work: Callable[..., Found], task: Task, *arguments: Any) -> Future[Found]:
        is_bundled(task)  # it parses files, which CPython 3.11 cannot do in two threads at once: here, not in theirs
        try:
            return self._threads.submit(work, task, *arguments)
        except RuntimeError as error:  # after close()
            raise VerifierError(f"verifier: the pool of workers is closed ({error})") from error

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        """Who is cancelled while it waits frees its worker, and ends the candidate's process."""
        future = self.submit(task, source, level)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            for end in self._under_way.abandon_future(future):
                end()
            raise

    def verify(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        return self.submit(task, source, level).result()

    def verify_all(self, task: Task, sources: Sequence[str], level: Level = Level.CHEAP) -> list[Verdict]:
        """The verdicts in the order of `sources`, found in parallel; what programs of a batch share is computed once.

        Raises UsageError, VerifierError.
        """
        unique = list(dict.fromkeys(sources))
        size = max(1, min(BATCH, -(-len(unique) // self.workers)))
        batches = [unique[start : start + size] for start in range(0, len(unique), size)]
        waiting = [self._submit_work(self._judge_batch, task, batch, level) for batch in batches]
        verdicts = [verdict for future in waiting for verdict in future.result()]
        verdict_by_source = dict(zip(unique, verdicts, strict=True))
        return [verdict_by_source[source] for source in sources]

    def cost(self, task: Task, source: str) -> dict[str, Any]:
        """The figures of the target's cost model, for which authors' fns are run, or the cycles that its simulator
        counts. Raises UsageError, VerifierError."""
        target = _find_executing(task)
        if isinstance(target, Commanded):
            return self._count_cycles(target, task, source)
        return self._ask_figures("cost", task, source)

    def _count_cycles(self, target: Commanded, task: Task, source: str) -> dict[str, Any]:
        try:
            with self._using_processor(), self._asking_of(task, source, False) as worker:
                return count_cycles(target, worker, self._limits)
        except (_WorkerLostError, NotStartedError) as error:
            raise VerifierError(f"cost of task {task.id}: {error}") from error

    def timings(self, task: Task, source: str, candidates: Sequence[str] = ()) -> dict[str, Any]:
        """How long verdicts on this task take (`bench.timings`). Raises UsageError, VerifierError."""
        if _find_executing(task) is not None:
            raise UsageError(
                f"timings of task {task.id}: candidates of target {task.target} are executed, each in a process; "
                "expected a target that interprets them; try: opsmith verify --json, which says a verdict's seconds"
            )
        return self._ask_figures("timings", task, source, candidates=list(candidates))

    def plan_translation(self, task: Task, source: str, name: str) -> dict[str, Any]:
        """How a right program is written in the language of packages, by its target (`Translated`). Raises UsageError
        where what is written would not be equal, VerifierError."""
        return self._ask_figures("translate", task, source, name=name)

    def plan(
        self, task: Task, question: str, split: Split | None = None, *, node: str = "", most: int = 8
    ) -> PlanAnswer:
        """What the task's target (`Planned`) says of splits: `list` (the first `most`), `renegotiate` (the border of a
        node), `check` (what is wrong with one).

        A task that cannot be split has none, with the reason in words. A model may have written the code of a split:
        its worker is new, and ends with the answer. Raises UsageError, VerifierError.
        """
        if not isinstance(get_target(task.target), Planned):
            raise UsageError(
                f"plan of task {task.id}: given target {task.target}, which cannot split tasks; expected step"
            )
        written = to_json(split) if split is not None else None
        asked = {"question": question, "split": written, "node": node, "most": most}
        once = split is not None
        shown = replace(task, impl=None, path="") if once else task  # its code could tell the model of them
        return read_plans(self._ask_figures("plan", shown, "", once=once, **asked))

    def audit(self, task: Task) -> Future[dict[str, Any]]:
        """What is wrong with the task file itself (`audit.audit`), to come. Raises UsageError, VerifierError."""
        target = _find_executing(task)
        work = partial(self._ask_figures, "audit") if target is None else partial(self._audit_executed, target)
        return self._submit_work(work, task, task.impl or "")

    def _audit_executed(self, target: Target, task: Task, source: str) -> dict[str, Any]:
        """The findings of a target whose candidates are executed, and ours on what it says nothing about."""
        own = self._ask_figures("audit", task, source)["findings"] if isinstance(target, Audited) else []
        start = partial(self._start_built, target, task, source)
        processes = Processes(self._judge_program, partial(self._asking_of, task, source), start)
        try:
            with self._using_processor():
                findings = [to_json(finding) for finding in audit_executed(task, source, processes)]
        except _WorkerLostError as lost:
            raise VerifierError(f"audit of task {task.id}: {lost}") from lost
        checks = {finding["check"] for finding in own}
        return {"findings": [*own, *(finding for finding in findings if finding["check"] not in checks)]}

    @contextlib.contextmanager
    def _asking_of(self, task: Task, source: str, fresh: bool, level: Level = Level.CHEAP) -> Iterator[TaskWorker]:
        """A worker of the task's, to be asked about a program. Raises _WorkerLostError."""
        with self._lend_worker(task, fresh) as worker:
            yield TaskWorker(worker, task, source, self._limits.of_task, self._find_scrutiny(level))

    def _start_built(self, target: Target, task: Task, source: str) -> Execution:
        """A process of a program that was judged already. Raises NotStartedError, VerifierError."""
        build = build_checked(target, task, source) if isinstance(target, Built) else None
        return self._start_process(target, task, source, build)

    def _start_process(
        self, target: Target, task: Task, source: str, build: Build | None, level: Level = Level.CHEAP
    ) -> Execution:
        limits = self._limits.at_level(level)
        if isinstance(target, Commanded):
            return start_commands(target, task, build, limits)
        nursery = self._light_nursery if isinstance(target, Loaded) else self._nursery
        execution = start_process(Launcher(nursery, self._sandbox, limits), task, source, build)
        self._under_way.add_process(partial(nursery.end_process, execution.process))
        return execution

    def _ask_figures(self, what: str, task: Task, source: str, once: bool = False, **arguments: Any) -> dict[str, Any]:
        """`once`: by a worker that serves nothing before and nothing after."""
        try:
            with self._using_processor(), self._lend_worker(task, fresh=once, once=once) as worker:
                scrutiny = to_json(self._find_scrutiny(Level.CHEAP))
                answer = worker.ask(what, task, source, self._limits.of_figures, scrutiny=scrutiny, **arguments)
                if "judge" in answer:
                    answer = self._judging_for(task, worker, answer)
        except _WorkerLostError as lost:
            raise VerifierError(f"{what} of task {task.id}: {lost}") from lost
        if "problem" in answer:
            if answer.get("fault"):
                raise TargetError(f"{what} of task {task.id}: {answer['problem']}")
            raise UsageError(f"{what} of task {task.id}: {answer['problem']}")
        return cast(dict[str, Any], answer["figures"])

    def _judging_for(self, task: Task, worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
        """What a worker answers in the end whose target's own audit needs verdicts on executed candidates.

        Raises ValueError or TypeError for what no audit of the task's target asks.
        """
        for _ in range(MOST_JUDGED if _find_executing(task) is not None else 0):
            probe, source = Task(**request["judge"]), request["source"]
            if not all(isinstance(text, str) for text in (probe.id, probe.text, source)):
                raise TypeError("an audit that asks for a verdict on something other than texts")
            verdict = self._judge_program(replace(task, id=probe.id, text=probe.text), source)
            request = worker.tell(dict(to_json(verdict)), self._limits.of_figures)
            if "judge" not in request:
                return request
        raise ValueError(f"an audit that asks for more than {MOST_JUDGED} verdicts")

    def close(self) -> None:
        """Kill the workers; candidates that were not judged yet are cancelled."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._nursery.close()
        self._light_nursery.close()
        self._threads.shutdown(wait=True)
        with self._asking:
            for _, future in [pair for pairs in self._asked.values() for pair in pairs]:
                future.cancel()
        for worker in self._idle.take_all():
            worker.release_shared()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # -- verdicts

    def _find_scrutiny(self, level: Level) -> Scrutiny:
        """Raises UsageError where the installation's secret is needed and cannot be kept."""
        return read_scrutiny_here(level) if self._secret is None else Scrutiny(self._secret, level)

    def _judge_batch(self, task: Task, sources: Sequence[str], level: Level) -> list[Verdict]:
        """Those of a batch; without a run they say how hard programs were tried, and whose secret it was."""
        verdicts = self._judge_together(task, sources, level)
        if self._secret is not None:
            return verdicts
        label = self._find_scrutiny(level).label
        return [replace(verdict, scrutiny=label) for verdict in verdicts]

    def _judge_together(self, task: Task, sources: Sequence[str], level: Level) -> list[Verdict]:
        """When a batch costs a worker, each program is judged alone: one of them did it."""
        if len(sources) > 1 and _find_executing(task) is None:
            with contextlib.suppress(_WorkerLostError), self._using_processor(), self._lend_worker(task) as worker:
                answer = self._ask_verdict(worker, "verify_many", task, "", level, sources=list(sources))
                if answer["verdicts"] is not None:
                    return [read_verdict(*pair) for pair in zip(answer["verdicts"], sources, strict=True)]
        return [self._judge_program(task, source, level) for source in sources]

    def _judge_program(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        target = _find_executing(task)
        judge = (
            partial(self._judge_interpreted, task, source, level)
            if target is None
            else partial(self._judge_executed, target, task, source, level)
        )
        with contextlib.suppress(_WorkerLostError), self._using_processor():
            return judge()
        self._under_way.refuse_abandoned()
        with self._alone, self._using_processor():
            try:
                return judge(fresh=True)
            except _WorkerLostError as lost:
                return leave_unjudged(source, Boundary.SANDBOX, _describe_lost(task, lost))

    def _judge_interpreted(self, task: Task, source: str, level: Level, fresh: bool = False) -> Verdict:
        with self._lend_worker(task, fresh) as worker:
            return read_verdict(self._ask_verdict(worker, "verify", task, source, level), source)

    def _ask_verdict(
        self, worker: Worker, what: str, task: Task, source: str, level: Level, **arguments: Any
    ) -> dict[str, Any]:
        """About candidates that are interpreted: their seconds begin when the task's data are there."""
        if self._limits.candidate < self._limits.of_task and task.digest not in worker.known:
            worker.ask("prepare", task, "", self._limits.of_task)
        scrutiny = to_json(self._find_scrutiny(level))
        seconds = self._limits.at_level(level).candidate
        return worker.ask(what, task, source, seconds, scrutiny=scrutiny, **arguments)

    def _judge_executed(self, target: Target, task: Task, source: str, level: Level, fresh: bool = False) -> Verdict:
        """The verdict on a candidate that is executed, in a process of its own beside the task's worker."""
        if isinstance(target, Loaded):
            self._light_nursery.start_early()
        with self._asking_of(task, source, fresh, level) as worker:
            return judge_executed(target, worker, partial(self._start_process, target, task, source, level=level))

    # -- workers

    def _using_processor(self) -> contextlib.AbstractContextManager[None]:
        """For a piece of work, before any of its deadlines begins: it waits while somebody measures."""
        return use_device(stop=self._closing)

    @contextlib.contextmanager
    def _lend_worker(self, task: Task, fresh: bool = False, once: bool = False) -> Iterator[Worker]:
        """A worker for this task, which is idle again afterwards, or gone, as after being lent `once`. Raises
        _WorkerLostError."""
        owner, worker = self._find_worker(task, fresh)
        try:
            with self._under_way.hold_worker(partial(self._nursery.end_process, worker)):
                yield worker
        except TimeoutError:
            self._nursery.kill(worker)
            raise _WorkerLostError(f"no answer within {worker.allowed:g} s") from None
        except (OSError, EOFError):
            raise _WorkerLostError(f"a worker that {self._nursery.kill(worker)}") from None
        except (ValueError, LookupError, TypeError, RecursionError):
            self._nursery.kill(worker)
            raise _WorkerLostError("an answer that is none to the request") from None
        except BaseException:  # no process can be started at all, or who asked has stopped halfway
            self._nursery.kill(worker)
            raise
        for forgotten in [worker] if once else self._idle.put_worker(owner, worker):
            self._nursery.kill(forgotten)

    def _find_worker(self, task: Task, fresh: bool) -> tuple[str, Worker]:
        """Whose worker serves the task, and one of those. A digest owns the workers of a task that is not bundled."""
        missing = self._sandbox.missing or self._nursery.missing
        self._refuse_unconfined(task, missing)
        _refuse_unequipped(task)
        language = "" if is_own(task.target) else task.target
        owner = (
            _SHARED if language else task.target
        )  # a worker is confined after it read what a language of others needs
        owner = owner if is_bundled(task) else task.digest
        worker = None if fresh else self._idle.take_worker(owner, task.digest)
        return owner, worker or self._nursery.fork_worker(replace(self._sandbox, isolate=not missing), language)

    def _refuse_unconfined(self, task: Task, missing: str) -> None:
        """Raises UsageError unless code of this task may run, given what is missing for isolation."""
        if not missing:
            return
        if self._said.acquire(blocking=False):
            logging.getLogger("opsmith.sandbox").warning("code of task files is not isolated here: %s", missing)
        if _find_executing(task) is not None:
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

    def take_worker(self, owner: str, digest: str) -> Worker | None:
        """The last one used that has prepared this task's data, or else the last one used."""
        with self._lock:
            mine = [index for index, (name, _) in enumerate(self._workers) if name == owner]
            if not mine:
                return None
            return self._workers.pop(max(mine, key=lambda index: (digest in self._workers[index][1].known, index)))[1]

    def put_worker(self, owner: str, worker: Worker) -> list[Worker]:
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


def _limit_workers(sandbox: Sandbox, workers: int) -> GroupLimits:
    """What the workers of a pool may use together, those without work among them: as many as work at once."""
    cores = workers + 1 if workers + 1 < (os.cpu_count() or 1) else None
    return GroupLimits(_NURSERY_BYTES + workers * sandbox.memory, None, cores, workers)


class _WorkerLostError(Exception):
    """A worker died, was too slow or answered nonsense; the text says which."""


def _refuse_unequipped(task: Task) -> None:
    """Raises UsageError where this machine lacks what the task's target needs; a worker reports unknown targets."""
    try:
        target = get_target(task.target)
    except OpsmithError:
        return
    if isinstance(target, Equipped) and (lack := target.explain_lack()):
        raise UsageError(f"task {task.id}: {lack}")


def _find_executing(task: Task) -> Target | None:
    """The task's target if its candidates are executed; one that is not known here is its worker's to report."""
    with contextlib.suppress(OpsmithError):
        target = get_target(task.target)
        return target if isinstance(target, Executed) else None
    return None


def _describe_lost(task: Task, lost: _WorkerLostError) -> Diagnostic:
    code = f"code of the target {task.target} or of the task" if is_own(task.target) else "a fn of the task"
    return Diagnostic(
        kind="SANDBOX",
        where="a worker process, twice",
        given=str(lost),
        expected="a verdict",
        remedy=f"look for {code} that never ends, exits or takes all memory; {OPTIONS['candidate']} sets the time",
    )
