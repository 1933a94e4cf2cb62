"""Samples that have no verdict: why, in words, and how many of them stand beside a pass@1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from opsmith.results.counting import choose_best, deciding_tallies
from opsmith.results.refusals import name_failure
from opsmith.store.attempts import UnjudgedSample
from opsmith.store.queries import Tally

REASONS = 5  # that are shown, the most frequent ones
BEING_JUDGED = "being judged"


def count_reasons(samples: Iterable[UnjudgedSample]) -> tuple[tuple[str, int], ...]:
    """Why samples have no verdict and how many of them, the most frequent reason first; lines of programs are left out.

    >>> count_reasons([UnjudgedSample(0, "a", 1.0, "not emulated: line 2: <mma.h>"), UnjudgedSample(0, "a", 1.0, "")])
    (('being judged', 1), ('not emulated: <mma.h>', 1))
    """
    counts = Counter(name_failure(sample.message) if sample.message else BEING_JUDGED for sample in samples)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    rest = sum(count for _, count in ordered[REASONS:])
    return (*ordered[:REASONS], *((("other reasons", rest),) if rest else ()))


def count_beside(samples: Sequence[UnjudgedSample], tallies: Iterable[Tally]) -> Mapping[str, int]:
    """By task, the samples without a verdict of the round and the temperature that its pass@1 counts."""
    counts = Counter((sample.round, sample.task, sample.temperature) for sample in samples)
    best = map(choose_best, deciding_tallies(tallies).values())
    return {tally.task: counts[tally.round, tally.task, tally.temperature] for tally in best if tally is not None}
