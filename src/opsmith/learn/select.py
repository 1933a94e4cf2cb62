"""Which demonstrations does the next round show? Strategies, by name.

A strategy is a pure function of the experiences, of the rounds that have ended and of the run's seed, so that a run
which was killed goes on exactly as one that was not. Budgets and limits on rounds are the loop's.

`random` and `similar` are baselines to `adaptive`: they make its rounds (a cycle has as many as there are strata, a
solved task starts a new one), so that they differ from it in which demonstrations are shown and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.learn.similarity import most_similar_first
from opsmith.learn.stratify import stratify
from opsmith.records import Experience, Task, content_hash

NONE = "none"  # the level of a round without demonstrations


@dataclass(frozen=True)
class Past:
    """A round that has ended."""

    cycle: int
    solved: int  # tasks solved in it


@dataclass(frozen=True)
class Step:
    """What the next round shows. `demonstrations` come hardest first."""

    cycle: int
    level: str  # none, H, HM, HME ..., or the strategy's name
    demonstrations: tuple[Experience, ...] = ()
    nearest: int | None = None  # a task is shown so many, those most like it first; None: all, in their order

    def shown_to(self, task: Task) -> tuple[Experience, ...]:
        """The demonstrations for one task, the most useful first."""
        if self.nearest is None:
            return self.demonstrations
        return most_similar_first(task, self.demonstrations)[: self.nearest]

    def shown(self, tasks: Sequence[Task]) -> tuple[Experience, ...]:
        """What the round shows to any of the tasks, hardest first."""
        every = {item.task.digest for task in tasks for item in self.shown_to(task)}
        return tuple(item for item in self.demonstrations if item.task.digest in every)


Strategy = Callable[[Sequence[Experience], Sequence[Past], int, int], Step | None]  # None: nothing is left to try


def adaptive(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Step | None:
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


def everything(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Step | None:
    """All demonstrations at once: `adaptive` with one level."""
    return _named("all", adaptive(experiences, past, 1))


def at_random(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Step | None:
    """As many demonstrations as the hardest stratum holds, drawn from all with equal chances, anew in every round.

    What it controls for: a prompt as short as that of the adaptive strategy's first step, but not chosen by difficulty.
    It tries for as many rounds as the adaptive one does before it gives up, so it spends as many samples and at most
    as many tokens. The draw is a hash of seed, round and task; the drawn ones are shown in the usual order.
    """
    step = adaptive(experiences, past, levels)
    if step is None or step.level == NONE:
        return step
    every = hardest_first(experiences)
    size = len(stratify(experiences, levels)[0])
    ranked = sorted(every, key=lambda item: content_hash(str(seed), str(len(past)), item.task.digest))
    drawn = {item.task.digest for item in ranked[:size]}
    return Step(step.cycle, "random", tuple(item for item in every if item.task.digest in drawn))


def similar(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Step | None:
    """The demonstrations that are most like the task, most similar first; at each step as many as `adaptive` shows.

    So the last step of a cycle shows all of them. Each task has an order of its own: see `similarity`.
    """
    step = adaptive(experiences, past, levels)
    if step is None or step.level == NONE:
        return step
    return Step(step.cycle, "similar", tuple(hardest_first(experiences)), nearest=len(step.demonstrations))


def without(experiences: Sequence[Experience], past: Sequence[Past], levels: int, seed: int = 0) -> Step | None:
    """The control: the unsolved tasks are sampled again and again without demonstrations, until the budget is spent."""
    return Step(0, NONE)


STRATEGIES: dict[str, Strategy] = {
    "adaptive": adaptive,
    "all": everything,
    "random": at_random,
    "similar": similar,
    "none": without,
}


def get_strategy(name: str) -> Strategy:
    if name not in STRATEGIES:
        raise UsageError(f"selection {name!r}: no such strategy; known: {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def hardest_first(experiences: Sequence[Experience]) -> list[Experience]:
    """All experiences in the order in which a prompt that holds all of them shows them."""
    return [item for stratum in stratify(experiences, 1) for item in stratum]


def _named(level: str, step: Step | None) -> Step | None:
    return step if step is None or step.level == NONE else Step(step.cycle, level, step.demonstrations)


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
