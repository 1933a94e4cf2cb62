"""Where programs are timed beside their partners on this machine: confined processes, and workers that compare outputs.

The engine says when which calls are made and what the clocks say of them (`timing.engine`). Outputs of timed calls are
compared with what is expected; a wrong one ends the measurement.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from opsmith.devices.lease import WAIT_S, lease_device
from opsmith.judging.executed import TaskWorker
from opsmith.measuring.timing import TIMED, TimedArtefacts, TimedProcess, TimingError
from opsmith.measuring.timing_data import DataWorker
from opsmith.records import Task
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.running.turnstile import CPU
from opsmith.targets.native.layout import LayoutError
from opsmith.timing.engine import LEAST_CHECKS, PairProtocol, PairTimes, Side, Turn
from opsmith.timing.inputs import InputMixer, Recipe

WORKERS = Services(
    "opsmith.running.preload:load_torch",
    "opsmith.judging.preload:load_language",
    {"worker": "opsmith.measuring.data_worker:serve_measuring"},
)
MOST_WARM = 4  # workers of tasks that are kept
_ANSWER_S = 120.0


@dataclass
class TimingRoom:
    """Processes for measuring: workers of tasks, and those in which programs are timed. A context manager."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    lease_seconds: float = WAIT_S  # that a measurement waits for the processor

    def __post_init__(self) -> None:
        self._workers, self._timed = Nursery(WORKERS), Nursery(TIMED)
        self._warm: dict[str, DataWorker] = {}  # by the digest of their task, the one asked last at the end

    def __enter__(self) -> TimingRoom:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._workers.close()
        self._timed.close()

    @contextmanager
    def asking_worker(self, task: Task, language: str) -> Iterator[DataWorker]:
        """The task's worker, which stays for the next program of the task, unless it fails. What it raises beside
        TimingError is its author's or ours."""
        worker = self._warm.pop(task.digest, None)
        if worker is None:
            fork = self._workers.fork_worker(self.sandbox, language)
            worker = DataWorker(TaskWorker(fork, task, "", _ANSWER_S))
        try:
            yield worker
        except BaseException as error:
            self._workers.kill(worker.worker.worker)
            if isinstance(error, TimeoutError | EOFError | OSError | LookupError | LayoutError):
                raise TimingError(f"the worker of task {task.id}: {error or type(error).__name__}") from error
            raise
        self._warm[task.digest] = worker
        while len(self._warm) > MOST_WARM:
            self._workers.kill(self._warm.pop(next(iter(self._warm))).worker.worker)

    def lease_processor(self, purpose: str) -> AbstractContextManager[object]:
        """This machine's processor alone, for the block. Raises BusyError."""
        return lease_device(CPU, purpose, self.lease_seconds)

    def start_timed(self, artefacts: TimedArtefacts, sides: Sequence[Side]) -> TimedProcess:
        return TimedProcess(self._timed, self.sandbox, artefacts, sides)


@dataclass(frozen=True)
class ConfinedCase:
    """A program and its partner at one shape set, ready to be timed in a room. Fits `TimedCase`."""

    room: TimingRoom
    artefacts: TimedArtefacts
    mixer: InputMixer
    check: Callable[[Recipe, Sequence[bytes]], bool]  # raises WrongOutputError; False: undecided
    recipes: Sequence[Recipe] = ()  # of the slots that are checked, where a protocol has them prepared

    @property
    def threads(self) -> int:
        return self.artefacts.threads

    @property
    def stride(self) -> int:
        return self.artefacts.layout.stride

    @property
    def most_calls(self) -> int | None:
        return self.mixer.most_calls

    def start_process(self, sides: Sequence[Side]) -> TimedProcess:
        return self.room.start_timed(self.artefacts, sides)

    def fill_turn(self, process: Any, turn: Turn, prepared: Mapping[int, Recipe]) -> dict[int, Recipe]:
        return self.mixer.fill_slots(process.memory, turn, prepared)

    def read_outputs(self, process: Any, slot: int) -> list[bytes]:
        return self.mixer.read_outputs(process.memory, slot)

    def check_processes(self, processes: Iterator[PairTimes], protocol: PairProtocol, seed: int) -> Iterator[PairTimes]:
        """The same, each with its outputs compared, in a random order until the time for that is over: which ones,
        nobody can know before. Raises WrongOutputError."""
        for times in processes:
            outputs = random.Random(seed).sample(times.outputs, len(times.outputs))
            end = time.monotonic() + protocol.checking_seconds
            checked = 0
            for number, (recipe, arrays) in enumerate(outputs):
                if number >= LEAST_CHECKS and time.monotonic() >= end:
                    break
                checked += self.check(recipe, arrays)
            yield replace(times, checked=checked, outputs=())
