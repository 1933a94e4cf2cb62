"""A partner beside the program is known from a process without it: what deviates is measured once more, then void."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from opsmith.timing.engine import SCREEN, PairPlan, Side, TimingFault, Turn, check_control, measure_pairs

TURN_NS, PRICE_NS = 1_000_000, 100_000


class ScriptedProcess(contextlib.AbstractContextManager["ScriptedProcess"]):
    """Turns of the partner take so many times as long as those of the program."""

    def __init__(self, times_slower: float) -> None:
        self._times_slower, self._elapsed = times_slower, 0.0

    def __exit__(self, *_: object) -> None:
        pass

    def time_turn(self, side: Side, slots: Sequence[int]) -> float:
        self._elapsed = TURN_NS * (self._times_slower if side is Side.PARTNER else 1.0) if slots else 0.0
        return self._elapsed

    def count_time(self) -> float:
        return self._elapsed + PRICE_NS


@dataclass
class ScriptedCase:
    """A case in which the partner is slow in the first processes that it shares with the program."""

    slow_processes: int
    started: list[Sequence[Side]] = field(default_factory=list)
    threads = 1
    stride = 4096
    most_calls = None
    recipes: Sequence[Any] = ()

    def start_process(self, sides: Sequence[Side]) -> ScriptedProcess:
        self.started.append(sides)
        is_slow = len(sides) == 2 and sum(len(each) == 2 for each in self.started) <= self.slow_processes
        return ScriptedProcess(1.25 if is_slow else 1.0)

    def fill_turn(self, process: Any, turn: Turn, prepared: Mapping[int, Any]) -> Mapping[int, Any]:
        return dict.fromkeys(turn.checked)

    def read_outputs(self, process: Any, slot: int) -> list[bytes]:
        return []


PLAN = PairPlan(SCREEN, 4, dict.fromkeys(Side, TURN_NS / 4))


def test_what_deviates_once_is_measured_again_in_new_processes() -> None:
    case = ScriptedCase(slow_processes=1)
    (times,) = measure_pairs(case, PLAN, 1)
    assert set(times.program + times.partner) == {TURN_NS / 4}
    assert [len(sides) for sides in case.started] == [2, 1, 2, 1]


def test_what_deviates_twice_has_no_figure() -> None:
    with pytest.raises(TimingFault, match=r"takes 1\.25 times what it takes alone.*measured twice"):
        list(measure_pairs(ScriptedCase(slow_processes=2), PLAN, 1))


def test_a_sound_screen_is_measured_once_and_has_eight_controls() -> None:
    case = ScriptedCase(slow_processes=0)
    assert len(list(measure_pairs(case, PLAN, 1))) == 1
    assert [len(sides) for sides in case.started] == [2, 1]
    assert SCREEN.controls == 8


@pytest.mark.parametrize(
    ("own", "ours", "words"),
    [
        ((1.0e6, 1.0e6), (1.1e6, 1.1e6), ""),
        ((1.0e6, 1.09e6), (1.1e6, 1.19e6), ""),  # within 10 %
        ((1.0e6, 2.0e6), (1.1e6, 2.1e6), "beside the program"),  # burnt in its turns: every clock says so
        ((1.0e6, 1.2e6), (1.1e6, 1.1e6), "beside the program"),  # its turns are padded
        ((0.8e6, 1.0e6), (1.1e6, 1.1e6), "the program takes 1.25"),
        ((0.1e6, 1.0e6), (0.2e6, 1.1e6), ""),  # ten times as fast
        ((2.0e6, 1.0e6), (2.1e6, 1.1e6), ""),  # half as fast
    ],
)
def test_turns_are_compared_with_those_of_a_process_without_the_program(
    own: tuple[float, float], ours: tuple[float, float], words: str
) -> None:
    problem = check_control(own, ours, [(1.1e6, 1.0e6)] * 8)
    assert problem.startswith(words)
    assert bool(problem) is bool(words)


def test_a_partner_that_is_uneven_alone_may_be_as_uneven_beside_the_program() -> None:
    uneven = [(1.1e6 + 5e4 * number, 1.0e6 + 5e4 * number) for number in range(8)]
    assert check_control((1e6, 1.4e6), (1.1e6, 1.5e6), uneven) == ""
    assert check_control((1e6, 1.6e6), (1.1e6, 1.7e6), uneven)
