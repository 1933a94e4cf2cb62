"""Strata of experiences, from hard to easy. The stratification of Algorithm 1 (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from opsmith.records import Experience


def stratify_experiences(experiences: Sequence[Experience], levels: int) -> list[tuple[Experience, ...]]:
    """The strata, hardest first; each in ascending order of success rate, ties by task id.

    The sorted experiences are cut into `levels` bins whose sizes differ by at most one, larger ones first. A bin's
    boundary is its highest rate. Each experience then goes to the first bin whose boundary is not below its rate, so
    that equal rates stay together; bins left empty fall away.
    """
    ordered = sorted(experiences, key=lambda experience: (experience.success_rate, experience.task.id))
    boundaries = [stratum_bin[-1].success_rate for stratum_bin in _cut_bins(ordered, levels) if stratum_bin]
    strata: list[list[Experience]] = [[] for _ in boundaries]
    for experience in ordered:
        first = next(i for i, boundary in enumerate(boundaries) if experience.success_rate <= boundary)
        strata[first].append(experience)
    return [tuple(stratum) for stratum in strata if stratum]


def _cut_bins(ordered: Sequence[Experience], levels: int) -> list[Sequence[Experience]]:
    size, larger = divmod(len(ordered), levels)
    cuts = [i * size + min(i, larger) for i in range(levels + 1)]
    return [ordered[start:end] for start, end in pairwise(cuts)]
