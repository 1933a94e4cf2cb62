"""Strata of experiences, from hard to easy. The stratification of Algorithm 1 (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

from opsmith.records import Experience

Rank = Callable[[Experience], tuple[float, ...]]  # what is shown first has the lowest


def rank_by_difficulty(experience: Experience) -> tuple[float, ...]:
    """The hardest first."""
    return (experience.success_rate,)


def rank_by_gain(experience: Experience) -> tuple[float, ...]:
    """What gained most first; where that is not known, or equal, the hardest."""
    return inf if experience.gain is None else -experience.gain, experience.success_rate


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
