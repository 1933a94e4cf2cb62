"""The loop that times a program beside its partner at one shape set, by a protocol's schedule and two clocks.

`measure_pairs`: both in one process, by the clock that it reads. `measure_apart`: each in a process of its own, by the
processor time that the kernel counts for it from one turn to the next, so that nothing it does goes uncounted. In both,
outputs of timed calls are compared with what is expected; a wrong one ends the measurement.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType

from opsmith.devices.lease import WAIT_S, lease_device
from opsmith.judging.executed import TaskWorker
from opsmith.measuring.claims import compare_turns
from opsmith.measuring.schedule import LEAST_CHECKS, PairProtocol, Side, Turn, choose_slot_count, plan_turns
from opsmith.measuring.slots import InputMixer, Recipe
from opsmith.measuring.timing import TIMED, TimedArtefacts, TimedProcess, TimingError
from opsmith.measuring.timing_data import DataWorker
from opsmith.records import Task
from opsmith.running.arena import CAPACITY
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.running.turnstile import CPU
from opsmith.targets.native.layout import LayoutError

WORKERS = Services(
    "opsmith.running.preload:load_torch",
    "opsmith.judging.preload:load_language",
    {"worker": "opsmith.measuring.data_worker:serve_measuring"},
)
MOST_WARM = 4  # workers of tasks that are kept
_ANSWER_S = 120.0
_LEAST_NS = 1e6  # a turn that is shorter says little of a call
_SLOWER = 5  # by how much the slower side's turn may pass the time that a turn should take
_FILLED = 2.0  # bytes a nanosecond that are written before a turn, or more
_EMPTY_TURNS = 5  # that say what a turn costs without a call
_TURN_COST_NS = 5e5  # of a pair, beside calls and inputs


@dataclass(frozen=True)
class PairTimes:
    """Nanoseconds of one call, pair by pair, in one process (or two that belong together)."""

    program: tuple[float, ...]
    partner: tuple[float, ...]
    checked: int  # outputs that were compared and are right
    error: float = 0.0  # of their ratio, as a share of it: by what our clock counts beside the calls


@dataclass
class _Readings:
    times: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in Side})
    outside: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in Side})  # ns of each turn
    outputs: list[tuple[Recipe, list[bytes]]] = field(default_factory=list)


@dataclass(frozen=True)
class TimedCase:
    """A program and its partner at one shape set, ready to be timed."""

    artefacts: TimedArtefacts
    mixer: InputMixer
    check: Callable[[Recipe, Sequence[bytes]], bool]  # raises WrongOutputError; False: undecided
    recipes: Sequence[Recipe] = ()  # of the slots that are checked, where a protocol has them prepared
    call_ns: MutableMapping[bytes, float] = field(default_factory=dict)  # of partners, by what they are built to


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
        worker = self._warm.pop(task.digest, None) or self._start_worker(task, language)
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

    def _start_worker(self, task: Task, language: str) -> DataWorker:
        return DataWorker(TaskWorker(self._workers.fork_worker(self.sandbox, language), task, "", _ANSWER_S))

    def lease_processor(self, purpose: str) -> AbstractContextManager[object]:
        """This machine's processor alone, for the block. Raises BusyError."""
        return lease_device(CPU, purpose, self.lease_seconds)

    def start_timed(self, artefacts: TimedArtefacts, is_reversed: bool = False) -> TimedProcess:
        return TimedProcess(self._timed, self.sandbox, artefacts, is_reversed)


# -- one shape set


@dataclass(frozen=True)
class PairPlan:
    """How many pairs of turns, of how many calls."""

    protocol: PairProtocol
    slots: int  # of each side


def plan_pairs(room: TimingRoom, case: TimedCase, protocol: PairProtocol) -> PairPlan:
    """As a protocol says, for programs as fast as these, by the clock outside of a process that is asked for no figure.

    Raises TimingError, and ValueError where two calls do not fit into memory.
    """
    layout, most_calls = case.artefacts.layout, case.mixer.most_calls
    memory = min(CAPACITY, max(protocol.turn_bytes, layout.stride) * 2)
    capacity = choose_slot_count(1.0, layout.stride, memory)
    with room.start_timed(case.artefacts) as process:
        call_ns = {side: _find_call_time(process, case, side, capacity) for side in reversed(Side)}
    fastest, slowest = min(call_ns.values()), max(call_ns.values())
    slots = choose_slot_count(max(fastest, slowest / _SLOWER), layout.stride, memory, protocol.turn_ns)
    if most_calls is not None:
        slots = max(1, min(slots, most_calls // (protocol.pairs + protocol.warm_ups)))
    fitting = protocol.fit_pairs(slots * (sum(call_ns.values()) + 2 * layout.stride / _FILLED) + _TURN_COST_NS)
    if most_calls is not None and fitting.pairs + fitting.warm_ups > most_calls:
        fitting = replace(fitting, pairs=max(1, most_calls - 1), warm_ups=min(1, most_calls - 1))
    return PairPlan(fitting, slots)


def _find_call_time(process: TimedProcess, case: TimedCase, side: Side, capacity: int) -> float:
    """Nanoseconds of one call; a partner's are kept for the next program."""
    artefact = case.artefacts.programs.get(side, b"")
    if side is Side.PARTNER and artefact in case.call_ns:
        return case.call_ns[artefact]
    most_calls = min(capacity, case.mixer.most_calls or capacity)
    count, counted = 1, _count_turn(process, case, side, 1)
    while counted < _LEAST_NS and count < most_calls:
        count = min(4 * count, most_calls)
        counted = _count_turn(process, case, side, count)
    call_ns = max(1, counted) / count
    if side is Side.PARTNER:
        case.call_ns[artefact] = call_ns
    return call_ns


def _count_turn(process: TimedProcess, case: TimedCase, side: Side, count: int) -> int:
    """The shorter of two turns of so many calls, in nanoseconds."""
    counted = []
    for turn in plan_turns(PairProtocol(1, 2, 0, 1), count, count):
        if turn.side is side:
            case.mixer.fill_slots(process.memory, turn)
            process.time_turn(side, turn.slots)
            counted.append(process.count_time())
    return min(counted)


def measure_pairs(room: TimingRoom, case: TimedCase, plan: PairPlan, seed: int) -> Iterator[PairTimes]:
    """Both sides in one process, one after the other. Raises WrongOutputError, TimingError."""
    for number in range(plan.protocol.processes):
        with room.start_timed(case.artefacts, is_reversed=bool((seed + number) % 2)) as process:
            readings = _Readings()
            prepared = random.Random(seed + number).sample(case.recipes, len(case.recipes))
            for turn in plan_turns(plan.protocol, plan.slots, seed, number):
                recipes = {slot: prepared.pop() for slot in turn.checked if prepared}
                recipes = case.mixer.fill_slots(process.memory, turn, recipes)
                elapsed = process.time_turn(turn.side, turn.slots)
                _read_turn(readings, case, process, turn, recipes, elapsed)
                _watch_turn(readings, process, turn)
            overhead = min(_measure_overhead(process, case, turn) for _ in range(_EMPTY_TURNS))
            _compare_clocks(readings, plan.slots, overhead)
        yield _check_readings(readings, case, plan.protocol, seed)


def _watch_turn(readings: _Readings, process: TimedProcess, turn: Turn) -> None:
    counted = process.count_time()  # asked after a warm-up too: it counts from when we last asked
    if not turn.is_warm_up:
        readings.outside[turn.side].append(counted)


def _compare_clocks(readings: _Readings, slots: int, overhead: float) -> None:
    """Raises TimingError where the clocks contradict each other."""
    own = {side: slots * statistics.median(times) for side, times in readings.times.items()}
    ours = {side: statistics.median(counts) - overhead for side, counts in readings.outside.items()}
    problem = compare_turns(
        (own[Side.PROGRAM], own[Side.PARTNER]),
        (ours[Side.PROGRAM], ours[Side.PARTNER]),
    )
    if problem:
        raise TimingError(problem)


def measure_apart(room: TimingRoom, case: TimedCase, plan: PairPlan, seed: int) -> Iterator[PairTimes]:
    """Each side in a process of its own, by our clock. Raises WrongOutputError, TimingError."""
    for number in range(plan.protocol.processes):
        with ExitStack() as stack:
            processes = {
                side: stack.enter_context(room.start_timed(case.artefacts.take_side(side))) for side in reversed(Side)
            }
            readings, overheads = _Readings(), []
            for turn in plan_turns(plan.protocol, plan.slots, seed + 1, number):
                process = processes[turn.side]
                if turn.side is Side.PARTNER:
                    overheads.append(_measure_overhead(process, case, turn))
                recipes = case.mixer.fill_slots(process.memory, turn)
                process.time_turn(turn.side, turn.slots)
                _read_turn(readings, case, process, turn, recipes, process.count_time())
        overhead = _choose_overhead(overheads, case.artefacts.threads) / plan.slots
        _subtract_overhead(readings, overhead)
        shares = [overhead / statistics.median(readings.times[side]) for side in Side]  # a turn with calls costs more
        yield replace(_check_readings(readings, case, plan.protocol, seed), error=abs(shares[0] - shares[1]))


def _measure_overhead(process: TimedProcess, case: TimedCase, turn: Turn) -> int:
    """What a turn without a call costs at this place of the schedule, in a process that holds nothing of the
    program's: one that it were in could make it look dear."""
    case.mixer.fill_slots(process.memory, turn)
    process.time_turn(turn.side, ())
    return process.count_time()


def _choose_overhead(overheads: Sequence[int], threads: int) -> float:
    """The usual one; of time on the wall, which has all that disturbed in it, the least."""
    return statistics.median(overheads) if threads == 1 else min(overheads)


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
