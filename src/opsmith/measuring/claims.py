"""What may be said of a measured ratio: one rule, over two clocks.

The precise clock runs in the process of the candidate, which could forge it. The trusted one is read by us from outside
and is coarse. A claim needs both: intervals that overlap, and both of them above the noise.
"""

from __future__ import annotations

from enum import StrEnum

from opsmith.measuring.intervals import Interval
from opsmith.timing import engine

LEAST_GAIN = engine.LEAST_GAIN


class Claim(StrEnum):
    """What a pair of ratios allows to be said of a program against its partner."""

    FASTER = "faster"  # may be published
    NO_DIFFERENCE = "no difference shown"
    SLOWER = "slower"  # nobody forges that: the trusted clock need not say the same
    IN_PROCESS = "in-process only"  # the trusted clock is too coarse to say the same: in no headline
    REFUSED = "refused"  # the clocks contradict each other: no figure


def judge_ratio(precise: Interval, trusted: Interval) -> Claim:
    """The claim for two measurements of one ratio, partner's time by program's.

    >>> judge_ratio(Interval(3.0, 2.9, 3.1), Interval(1.0, 0.9, 1.1)).value
    'refused'
    """
    is_apart = precise.low > trusted.high or trusted.low > precise.high
    return Claim.REFUSED if is_apart else judge_bounds(precise, trusted)


def judge_bounds(precise: Interval, trusted: Interval) -> Claim:
    """The claim for a ratio whose clocks agree, or for a mean of such: their means may lie apart by what each
    measurement of the coarse clock errs by in one direction."""
    if precise.high < 1 / LEAST_GAIN:
        return Claim.SLOWER
    if precise.low <= LEAST_GAIN:
        return Claim.NO_DIFFERENCE
    return Claim.FASTER if trusted.low > LEAST_GAIN else Claim.IN_PROCESS


def explain_refusal(precise: Interval, trusted: Interval) -> str:
    """Why there is no figure where `judge_ratio` refuses one."""
    return f"the process's own clock says {precise}, the clock outside it {trusted}"
