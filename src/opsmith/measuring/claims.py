"""What may be said of a measured ratio: one rule, over two clocks.

The precise clock runs in the process of the candidate, which could forge it. The trusted one is read by us from outside
and is coarse. A claim needs both: intervals that overlap, and both of them above the noise.
"""

from __future__ import annotations

from enum import StrEnum

from opsmith.measuring.intervals import Interval

LEAST_GAIN = 1.03  # what is less than that is the machine's noise
CONTRADICTION = 1.3  # times what one clock says of a turn the other one may say: turns are short
SLACK_NS = 1e5  # and so much more


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


def compare_turns(own: tuple[float, float], ours: tuple[float, float]) -> str:
    """Why a process says nothing: (program's, partner's) nanoseconds of a turn by its own clock make a gain that the
    clock outside denies; "": it may be so.

    Both sides share the process, so that this finds a clock that is forged, and work that is done unseen, if they make
    much of a difference. The full grade, with processes apart, finds the rest. There a clock that is forged by turns
    alone would widen its interval until the trusted one overlaps it.

    >>> compare_turns((3e5, 1e6), (1e6, 1e6))
    "the process's own clock says 3.33, the clock outside it 1.00"
    >>> compare_turns((3e5, 1e6), (3.5e5, 1.05e6))
    ''
    """
    gain = own[1] / own[0]
    is_hidden = ours[0] > CONTRADICTION * own[0] + SLACK_NS
    is_padded = own[1] > CONTRADICTION * ours[1] + SLACK_NS
    if gain <= LEAST_GAIN or not (is_hidden or is_padded):
        return ""
    return f"the process's own clock says {gain:.2f}, the clock outside it {ours[1] / max(1.0, ours[0]):.2f}"
