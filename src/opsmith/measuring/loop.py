"""The loop that times a program beside its partner at one shape set, by a protocol's schedule and two clocks.

`measure_pairs`: both in one process, by the clock that it reads. `measure_apart`: each in a process of its own, by the
processor time that the kernel counts for it from one turn to the next, so that nothing it does goes uncounted. In both,
outputs of timed calls are compared with what is expected; a wrong one ends the measurement.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from opsmith.devices.lease import WAIT_S, lease_device
from opsmith.judging.executed import TaskWorker
from opsmith.measuring.schedule import LEAST_CHECKS, PairProtocol, Side, Turn, choose_slot_count, plan_turns
from opsmith.measuring.slots import InputMixer, Recipe, SlotLayout, is_mixable
from opsmith.measuring.timing import TIMED, TimedArtefacts, TimedProcess, TimingError
from opsmith.measuring.work import ProblemWork
from opsmith.problems.problem import Problem
from opsmith.records import Diagnostic, Task
from opsmith.running.arena import CAPACITY
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.running.turnstile import CPU
from opsmith.targets.native.layout import LayoutError, TrialLayout, read_inputs, write_inputs

WORKERS = Services(
    "opsmith.judging.preload:load_torch",
    "opsmith.judging.preload:load_language",
    {"worker": "opsmith.measuring.data_worker:serve_measuring"},
)
DRAWS = 4  # that inputs are mixed of
_MOST_DRAWS, _MOST_BYTES = 64, 32 << 20  # where they cannot be mixed
_ANSWER_S = 120.0
_LEAST_NS = 1e6  # a turn that is shorter says little of a call
_SLOWER = 5  # by how much the slower side's turn may pass the time that a turn should take


class WrongOutputError(TimingError):
    """A program was right for its verdict, and wrong while it was timed."""


@dataclass(frozen=True)
class PairTimes:
    """Nanoseconds of one call, pair by pair, in one process (or two that belong together)."""

    program: tuple[float, ...]
    partner: tuple[float, ...]
    checked: int  # outputs that were compared and are right


@dataclass
class _Readings:
    times: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in Side})
    outputs: list[tuple[Recipe, list[bytes]]] = field(default_factory=list)


@dataclass(frozen=True)
class TimedCase:
    """A program and its partner at one shape set, ready to be timed."""

    artefacts: TimedArtefacts
    mixer: InputMixer
    check: Callable[[Recipe, Sequence[bytes]], bool]  # raises WrongOutputError; False: undecided


@dataclass
class TimingRoom:
    """Processes for measuring: workers of tasks, and those in which programs are timed. A context manager."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    lease_seconds: float = WAIT_S  # that a measurement waits for the processor

    def __post_init__(self) -> None:
        self._workers, self._timed = Nursery(WORKERS), Nursery(TIMED)

    def __enter__(self) -> TimingRoom:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._workers.close()
        self._timed.close()

    @contextmanager
    def asking_worker(self, task: Task, language: str) -> Iterator[DataWorker]:
        """A worker of the task's. What it raises beside TimingError is its author's or ours."""
        worker = self._workers.fork_worker(self.sandbox, language)
        try:
            yield DataWorker(TaskWorker(worker, task, "", _ANSWER_S))
        except (TimeoutError, EOFError, OSError, LookupError, LayoutError) as error:
            raise TimingError(f"the worker of task {task.id}: {error or type(error).__name__}") from error
        finally:
            self._workers.kill(worker)

    def lease_processor(self, purpose: str) -> AbstractContextManager[object]:
        """This machine's processor alone, for the block. Raises BusyError."""
        return lease_device(CPU, purpose, self.lease_seconds)

    def start_timed(self, artefacts: TimedArtefacts, is_reversed: bool = False) -> TimedProcess:
        return TimedProcess(self._timed, self.sandbox, artefacts, is_reversed)


@dataclass(frozen=True)
class DataWorker:
    """A worker that draws inputs and compares outputs."""

    worker: TaskWorker

    def draw_inputs(self, problem: Problem, sizes: Mapping[str, int]) -> tuple[SlotLayout, list[list[bytes]]]:
        """The arrays of a call, and of some draws what they hold. Raises TimingError."""
        layout, draws = self._ask_draws(sizes, DRAWS)
        if not is_mixable(problem):
            fitting = _MOST_BYTES // max(1, sum(layout.arrays.inputs))
            layout, draws = self._ask_draws(sizes, max(DRAWS, min(_MOST_DRAWS, fitting)))
        return layout, draws

    def check_outputs(
        self, sizes: Mapping[str, int], layout: SlotLayout, inputs: Sequence[bytes], outputs: Sequence[bytes]
    ) -> bool:
        """Whether they could be judged. Raises WrongOutputError where they are wrong, TimingError."""
        blobs = [write_inputs(TrialLayout((layout.arrays,)), inputs), b"".join(outputs)]
        answer = self._ask("check_timed", blobs, sizes=dict(sizes), draws=DRAWS)
        errors = [Diagnostic(**error) for error in answer["errors"]]
        if errors:
            raise WrongOutputError(f"a wrong output while it was timed: {errors[0]}")
        return not answer["is_undecided"]

    def count_work(self, sizes: Mapping[str, int]) -> ProblemWork:
        """Raises TimingError."""
        return ProblemWork(**self._ask("count_work", sizes=dict(sizes))["work"])

    def _ask_draws(self, sizes: Mapping[str, int], draws: int) -> tuple[SlotLayout, list[list[bytes]]]:
        answer = self._ask("draw_inputs", sizes=dict(sizes), draws=draws)
        layout, arrays = read_inputs(memoryview(bytes(answer["blobs"][0])))
        return SlotLayout(layout.draws[0]), [[bytes(array) for array in draw] for draw in arrays]

    def _ask(self, what: str, blobs: Sequence[bytes] = (), **arguments: Any) -> dict[str, Any]:
        answer = self.worker.ask_step(what, blobs, **arguments)
        if "problem" in answer:
            raise TimingError(str(answer["problem"]))
        return answer


# -- one shape set


def find_slot_count(room: TimingRoom, case: TimedCase) -> int:
    """How many slots each side needs, by the clock outside of a process that is asked for no figure. Raises
    TimingError, and ValueError where two calls do not fit into memory."""
    layout = case.artefacts.layout
    capacity = choose_slot_count(1.0, layout.stride, CAPACITY)
    with room.start_timed(case.artefacts) as process:
        count, counted = 0, [0]
        while min(counted) < _LEAST_NS and count < capacity:
            count = min(4 * count or 1, capacity)
            (turn, _) = plan_turns(PairProtocol(1, 1, 0, 1), count, count)[:2]
            counted = [_count_turn(process, case, turn, side) for side in case.artefacts.programs]
    call_ns = max(1, min(counted), max(counted) / _SLOWER) / count
    return choose_slot_count(call_ns, layout.stride, CAPACITY)


def _count_turn(process: TimedProcess, case: TimedCase, turn: Turn, side: Side) -> int:
    """The shortest of some turns, in nanoseconds."""
    counted = []
    for _ in range(3):
        case.mixer.fill_slots(process.memory, turn)
        process.time_turn(side, turn.slots)
        counted.append(process.count_time())
    return min(counted)


def measure_pairs(
    room: TimingRoom, case: TimedCase, protocol: PairProtocol, slots: int, seed: int
) -> Iterator[PairTimes]:
    """Both sides in one process, one after the other. Raises WrongOutputError, TimingError."""
    for number in range(protocol.processes):
        with room.start_timed(case.artefacts, is_reversed=bool((seed + number) % 2)) as process:
            readings = _Readings()
            for turn in plan_turns(protocol, slots, seed, number):
                recipes = case.mixer.fill_slots(process.memory, turn)
                elapsed = process.time_turn(turn.side, turn.slots)
                _read_turn(readings, case, process, turn, recipes, elapsed)
        yield _check_readings(readings, case, protocol, seed)


def measure_apart(
    room: TimingRoom, case: TimedCase, protocol: PairProtocol, slots: int, seed: int
) -> Iterator[PairTimes]:
    """Each side in a process of its own, by our clock. Raises WrongOutputError, TimingError."""
    for number in range(protocol.processes):
        with ExitStack() as stack:
            processes = {
                side: stack.enter_context(room.start_timed(case.artefacts.take_side(side))) for side in reversed(Side)
            }
            readings, overheads = _Readings(), []
            for turn in plan_turns(protocol, slots, seed + 1, number):
                process = processes[turn.side]
                if turn.side is Side.PARTNER:
                    overheads.append(_measure_overhead(process, case, turn))
                recipes = case.mixer.fill_slots(process.memory, turn)
                process.time_turn(turn.side, turn.slots)
                _read_turn(readings, case, process, turn, recipes, process.count_time())
        _subtract_overhead(readings, statistics.median(overheads) / slots)
        yield _check_readings(readings, case, protocol, seed)


def _measure_overhead(process: TimedProcess, case: TimedCase, turn: Turn) -> int:
    """What a turn without a call costs at this place of the schedule, in a process that holds nothing of the
    program's: one that it were in could make it look dear."""
    case.mixer.fill_slots(process.memory, turn)
    process.time_turn(turn.side, ())
    return process.count_time()


def _subtract_overhead(readings: _Readings, overhead: float) -> None:
    """Take what no call costs from what a call took. Raises TimingError where nothing is left."""
    for side, times in readings.times.items():
        readings.times[side] = [elapsed - overhead for elapsed in times]
        if min(readings.times[side]) <= 0:
            raise TimingError("a call is too short for the clock outside the process")


def _read_turn(
    readings: _Readings,
    case: TimedCase,
    process: TimedProcess,
    turn: Turn,
    recipes: Mapping[int, Recipe],
    elapsed: float,
) -> None:
    if turn.is_warm_up:
        return
    if elapsed <= 0:
        raise TimingError(f"a turn of {elapsed:.0f} ns; expected some time")
    readings.times[turn.side].append(elapsed / len(turn.slots))
    for slot, recipe in recipes.items():
        outputs = [bytes(process.memory[place]) for place in case.artefacts.layout.list_outputs(slot)]
        readings.outputs.append((recipe, outputs))


def _check_readings(readings: _Readings, case: TimedCase, protocol: PairProtocol, seed: int) -> PairTimes:
    """Outputs are compared in a random order until the time for that is over: which ones, nobody can know before."""
    outputs = random.Random(seed).sample(readings.outputs, len(readings.outputs))
    end = time.monotonic() + protocol.checking_seconds
    checked = 0
    for number, (recipe, arrays) in enumerate(outputs):
        if number >= LEAST_CHECKS and time.monotonic() >= end:
            break
        checked += case.check(recipe, arrays)
    return PairTimes(tuple(readings.times[Side.PROGRAM]), tuple(readings.times[Side.PARTNER]), checked)
