"""Schedules: pure data from a seed in which nothing remembered, computed ahead or left by the partner is of use."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.timing.engine import (
    FULL,
    LEAST_PAIRS,
    MOST_SLOTS,
    SCREEN,
    PairProtocol,
    Side,
    Turn,
    choose_slot_count,
    plan_turns,
)

PROTOCOLS = st.builds(
    PairProtocol,
    processes=st.integers(1, 3),
    pairs=st.integers(1, 9),
    warm_ups=st.integers(0, 3),
    checks=st.integers(1, 4),
)
SLOTS = st.integers(1, 12)
SEEDS = st.integers(0, 2**32)


@given(PROTOCOLS, SLOTS, SEEDS)
def test_every_pair_is_a_turn_of_each_side_one_after_the_other(protocol: PairProtocol, slots: int, seed: int) -> None:
    turns = plan_turns(protocol, slots, seed)
    pairs = [turns[place : place + 2] for place in range(0, len(turns), 2)]
    assert [pair[0].pair for pair in pairs] == list(range(-protocol.warm_ups, protocol.pairs))
    assert all(first.pair == second.pair and {first.side, second.side} == set(Side) for first, second in pairs)


@given(PROTOCOLS, SLOTS, SEEDS)
def test_a_turn_calls_each_slot_of_its_side_once_and_no_other(protocol: PairProtocol, slots: int, seed: int) -> None:
    turns = plan_turns(protocol, slots, seed)
    of_side = {side: {slot for turn in turns if turn.side is side for slot in turn.slots} for side in Side}
    assert of_side[Side.PROGRAM].isdisjoint(of_side[Side.PARTNER])
    assert of_side[Side.PROGRAM] | of_side[Side.PARTNER] == set(range(2 * slots))
    assert all(len(turn.slots) == slots and set(turn.slots) == of_side[turn.side] for turn in turns)


@given(PROTOCOLS, SLOTS, SEEDS)
def test_outputs_are_checked_after_every_timed_turn_of_the_program_only(
    protocol: PairProtocol, slots: int, seed: int
) -> None:
    for turn in plan_turns(protocol, slots, seed):
        is_checked = turn.side is Side.PROGRAM and not turn.is_warm_up
        assert len(turn.checked) == (min(protocol.checks, slots) if is_checked else 0)
        assert turn.checked <= set(turn.slots)
        assert turn.poisoned <= set(turn.slots)


@given(PROTOCOLS, SEEDS)
def test_no_inputs_are_used_twice_in_any_process(protocol: PairProtocol, seed: int) -> None:
    seeds = [turn.input_seed for process in range(3) for turn in plan_turns(protocol, 2, seed, process)]
    assert len(set(seeds)) == len(seeds)


@given(PROTOCOLS, SLOTS, SEEDS)
def test_either_side_comes_first_equally_often(protocol: PairProtocol, slots: int, seed: int) -> None:
    firsts = Counter(turn.side for turn in plan_turns(protocol, slots, seed)[::2])
    assert abs(firsts[Side.PROGRAM] - firsts[Side.PARTNER]) <= 1


def list_program_turns(seed: int, process: int = 0) -> list[Turn]:
    return [turn for turn in plan_turns(FULL, 6, seed, process) if turn.side is Side.PROGRAM and not turn.is_warm_up]


def test_a_schedule_is_the_same_for_the_same_seed_and_process_only() -> None:
    assert list_program_turns(1) == list_program_turns(1)
    assert list_program_turns(1) != list_program_turns(2)
    assert list_program_turns(1) != list_program_turns(1, process=1)


def test_a_program_cannot_tell_which_calls_are_looked_at() -> None:
    turns = list_program_turns(3)
    places = Counter(turn.slots.index(slot) for turn in turns for slot in turn.checked)
    assert set(places) == set(range(6)), "the first call and the last one too"
    assert any(turn.checked & turn.poisoned for turn in turns)
    assert any(turn.checked - turn.poisoned for turn in turns)
    assert all(first.slots != second.slots for first, second in pairwise(turns[:5]))


def test_which_slots_are_whose_differs_between_processes() -> None:
    owned = {frozenset(list_program_turns(4, process)[0].slots) for process in range(FULL.processes)}
    assert len(owned) > 1


def test_grades_are_as_large_as_promised() -> None:
    assert (SCREEN.processes, SCREEN.pairs) == (1, 20)
    assert FULL.processes >= 3
    assert FULL.processes * FULL.pairs >= 100


@pytest.mark.parametrize(
    ("call_ns", "slot_bytes", "memory", "slots"),
    [
        (4e6, 1 << 10, 1 << 28, 1),  # one call takes as long as a turn should
        (1e9, 1 << 10, 1 << 28, 1),
        (4e3, 1 << 10, 1 << 28, 1000),
        (1.0, 64, 1 << 28, MOST_SLOTS),
        (4e3, 1 << 20, 1 << 28, 128),  # both sides must fit
    ],
)
def test_a_turn_is_long_enough_and_fits(call_ns: float, slot_bytes: int, memory: int, slots: int) -> None:
    assert choose_slot_count(call_ns, slot_bytes, memory) == slots


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="expected room for two"):
        choose_slot_count(1e3, 100, 150)
    with pytest.raises(ValueError, match="at least 1"):
        plan_turns(SCREEN, 0, 1)
    with pytest.raises(ValueError, match="at least one process"):
        PairProtocol(processes=1, pairs=0)


@given(SLOTS, SEEDS)
def test_a_screen_compares_few_outputs_and_nobody_knows_which(slots: int, seed: int) -> None:
    turns = [turn for turn in plan_turns(SCREEN, slots, seed) if turn.checked]
    assert [turn.side for turn in turns] == [Side.PROGRAM] * SCREEN.prepared
    assert all(len(turn.checked) == 1 and not turn.is_warm_up for turn in turns)


@given(st.floats(1.0, 1e10))
def test_slow_programs_have_fewer_pairs_in_a_screen_and_as_many_otherwise(pair_ns: float) -> None:
    fitting = SCREEN.fit_pairs(pair_ns)
    assert LEAST_PAIRS <= fitting.pairs <= SCREEN.pairs
    assert fitting.pairs == LEAST_PAIRS or (fitting.pairs + fitting.warm_ups) * pair_ns <= 1.01e9 * SCREEN.seconds
    assert FULL.fit_pairs(pair_ns) == FULL
