"""What may be said of a measured ratio: one rule, over two clocks.

The precise clock runs in the process of the candidate, which could forge it. The trusted one is read by us from outside
and is coarse. A claim needs both.
"""

from __future__ import annotations

from enum import StrEnum

from opsmith.measuring.intervals import Interval

LEAST_GAIN = 1.03  # what is less than that is the machine's noise


class Claim(StrEnum):
    """What a pair of ratios allows to be said of a program against its partner."""

    FASTER = "faster"  # may be published
    NO_DIFFERENCE = "no difference shown"
    SLOWER = "slower"  # nobody forges that
    IN_PROCESS = "in-process only"  # the trusted clock is too coarse to say the same: in no headline
    REFUSED = "refused"  # the clocks contradict each other: no figure


def judge_ratio(precise: Interval, trusted: Interval) -> Claim:
    """The claim for two measurements of one ratio, partner's time by program's.

    >>> judge_ratio(Interval(3.0, 2.9, 3.1), Interval(1.0, 0.9, 1.1)).value
    'refused'
    """
    if precise.high < 1 / LEAST_GAIN:
        return Claim.SLOWER
    if precise.low <= LEAST_GAIN:
        return Claim.NO_DIFFERENCE
    if not trusted.contains(precise.value):
        return Claim.REFUSED
    return Claim.FASTER if trusted.low > 1 else Claim.IN_PROCESS


def explain_refusal(precise: Interval, trusted: Interval) -> str:
    """Why there is no figure where `judge_ratio` refuses one."""
    return f"the process's own clock says {precise}, the clock outside it {trusted}"
