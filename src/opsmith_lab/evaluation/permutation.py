"""Permutation tests: how often would chance do as well, had the labels been dealt out anew?

A test of fewer than FEW arrangements looks at all of them, and its p counts ties whole: exact, and conservative. A
larger one draws DRAWS arrangements and counts half of the ties, the observed one among them: mid-p, which under the
null hypothesis is below 0.05 in 5 % of the cases, also where statistics tie (Lancaster, J. Am. Stat. Assoc. 56, 1961).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW, DRAWS = 500, 999
_CLOSE = 1e-9  # of the largest statistic: what differs by less is a tie, which rounding broke


@dataclass(frozen=True)
class PermutationResult:
    """What a permutation test says."""

    statistic: float
    p: float
    arrangements: int  # that there are
    is_exact: bool  # all of them were looked at; False: mid-p of as many as were drawn

    @property
    def is_least(self) -> bool:
        """Whether no draw was as extreme: that many say no more than `p <=`."""
        return not self.is_exact and self.p <= 0.5 / (DRAWS + 1)

    def __str__(self) -> str:
        return "p " + "= " * (not self.is_least) + self.say_p()

    def say_p(self, adjusted: float | None = None) -> str:
        """`0.250 (exact, 8 arrangements)`, or `<= 5.0e-04` where no draw was as extreme; `adjusted`: by Holm's
        method.

        >>> PermutationResult(1.0, 0.0005, 2**30, False).say_p()
        '<= 5.0e-04'
        """
        value = self.p if adjusted is None else adjusted
        p = f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"
        exact = f" (exact, {self.arrangements} arrangements)" if self.is_exact and adjusted is None else ""
        return "<= " * self.is_least + p + exact


def permute_signs(differences: Sequence[float], rng: np.random.Generator) -> PermutationResult:
    """Are paired differences centred at 0? Two-sided, by turning signs; the statistic is the mean difference.

    >>> print(permute_signs([1.0, 2.0, 0.5], np.random.default_rng(0)))
    p = 0.250 (exact, 8 arrangements)
    """
    values = np.array([value for value in differences if value], dtype=float)
    mean = float(values.sum() / max(1, len(differences)))
    arrangements = 2 ** len(values)
    if arrangements < FEW:
        signs = np.array(list(product((1.0, -1.0), repeat=len(values))))
    else:
        signs = rng.integers(0, 2, (DRAWS, len(values))) * 2.0 - 1
    others = np.abs(signs @ values)
    return _conclude(mean, abs(float(values.sum())), others, arrangements)


def permute_columns(strata: Sequence[Array], rng: np.random.Generator) -> PermutationResult:
    """Do columns belong to their rows? The statistic is the mean of the diagonals; small is evidence that they do.

    strata: square matrices; within each, columns are dealt out to rows anew
    """
    size = sum(map(len, strata))
    arrangements = math.prod(math.factorial(len(matrix)) for matrix in strata)
    if arrangements < FEW:
        others = np.array([sum(parts) for parts in product(*map(_list_sums, strata))])
    else:
        others = np.zeros(DRAWS)
        for matrix in strata:
            columns = rng.permuted(np.tile(np.arange(len(matrix)), (DRAWS, 1)), axis=1)
            others += matrix[np.arange(len(matrix)), columns].sum(axis=1)
    observed = sum(float(np.trace(matrix)) for matrix in strata)
    return _conclude(observed / max(1, size), -observed, -others, arrangements)


def permute_labels(
    strata: Sequence[tuple[Sequence[Hashable], Sequence[Hashable]]], rng: np.random.Generator
) -> PermutationResult:
    """Do values say anything of labels? The statistic is their mutual information in bits, the mean over strata by
    their sizes, less what labels that are dealt out at random come to; large is evidence that they do.

    strata: labels and values, as many; within each, labels are dealt out anew. The p is always a mid-p of drawn ones.

    >>> rng = np.random.default_rng(0)
    >>> print(permute_labels([("aaaaabbbbb", "xxxxxyyyyy")], rng), permute_labels([("aabb", "xxxx")], rng))
    p = 0.005 p = 0.500
    """
    observed, dealt_bits, size = 0.0, np.zeros(DRAWS), 0
    for labels, values in strata:
        label_codes, value_codes = _number_kinds(labels), _number_kinds(values)
        if len(values) == 0:
            continue
        places = int(label_codes.max() + 1) * (width := int(value_codes.max()) + 1)
        dealt = rng.permuted(np.tile(label_codes, (DRAWS, 1)), axis=1)
        codes = np.vstack([label_codes, dealt]) * width + value_codes + places * np.arange(DRAWS + 1)[:, None]
        counts = np.bincount(codes.ravel(), minlength=places * (DRAWS + 1)).reshape(DRAWS + 1, places)
        base = _weigh_counts(np.array([len(values)])) - _weigh_counts(np.bincount(label_codes))
        base -= _weigh_counts(np.bincount(value_codes))
        bits = _weigh_counts(counts) + base
        observed, dealt_bits, size = observed + float(bits[0]), dealt_bits + bits[1:], size + len(values)
    excess = (observed - float(dealt_bits.mean())) / max(1, size)
    return _conclude(excess, observed, dealt_bits, FEW)


def _weigh_counts(counts: NDArray[np.int64]) -> Any:
    """The sum of n log2 n along the last axis."""
    return (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1)


def _number_kinds(kinds: Sequence[Hashable]) -> NDArray[np.int64]:
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return np.array([numbers[kind] for kind in kinds], dtype=np.int64)


def adjust_ps(ps: Sequence[float]) -> list[float]:
    """By Holm's method: the chance that any of several true null hypotheses is refused stays what it is of one.

    >>> adjust_ps([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    order = sorted(range(len(ps)), key=ps.__getitem__)
    largest, adjusted = 0.0, [0.0] * len(ps)
    for rank, place in enumerate(order):
        largest = adjusted[place] = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
    return adjusted


def _list_sums(matrix: Array) -> Iterator[float]:
    rows = np.arange(len(matrix))
    for columns in permutations(range(len(matrix))):
        yield float(matrix[rows, list(columns)].sum())


def _conclude(statistic: float, observed: float, others: Array, arrangements: int) -> PermutationResult:
    """`observed` and `others`: the larger, the stronger the evidence."""
    slack = _CLOSE * max(1e-300, float(np.abs(others).max(initial=abs(observed))))
    above, ties = int((others > observed + slack).sum()), int((np.abs(others - observed) <= slack).sum())
    if arrangements < FEW:
        return PermutationResult(statistic, (above + ties) / len(others), arrangements, True)
    return PermutationResult(statistic, (above + 0.5 * (ties + 1)) / (len(others) + 1), arrangements, False)
