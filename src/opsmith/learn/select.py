"""The demonstrations of the next round. Strategies, by name.

A strategy is a pure function of the experiences, of the rounds that have ended and of the run's seed, so that a run
which was killed goes on exactly as one that was not. Budgets and limits on rounds are the loop's.

`random` and `similar` are baselines to `adaptive`: they make its rounds (a cycle has as many as there are strata, a
solved task starts a new one), so that they differ from it in which demonstrations are shown and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from opsmith.agents.similarity import most_similar_first
from opsmith.errors import UsageError
from opsmith.records import Experience, Task, content_hash

NONE = "none"  # the level of a round without demonstrations
Rank = Callable[[Experience], tuple[float, ...]]  # what is shown first has the lowest


@dataclass(frozen=True)
class Past:
    """A round that has ended."""

    cycle: int
    solved: int  # tasks solved in it; what the run was given before the next one counts as solved


@dataclass(frozen=True)
class Selection:
    """What the next round shows. `demonstrations` come hardest first."""

    cycle: int
    level: str  # none, H, HM, HME ..., or the strategy's name
    demonstrations: tuple[Experience, ...] = ()
    nearest: int | None = None  # a task is shown so many, those most like it first; None: all, in their order

    def shown_to(self, task: Task) -> tuple[Experience, ...]:
        """The demonstrations for one task, the most useful first."""
        if self.nearest is None:
            return tuple(each for each in self.demonstrations if each.may_show(task.id))
        return most_similar_first(task, self.demonstrations)[: self.nearest]

    def shown_to_any(self, tasks: Sequence[Task]) -> tuple[Experience, ...]:
        """What the round shows to any of the tasks, hardest first."""
        every = {experience.task.digest for task in tasks for experience in self.shown_to(task)}
        return tuple(experience for experience in self.demonstrations if experience.task.digest in every)


Strategy = Callable[[Sequence[Experience], Sequence[Past], int, int], Selection | None]  # None: nothing is left to try


def select_adaptive(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0
) -> Selection | None:
    """Algorithm 1: hard examples first, then mixed with easier ones; a solved task starts a new cycle from the hard.

    As printed, the algorithm would never sample while D is empty; its first round has no demonstrations.
    """
    return _select_by_rank(experiences, past, levels, rank_by_difficulty)


def select_gain(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0
) -> Selection | None:
    """As `adaptive`, but what optimisation gained most with comes first; difficulty decides where that is not known."""
    return _select_by_rank(experiences, past, levels, rank_by_gain)


def _select_by_rank(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, rank: Rank
) -> Selection | None:
    if not past and not experiences:
        return Selection(0, NONE)
    cycle, position = _next_place(past)
    strata = stratify_experiences(experiences, levels, rank)
    if position >= len(strata):
        return None  # the demonstrations are used up
    demonstrations = tuple(experience for stratum in strata[: position + 1] for experience in stratum)
    level = "HME"[: position + 1] + "E" * (position - 2)  # H, HM, HME, and one more E for each further level
    return Selection(cycle, level, demonstrations)


def select_all(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Selection | None:
    """All demonstrations at once: `adaptive` with one level."""
    step = select_adaptive(experiences, past, 1)
    return step if step is None or step.level == NONE else replace(step, level="all")


def select_random(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0
) -> Selection | None:
    """As many demonstrations as the hardest stratum holds, drawn from all with equal chances, anew in every round.

    What it controls for: a prompt as short as that of the adaptive strategy's first step, but not chosen by difficulty.
    It tries for as many rounds as the adaptive one does before it gives up, so it spends as many samples and at most
    as many tokens. The draw is a hash of seed, round and task; the drawn ones are shown in the usual order.
    """
    step = select_adaptive(experiences, past, levels)
    if step is None or step.level == NONE:
        return step
    every = hardest_first(experiences)
    size = len(stratify_experiences(experiences, levels)[0])
    ranked = sorted(every, key=lambda experience: content_hash(str(seed), str(len(past)), experience.task.digest))
    drawn = {experience.task.digest for experience in ranked[:size]}
    return Selection(step.cycle, "random", tuple(experience for experience in every if experience.task.digest in drawn))


def select_similar(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0
) -> Selection | None:
    """The demonstrations that are most like the task, most similar first; at each step as many as `adaptive` shows.

    So the last step of a cycle shows all of them. Each task has an order of its own: see `similarity`.
    """
    step = select_adaptive(experiences, past, levels)
    if step is None or step.level == NONE:
        return step
    return Selection(step.cycle, "similar", tuple(hardest_first(experiences)), nearest=len(step.demonstrations))


def select_nothing(
    experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0
) -> Selection | None:
    """The control: the unsolved tasks are sampled again and again without demonstrations, until the budget is spent."""
    return Selection(0, NONE)


STRATEGIES: dict[str, Strategy] = {
    "adaptive": select_adaptive,
    "gain": select_gain,
    "all": select_all,
    "random": select_random,
    "similar": select_similar,
    "none": select_nothing,
}


def get_strategy(name: str) -> Strategy:
    if name not in STRATEGIES:
        raise UsageError(f"selection {name!r}: no such strategy; known: {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def hardest_first(experiences: Sequence[Experience]) -> list[Experience]:
    """All experiences in the order in which a prompt that holds all of them shows them."""
    return [experience for stratum in stratify_experiences(experiences, 1) for experience in stratum]


def _next_place(past: Sequence[Past]) -> tuple[int, int]:
    """The next round's cycle and its place in it."""
    if not past:
        return 1, 0
    last = past[-1].cycle
    if past[-1].solved:
        return last + 1, 0
    return last, sum(ended.cycle == last for ended in past)


# -- strata of experiences, from hard to easy: the stratification of Algorithm 1 (paper, section 3.2)


def rank_by_difficulty(experience: Experience) -> tuple[float, ...]:
    """The hardest first."""
    return (experience.rank,)


def rank_by_gain(experience: Experience) -> tuple[float, ...]:
    """What gained most first; where that is not known, or equal, the hardest."""
    return inf if experience.gain is None else -experience.gain, experience.rank


def stratify_experiences(
    experiences: Sequence[Experience], levels: int, rank: Rank = rank_by_difficulty
) -> list[tuple[Experience, ...]]:
    """The strata, hardest first (by the rank); each in ascending order of success rate, ties by task id.

    The sorted experiences are cut into `levels` bins whose sizes differ by at most one, larger ones first. A bin's
    boundary is its highest rate. Each experience then goes to the first bin whose boundary is not below its rate, so
    that equal rates stay together; bins left empty fall away.
    """
    ordered = sorted(experiences, key=lambda experience: (rank(experience), experience.task.id))
    boundaries = [rank(stratum_bin[-1]) for stratum_bin in _cut_bins(ordered, levels) if stratum_bin]
    strata: list[list[Experience]] = [[] for _ in boundaries]
    for experience in ordered:
        first = next(i for i, boundary in enumerate(boundaries) if rank(experience) <= boundary)
        strata[first].append(experience)
    return [tuple(stratum) for stratum in strata if stratum]


def _cut_bins(ordered: Sequence[Experience], levels: int) -> list[Sequence[Experience]]:
    size, larger = divmod(len(ordered), levels)
    cuts = [i * size + min(i, larger) for i in range(levels + 1)]
    return [ordered[start:end] for start, end in pairwise(cuts)]
