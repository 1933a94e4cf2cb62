"""The engine of timing: which calls are made in which order, by which clocks they are read, and what the readings say.

The standard library of Python 3.8 or newer and nothing of ours: the same module times programs in confined processes on
this machine, and goes with the stand-alone runner to machines that have Python alone. How a process is started and
confined, who puts inputs into its memory and who compares outputs plugs in (`TimedCase`).

A *slot* is memory for one call's inputs and outputs. A *turn* is one side's calls that are timed together, one for each
of its slots: inputs never repeat within a turn, so that nothing remembered helps. A *pair* is a turn of the program and
one of its partner, one directly after the other. The sides never share a slot: what the partner computes is nowhere
that the program's outputs are read. All of it follows from a seed that a candidate never sees.

Two clocks: the one in the process is precise, and the candidate could forge it; the one that we read from outside (the
processor time that the kernel counts for a process) is coarse, and beside every turn. Who shares a process with the
partner could slow it, too: what its turns cost is known from a process that never held the program (`check_control`).
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import statistics
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

SLOT_MEMORY = 256 << 20  # bytes of all slots together
TURN_NS = 4e6  # how long a turn should take
MOST_SLOTS = 4096  # of one side
LEAST_CHECKS = 12  # outputs of each process that are compared, however long it takes
LEAST_PAIRS = 6  # of each process, however long they take
LEAST_GAIN = 1.03  # what is less than that is the machine's noise
CONTRADICTION = 1.3  # times what one clock says of a turn the other one may say: turns are short
SLACK_NS = 1e5  # and so much more
DEVIATION = 0.1  # of what turns take by our clock where the program never was, beside the interval of that
NUMBER = struct.Struct("<q")  # of a turn's message: the number of the side, then where each slot begins
_PROCESS_CPU = 2  # CPUCLOCK_SCHED of <linux/posix-timers_types.h>: user and system time, to the nanosecond
_START_S, _TURN_S = 30.0, 30.0
_LEAST_NS = 1e6  # a turn that is shorter says little of a call
_SLOWER = 5  # by how much the slower side's turn may pass the time that a turn should take
_FILLED = 2.0  # bytes a nanosecond that are written before a turn, or more
_PRICE_NS = 2e4  # by which what our clock counts beside the calls differs between turns of one process
_RANKED = 8  # figures, of which the second and the last but one are the ends of an interval of 93 %
_EMPTY_TURNS = 5  # that say what a turn costs without a call
_TURN_COST_NS = 5e5  # of a pair, beside calls and inputs


class TimingFault(Exception):
    """What stops a measurement, in words."""


class DeviationFault(TimingFault):
    """What one process said may have been the machine's doing."""


class Side(str, Enum):
    """Whose calls a turn is of."""

    PROGRAM = "program"
    PARTNER = "partner"


SIDES = (Side.PROGRAM, Side.PARTNER)  # by the numbers that messages have for them


# -- the schedule


@dataclass(frozen=True)
class PairProtocol:
    """How much is measured."""

    processes: int
    pairs: int  # in each process
    warm_ups: int = 2  # pairs before the first one that counts
    checks: int = 2  # outputs of each turn of the program that may be compared
    checking_seconds: float = 0.5  # for comparing, in each process: LEAST_CHECKS outputs at least
    prepared: int = 0  # turns of each process, of which one output each is compared; 0: of every turn, as `checks` says
    turn_ns: float = TURN_NS  # how long a turn should take
    turn_bytes: int = SLOT_MEMORY  # that inputs and outputs of a turn's calls take at most
    seconds: float = math.inf  # of all pairs of a process; where they take longer there are fewer of them
    controls: int = 0  # pairs of each process beside which the partner has a turn in a process without the program

    def __post_init__(self) -> None:
        if min(self.processes, self.pairs, self.checks) < 1 or self.warm_ups < 0:
            raise ValueError(f"{self}: expected at least one process, pair and check")

    def fit_pairs(self, pair_ns: float, most_calls: int | None = None) -> PairProtocol:
        """The same with as many pairs of this length as there is time for, and as there are inputs (None: any)."""
        fitting = int(min(self.seconds * 1e9 / pair_ns, self.pairs + self.warm_ups))
        warm_ups = self.warm_ups if fitting >= self.pairs else min(self.warm_ups, 1)
        pairs = max(min(LEAST_PAIRS, self.pairs), fitting - warm_ups)
        if most_calls is not None and pairs + warm_ups > most_calls:
            return replace(self, pairs=max(1, most_calls - 1), warm_ups=min(1, most_calls - 1))
        return replace(self, pairs=pairs, warm_ups=warm_ups)


SCREEN = PairProtocol(
    processes=1, pairs=20, prepared=LEAST_CHECKS, turn_ns=1e6, turn_bytes=4 << 20, checking_seconds=0.0, seconds=0.15,
    controls=8,
)  # fmt: skip
FULL = PairProtocol(processes=5, pairs=20)  # intervals of five processes are half as wide as those of three


@dataclass(frozen=True)
class Turn:
    """Calls of one side that are timed together.

    Before it every slot gets inputs that were never there; the outputs of some are poisoned, the others keep what the
    last turn left, so that a program can tell neither way that it is looked at.
    """

    pair: int  # from 0; a warm-up's is negative
    side: Side
    slots: tuple[int, ...]  # in the order of the calls, each once
    input_seed: int  # of the inputs of all its slots
    calls: int  # of its side in this process before it
    poisoned: frozenset[int] = frozenset()
    checked: frozenset[int] = frozenset()  # whose outputs are compared after it; empty for the partner and in a warm-up

    @property
    def is_warm_up(self) -> bool:
        return self.pair < 0


def choose_slot_count(call_ns: float, slot_bytes: int, memory: int, turn_ns: float = TURN_NS) -> int:
    """Slots of each side: so many that a turn takes long enough to time, or as many as `memory` bytes hold.

    Raises ValueError where they do not hold one for each side.

    >>> choose_slot_count(call_ns=40_000, slot_bytes=1 << 20, memory=1 << 30)
    100
    """
    fitting = memory // max(1, 2 * slot_bytes)
    if fitting < 1 or call_ns <= 0:
        raise ValueError(
            f"slots: given {slot_bytes} bytes each and {memory} in all, {call_ns} ns; expected room for two"
        )
    return max(1, min(round(turn_ns / call_ns), fitting, MOST_SLOTS))


def plan_turns(protocol: PairProtocol, slots: int, seed: int, process: int = 0) -> list[Turn]:
    """The turns of one process in order, with `slots` of each side; other processes have other ones."""
    if slots < 1:
        raise ValueError(f"slots: given {slots} for each side; expected at least 1")
    return list(_draw_turns(protocol, slots, random.Random(f"{seed}:{process}")))


def _draw_turns(protocol: PairProtocol, slots: int, generator: random.Random) -> Iterator[Turn]:
    numbers = generator.sample(range(2 * slots), 2 * slots)  # which slots are whose is luck that a process keeps
    slots_of = {Side.PROGRAM: numbers[:slots], Side.PARTNER: numbers[slots:]}
    pairs = range(-protocol.warm_ups, protocol.pairs)
    is_program_first = [place % 2 == 0 for place in range(len(pairs))]  # equally often: what drifts favours neither
    generator.shuffle(is_program_first)
    checks = _draw_checks(protocol, generator)
    for number, pair in enumerate(pairs):
        for side in SIDES if is_program_first[number] else SIDES[::-1]:
            order = tuple(generator.sample(slots_of[side], slots))
            poisoned = frozenset(slot for slot in order if generator.random() < 0.5)
            count = checks.get(pair, 0) if side is Side.PROGRAM else 0
            checked = frozenset(generator.sample(order, min(count, slots)))
            yield Turn(pair, side, order, generator.getrandbits(64), number * slots, poisoned, checked)


def _draw_checks(protocol: PairProtocol, generator: random.Random) -> dict[int, int]:
    """How many outputs of the program's turn are compared, by pair."""
    if not protocol.prepared:
        return dict.fromkeys(range(protocol.pairs), protocol.checks)
    return dict.fromkeys(generator.sample(range(protocol.pairs), min(protocol.prepared, protocol.pairs)), 1)


# -- the clocks


def read_process_clock(pid: int) -> int | None:
    """Nanoseconds of processor time of all threads of a process, as the kernel counts them; None: there is no such
    process, or no such clock here.

    The process cannot change it. It is as coarse as the kernel's bookkeeping (microseconds) and holds all that the
    process does, so that it says what a program cost and not how long somebody waited for it. A process that has ended
    and was not waited for still has its clock.
    """
    if pid <= 0:
        raise ValueError(f"read_process_clock: given process {pid}; expected a positive number")
    try:
        return time.clock_gettime_ns((~pid << 3) | _PROCESS_CPU)
    except OSError:
        return None


def count_processors() -> int:
    """On which this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class TurnTimer:
    """Our end of a process that calls programs on slots: the time of one turn by two clocks. A context manager.

    One thread: the process reads its processor time, and so do we, outside. Several: both read the clock on the wall,
    since threads that wait for each other spin. Between turns the process is stopped, so that nothing it left to a
    thread works on unseen, looks at inputs as they come, or is in the way of another process's turn.
    """

    def __init__(self, pid: int, threads: int, stride: int) -> None:
        """Of a process that is ready for turns. Raises TimingFault."""
        self._pid, self._has_threads, self._stride = pid, threads > 1, stride
        self._counted, self._waited = self._read_clock(), 0
        self._send_signal(signal.SIGSTOP)

    def exchange_message(self, message: bytes, seconds: float) -> bytes:
        """What the process answers. Raises TimingFault."""
        raise NotImplementedError

    def close(self) -> object:
        """End the process."""
        raise NotImplementedError

    def time_turn(self, side: Side, slots: Sequence[int]) -> int:
        """Nanoseconds by the clock that the process reads. Raises TimingFault."""
        words = (SIDES.index(side), *(slot * self._stride for slot in slots))
        self._send_signal(signal.SIGCONT)
        begin = time.monotonic_ns()
        answer = self.exchange_message(struct.pack(f"<{len(words)}q", *words), _TURN_S)
        self._waited = time.monotonic_ns() - begin
        self._send_signal(signal.SIGSTOP)
        if len(answer) != NUMBER.size:
            raise TimingFault("the process in which programs are timed answers something that is no time")
        elapsed: int = NUMBER.unpack(answer)[0]
        return elapsed

    def count_time(self) -> int:
        """Nanoseconds of the last turn by our clock. One thread: what the kernel has counted for the process since we
        last asked, so that all it did is in it, between turns too. Several: how long we waited for its answer."""
        if self._has_threads:
            return self._waited
        before, self._counted = self._counted, self._read_clock()
        return self._counted - before

    def __enter__(self) -> TurnTimer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_signal(self, number: signal.Signals) -> None:
        """To the process, whose id is its own until it is waited for."""
        os.kill(self._pid, number)

    def _read_clock(self) -> int:
        counted = read_process_clock(self._pid)
        if counted is None:
            raise TimingFault("the process in which programs are timed has gone")
        return counted


def compare_turns(own: tuple[float, float], ours: tuple[float, float]) -> str:
    """Why a process says nothing: (program's, partner's) nanoseconds of a turn by its own clock make a gain that the
    clock outside denies; "": it may be so.

    Both sides share the process, so that this finds a clock that is forged, and work that is done unseen, if they make
    much of a difference. The full grade, with processes apart, finds the rest. There a clock that is forged by turns
    alone would widen its interval until the trusted one overlaps it.

    >>> compare_turns((3e5, 1e6), (1e6, 1e6))
    "the process's own clock says 3.33, the clock outside it 1.00"
    >>> compare_turns((3e5, 1e6), (3.5e5, 1.05e6))
    ''
    """
    gain = own[1] / own[0]
    is_hidden = ours[0] > CONTRADICTION * own[0] + SLACK_NS
    is_padded = own[1] > CONTRADICTION * ours[1] + SLACK_NS
    if gain <= LEAST_GAIN or not (is_hidden or is_padded):
        return ""
    return f"the process's own clock says {gain:.2f}, the clock outside it {ours[1] / max(1.0, ours[0]):.2f}"


# -- the readings


class TimedCase(Protocol):
    """A program and its partner at one shape set: what plugs into the engine."""

    @property
    def threads(self) -> int: ...

    @property
    def stride(self) -> int:
        """Bytes from one slot to the next."""

    @property
    def most_calls(self) -> int | None:
        """Of a side in one process, so that no inputs come twice; None: any number."""

    @property
    def recipes(self) -> Sequence[Any]:
        """Of inputs whose answers are known before, for slots that are checked; (): there are none."""

    def start_process(self, sides: Sequence[Side]) -> contextlib.AbstractContextManager[Any]:
        """A process that has loaded these sides in this order: a TurnTimer. Raises TimingFault."""

    def fill_turn(self, process: Any, turn: Turn, prepared: Mapping[int, Any]) -> Mapping[int, Any]:
        """Put fresh inputs into a turn's slots, and poison; the recipes of slots that are checked. `prepared`: those
        of some slots."""

    def read_outputs(self, process: Any, slot: int) -> list[bytes]: ...


@dataclass(frozen=True)
class PairPlan:
    """How many pairs of turns, of how many calls."""

    protocol: PairProtocol
    slots: int  # of each side
    call_ns: Mapping[Side, float]  # what it was chosen by


@dataclass(frozen=True)
class PairTimes:
    """Nanoseconds of one call, pair by pair, in one process (or two that belong together)."""

    program: tuple[float, ...]
    partner: tuple[float, ...]
    checked: int = 0  # outputs that were compared and are right
    error: float = 0.0  # of their ratio, as a share of it: by what our clock counts beside the calls
    filling_ns: float = 0.0  # that inputs took to be drawn, which is in no time
    outputs: tuple[tuple[Any, list[bytes]], ...] = ()  # with their recipes, to be compared


@dataclass
class _Readings:
    times: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})
    outside: dict[Side, list[float]] = field(default_factory=lambda: {side: [] for side in SIDES})  # ns of each turn
    outputs: list[tuple[Any, list[bytes]]] = field(default_factory=list)
    controls: list[tuple[int, int]] = field(default_factory=list)  # ns of the partner's turns elsewhere: ours, its own
    filling_ns: float = 0.0

    def fill_turn(self, case: TimedCase, process: Any, turn: Turn, prepared: Mapping[int, Any]) -> Mapping[int, Any]:
        begin = time.monotonic_ns()
        recipes = case.fill_turn(process, turn, prepared)
        self.filling_ns += time.monotonic_ns() - begin
        return recipes

    def read_turn(self, case: TimedCase, process: Any, turn: Turn, recipes: Mapping[int, Any], elapsed: float) -> None:
        if turn.is_warm_up:
            return
        if elapsed <= 0:
            raise TimingFault(f"a turn of {elapsed:.0f} ns; expected some time")
        self.times[turn.side].append(elapsed / len(turn.slots))
        self.outputs += [(recipe, case.read_outputs(process, slot)) for slot, recipe in recipes.items()]

    def freeze(self, error: float = 0.0) -> PairTimes:
        program, partner = (tuple(self.times[side]) for side in SIDES)
        return PairTimes(program, partner, 0, error, self.filling_ns, tuple(self.outputs))


def plan_pairs(case: TimedCase, protocol: PairProtocol, call_ns: Mapping[Side, float]) -> PairPlan:
    """As a protocol says, for programs as fast as these, by the clock outside of processes of each side alone, which
    are asked for no figure. `call_ns`: of sides that were timed before. Raises TimingFault."""
    memory = min(SLOT_MEMORY, max(protocol.turn_bytes, case.stride) * 2)
    try:
        capacity = choose_slot_count(1.0, case.stride, memory)
    except ValueError as error:
        raise TimingFault(f"the arrays are too large to be timed: {error}") from None
    timed = dict(call_ns)
    for side in SIDES:
        if side not in timed:
            with case.start_process([side]) as process:
                timed[side] = _find_call_time(process, case, side, capacity)
    fastest, slowest = min(timed.values()), max(timed.values())
    slots = choose_slot_count(max(fastest, slowest / _SLOWER), case.stride, memory, protocol.turn_ns)
    if case.most_calls is not None:
        slots = max(1, min(slots, case.most_calls // (protocol.pairs + protocol.warm_ups)))
    turn_ns = {side: slots * (timed[side] + case.stride / _FILLED) + _TURN_COST_NS / 2 for side in SIDES}
    pair_ns = sum(turn_ns.values()) + turn_ns[Side.PARTNER] * protocol.controls / protocol.pairs
    return PairPlan(protocol.fit_pairs(pair_ns, case.most_calls), slots, timed)


def _find_call_time(process: TurnTimer, case: TimedCase, side: Side, capacity: int) -> float:
    """Nanoseconds of one call."""
    most_calls = min(capacity, case.most_calls or capacity)
    count, counted = 1, _count_turn(process, case, side, 1)
    while counted < _LEAST_NS and count < most_calls:
        count = min(4 * count, most_calls)
        counted = _count_turn(process, case, side, count)
    return max(1, counted) / count


def _count_turn(process: TurnTimer, case: TimedCase, side: Side, count: int) -> int:
    """The shorter of two turns of so many calls, in nanoseconds."""
    counted = []
    for turn in plan_turns(PairProtocol(1, 2, 0, 1), count, count):
        if turn.side is side:
            case.fill_turn(process, turn, {})
            process.time_turn(side, turn.slots)
            counted.append(process.count_time())
    return min(counted)


def measure_pairs(case: TimedCase, plan: PairPlan, seed: int) -> Iterator[PairTimes]:
    """Both sides in one process, one after the other, by the clock that it reads, beside which ours is read after every
    turn. Raises TimingFault, also where the clocks contradict each other, or where the partner's turns are not what
    they are without the program: twice, as once may be the machine's doing."""
    for number in range(plan.protocol.processes):
        try:
            yield _time_pairs(case, plan, seed, number)
        except DeviationFault:
            try:
                times = _time_pairs(case, plan, seed, plan.protocol.processes + number)
            except DeviationFault as fault:
                raise TimingFault(f"{fault}; measured twice")
            yield times


def _time_pairs(case: TimedCase, plan: PairPlan, seed: int, number: int) -> PairTimes:
    """In the process of this number."""
    readings, protocol = _Readings(), plan.protocol
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(case.start_process(SIDES[:: 1 - 2 * ((seed + number) % 2)]))
        control = stack.enter_context(case.start_process([Side.PARTNER])) if protocol.controls else None
        generator = random.Random(seed + number)
        prepared = generator.sample(list(case.recipes), len(case.recipes))
        controlled = generator.sample(range(protocol.pairs), min(protocol.controls, protocol.pairs))
        for turn in plan_turns(protocol, plan.slots, seed, number):
            prepared_here = {slot: prepared.pop() for slot in turn.checked if prepared}
            recipes = readings.fill_turn(case, process, turn, prepared_here)
            elapsed = process.time_turn(turn.side, turn.slots)
            readings.read_turn(case, process, turn, recipes, elapsed)
            counted = process.count_time()  # asked after a warm-up too: it counts from when we last asked
            readings.outside[turn.side] += [] if turn.is_warm_up else [counted]
            if control is not None and turn.side is Side.PARTNER and (turn.pair in controlled or turn.is_warm_up):
                readings.fill_turn(case, control, turn, {})
                elapsed = control.time_turn(turn.side, turn.slots)
                readings.controls += [(control.count_time(), elapsed)][: not turn.is_warm_up]
        overhead = min(_measure_overhead(process, case, turn) for _ in range(_EMPTY_TURNS))
    _compare_clocks(readings, plan.slots, overhead)
    if readings.controls:
        _check_control(readings, plan.slots)
    return readings.freeze()


def _check_control(readings: _Readings, slots: int) -> None:
    """Raises DeviationFault."""
    own = [slots * statistics.median(readings.times[side]) for side in SIDES]
    ours = [statistics.median(readings.outside[side]) for side in SIDES]
    problem = check_control((own[0], own[1]), (ours[0], ours[1]), readings.controls)
    if problem:
        raise DeviationFault(problem)


def check_control(own: tuple[float, float], ours: tuple[float, float], controls: Sequence[tuple[float, float]]) -> str:
    """Why a process says nothing beside one that never held the program: (program's, partner's) nanoseconds of a turn
    by its own clock and by ours, and those of the partner's turns there, ours and its own; "": they agree.

    What our clock counts beside the calls of a turn is known from there as well, and from the partner's turns here.

    >>> check_control((1e6, 8e6), (1.1e6, 8.1e6), [(1.1e6, 1e6)] * 8)
    'beside the program the partner takes 8.00 times what it takes alone; at most 1.10 may be chance'
    >>> check_control((0.8e6, 1e6), (1.1e6, 1.1e6), [(1.1e6, 1e6)] * 8)
    'the program takes 1.25 times what the clock of its process says; at most 1.12 may be chance'
    >>> check_control((1e6, 1.2e6), (1.1e6, 1.3e6), [(1.1e6, 1e6), (1.2e6, 1.1e6), (1.3e6, 1.2e6)])
    ''
    """
    price, of_price = _find_middle([counted - elapsed for counted, elapsed in controls])
    alone, of_alone = _find_middle([counted - price for counted, _ in controls])
    taken = ours[0] - min(ours[1] - own[1], price + of_price)
    for share, chance, words in (
        (
            max(ours[1] - price, own[1]) / alone,
            of_alone / alone,
            "beside the program the partner takes {} times what it takes alone",
        ),
        (taken / own[0], _PRICE_NS / own[0], "the program takes {} times what the clock of its process says"),
    ):
        allowed = 1 + DEVIATION + chance
        if share > allowed:
            return words.format(f"{share:.2f}") + f"; at most {allowed:.2f} may be chance"
    return ""


def _find_middle(figures: Sequence[float]) -> tuple[float, float]:
    """The median, and how far the further end of its interval lies from it: of eight figures one of 93 %."""
    ranked, middle, rank = sorted(figures), statistics.median(figures), int(len(figures) >= _RANKED)
    return middle, max(middle - ranked[rank], ranked[-1 - rank] - middle)


def _compare_clocks(readings: _Readings, slots: int, overhead: float) -> None:
    """Raises TimingFault where the clocks contradict each other."""
    own = [slots * statistics.median(readings.times[side]) for side in SIDES]
    ours = [statistics.median(readings.outside[side]) - overhead for side in SIDES]
    problem = compare_turns((own[0], own[1]), (ours[0], ours[1]))
    if problem:
        raise TimingFault(problem)


def measure_apart(case: TimedCase, plan: PairPlan, seed: int) -> Iterator[PairTimes]:
    """Each side in a process of its own, by our clock, so that nothing it does goes uncounted. Raises TimingFault."""
    for number in range(plan.protocol.processes):
        readings, overheads = _Readings(), []
        with contextlib.ExitStack() as stack:
            processes = {side: stack.enter_context(case.start_process([side])) for side in SIDES[::-1]}
            for turn in plan_turns(plan.protocol, plan.slots, seed + 1, number):
                process = processes[turn.side]
                if turn.side is Side.PARTNER:
                    overheads.append(_measure_overhead(process, case, turn))
                recipes = readings.fill_turn(case, process, turn, {})
                process.time_turn(turn.side, turn.slots)
                readings.read_turn(case, process, turn, recipes, process.count_time())
        # the usual one; of time on the wall, which has all that disturbed in it, the least
        overhead = (statistics.median(overheads) if case.threads == 1 else min(overheads)) / plan.slots
        _subtract_overhead(readings, overhead)
        shares = [overhead / statistics.median(readings.times[side]) for side in SIDES]  # a turn with calls costs more
        yield readings.freeze(abs(shares[0] - shares[1]))


def _measure_overhead(process: TurnTimer, case: TimedCase, turn: Turn) -> int:
    """What a turn without a call costs at this place of the schedule; for processes apart in one that holds nothing of
    the program's, which could make it look dear."""
    case.fill_turn(process, turn, {})
    process.time_turn(turn.side, ())
    return process.count_time()


def _subtract_overhead(readings: _Readings, overhead: float) -> None:
    """Take what no call costs from what a call took. Raises TimingFault where nothing is left."""
    for side, times in readings.times.items():
        readings.times[side] = [elapsed - overhead for elapsed in times]
        if min(readings.times[side]) <= 0:
            raise TimingFault("a call is too short for the clock outside the process")
