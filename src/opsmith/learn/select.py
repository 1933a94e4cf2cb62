"""Which demonstrations does the next round show? Strategies, by name.

A strategy is a pure function of the experiences and of the rounds that have ended, so that a run which was killed goes
on exactly as one that was not. Budgets and limits on rounds are the loop's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.learn.stratify import stratify
from opsmith.records import Experience

NONE = "none"  # the level of a round without demonstrations


@dataclass(frozen=True)
class Past:
    """A round that has ended."""

    cycle: int
    solved: int  # tasks solved in it


@dataclass(frozen=True)
class Step:
    """What the next round shows, hardest first."""

    cycle: int
    level: str  # none, H, HM, HME ...
    demonstrations: tuple[Experience, ...] = ()


Strategy = Callable[[Sequence[Experience], Sequence[Past], int], Step | None]  # None: nothing is left to try


def adaptive(experiences: Sequence[Experience], past: Sequence[Past], levels: int) -> Step | None:
    """Algorithm 1: hard examples first, then mixed with easier ones; a solved task starts a new cycle from the hard.

    As printed, the algorithm would never sample while D is empty; its first iteration has no demonstrations.
    """
    if not past and not experiences:
        return Step(0, NONE)
    cycle, position = _place(past)
    strata = stratify(experiences, levels)
    if position >= len(strata):
        return None  # the demonstrations are used up
    shown = tuple(item for stratum in strata[: position + 1] for item in stratum)
    return Step(cycle, _label(position), shown)


def without(experiences: Sequence[Experience], past: Sequence[Past], levels: int) -> Step | None:
    """The control: the unsolved tasks are sampled again and again without demonstrations, until the budget is spent."""
    return Step(0, NONE)


STRATEGIES: dict[str, Strategy] = {"adaptive": adaptive, "none": without}


def get_strategy(name: str) -> Strategy:
    if name not in STRATEGIES:
        raise UsageError(f"selection {name!r}: no such strategy; known: {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def hardest_first(experiences: Sequence[Experience]) -> list[Experience]:
    """All experiences in the order in which a prompt that holds all of them shows them."""
    return [item for stratum in stratify(experiences, 1) for item in stratum]


def _place(past: Sequence[Past]) -> tuple[int, int]:
    """The next round's cycle and its place in it."""
    if not past:
        return 1, 0
    last = past[-1].cycle
    if past[-1].solved:
        return last + 1, 0
    return last, sum(item.cycle == last for item in past)


def _label(position: int) -> str:
    """H, HM, HME, and one more E for each further level."""
    return "HME"[: position + 1] + "E" * (position - 2)
