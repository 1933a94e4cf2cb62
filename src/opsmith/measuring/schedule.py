"""The schedule of a measurement: which calls are made in which order on which data, and which outputs are checked.

Pure data from a seed, so that it can be read and repeated; a candidate never sees it. A *slot* is memory for one call's
inputs and outputs. A *turn* is one side's calls that are timed together, one for each of its slots: inputs never repeat
within a turn, so that nothing remembered helps. A *pair* is a turn of the program and one of its partner, one directly
after the other. The sides never share a slot: what the partner computes is nowhere that the program's outputs are read.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from opsmith.records import content_hash
from opsmith.running.arena import CAPACITY

TURN_NS = 4e6  # how long a turn should take
MOST_SLOTS = 4096  # of one side
LEAST_CHECKS = 4  # outputs of each process that are compared, however long it takes
LEAST_PAIRS = 6  # of each process, however long they take


class Side(StrEnum):
    PROGRAM = "program"
    PARTNER = "partner"


@dataclass(frozen=True)
class PairProtocol:
    """How much is measured."""

    processes: int
    pairs: int  # in each process
    warm_ups: int = 2  # pairs before the first one that counts
    checks: int = 2  # outputs of each turn of the program that may be compared
    checking_seconds: float = 0.5  # for comparing, in each process: LEAST_CHECKS outputs at least
    prepared: int = 0  # checks of each process, on inputs whose answers are computed before; 0: as `checks` says
    turn_ns: float = TURN_NS  # how long a turn should take
    turn_bytes: int = CAPACITY  # that inputs and outputs of a turn's calls take at most
    seconds: float = math.inf  # of all pairs of a process; where they take longer there are fewer of them

    def __post_init__(self) -> None:
        if min(self.processes, self.pairs, self.checks) < 1 or self.warm_ups < 0:
            raise ValueError(f"{self}: expected at least one process, pair and check")

    def fit_pairs(self, pair_ns: float) -> PairProtocol:
        """The same with as many pairs of this length as there is time for."""
        fitting = int(min(self.seconds * 1e9 / pair_ns, self.pairs + self.warm_ups))
        warm_ups = self.warm_ups if fitting >= self.pairs else min(self.warm_ups, 1)
        return replace(self, warm_ups=warm_ups, pairs=max(min(LEAST_PAIRS, self.pairs), fitting - warm_ups))


SCREEN = PairProtocol(
    processes=1, pairs=20, prepared=LEAST_CHECKS, turn_ns=1e6, turn_bytes=4 << 20, checking_seconds=0.0, seconds=0.15,
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
    return list(_draw_turns(protocol, slots, random.Random(_derive_seed(seed, process)), (seed, process)))


def _draw_turns(protocol: PairProtocol, slots: int, generator: random.Random, place: tuple[int, int]) -> Iterator[Turn]:
    numbers = generator.sample(range(2 * slots), 2 * slots)  # which slots are whose is luck that a process keeps
    slots_of = {Side.PROGRAM: numbers[:slots], Side.PARTNER: numbers[slots:]}
    pairs = range(-protocol.warm_ups, protocol.pairs)
    checks = _draw_checks(protocol, generator)
    for number, (pair, order) in enumerate(zip(pairs, _draw_orders(len(pairs), generator), strict=True)):
        for side in order:
            input_seed = _derive_seed(*place, pair, list(Side).index(side))
            count = checks.get(pair, 0) if side is Side.PROGRAM else 0
            yield _draw_turn(Turn(pair, side, tuple(slots_of[side]), input_seed, number * slots), count, generator)


def _draw_checks(protocol: PairProtocol, generator: random.Random) -> dict[int, int]:
    """How many outputs of the program's turn are compared, by pair."""
    if not protocol.prepared:
        return dict.fromkeys(range(protocol.pairs), protocol.checks)
    return dict.fromkeys(generator.sample(range(protocol.pairs), min(protocol.prepared, protocol.pairs)), 1)


def _draw_turn(turn: Turn, checks: int, generator: random.Random) -> Turn:
    poisoned = frozenset(slot for slot in turn.slots if generator.random() < 0.5)
    checked = frozenset(generator.sample(turn.slots, min(checks, len(turn.slots))))
    order = tuple(generator.sample(turn.slots, len(turn.slots)))
    return replace(turn, slots=order, poisoned=poisoned, checked=checked)


def _draw_orders(pairs: int, generator: random.Random) -> list[tuple[Side, Side]]:
    """Who comes first: either side equally often, so that what drifts favours neither."""
    program_first = [place % 2 == 0 for place in range(pairs)]
    generator.shuffle(program_first)
    forward = (Side.PROGRAM, Side.PARTNER)
    return [forward if is_first else forward[::-1] for is_first in program_first]


def _derive_seed(*numbers: int) -> int:
    return int(content_hash("measuring", *map(str, numbers))[:16], 16)
