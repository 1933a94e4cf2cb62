"""The roofline: the least time that a device's peaks allow a problem's work, and a measured time's share of it.

Of as many threads as the program has. The bound is the larger of two times: for the operations at the peak of their
dtype, and for the bytes at the bandwidth of the memory that holds so many. Inputs of narrow floats are counted at the
peak of the dtype that they are summed in; where an input has 8-bit numbers, all operations at the peak of their
products. Williams, Waterman, Patterson: Roofline (CACM 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from opsmith.devices.peaks import Peaks
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import RooflineShare
from opsmith.problems.problem import Problem

NO_PEAKS = "this device's peaks are not known; try: opsmith devices --measure"
INT8 = "int8"
_SLACK = 1.02  # a time may be below the bound by as much as the peaks themselves are uncertain


@dataclass(frozen=True)
class ProblemWork:
    """What one call of a right program does."""

    operations: int | None  # floating-point ones; None: unknown, as `reason` says
    bytes_moved: int
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.operations is None) != bool(self.reason):
            raise ValueError(f"ProblemWork: given {self.operations} operations, reason {self.reason!r}; expected one")


@dataclass(frozen=True)
class TimeBound:
    """The least time of one call."""

    ns: float | None  # None: it cannot be said, as `reason` says
    limited_by: str = ""  # arithmetic or memory
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.ns is None) != bool(self.reason) or (self.ns is None) == bool(self.limited_by):
            raise ValueError(f"TimeBound: given {self.ns} ns, {self.limited_by!r}, reason {self.reason!r}")


def bound_time(problem: Problem, work: ProblemWork, peaks: Peaks | None, threads: int = 1) -> TimeBound:
    """The least time for this work, by so many threads."""
    if peaks is not None and (peaks := peaks.find_team(threads)) is None:
        return TimeBound(None, reason=f"no peaks of {threads} threads are measured")
    obstacle = _find_obstacle(problem, work, peaks)
    if peaks is None or work.operations is None or obstacle:
        return TimeBound(None, reason=obstacle)
    moving = work.bytes_moved / peaks.find_bandwidth(work.bytes_moved)
    dtype = choose_peak_dtype(problem)
    computing = work.operations / peaks.gflops[dtype] if work.operations and dtype is not None else 0.0
    return TimeBound(max(moving, computing), "arithmetic" if computing > moving else "memory")


def choose_peak_dtype(problem: Problem) -> str | None:
    """The dtype whose peak bounds the operations: int8 where there are such numbers, which is the highest, else the
    widest that a float is summed in; None: no floats."""
    if any(tensor.type.dtype == INT8 for tensor in problem.tensors):
        return INT8
    dtypes = {problem.choose_working_dtype(type_) for type_ in problem.types if type_.is_floating}
    return max(dtypes, key=("fp16", "bf16", "fp32", "fp64").index, default=None)


def _find_obstacle(problem: Problem, work: ProblemWork, peaks: Peaks | None) -> str:
    """Why no bound can be said; "": it can be."""
    if peaks is None:
        return NO_PEAKS
    if work.operations is None:
        return work.reason
    dtype = choose_peak_dtype(problem)
    if work.operations and dtype not in peaks.gflops:
        return f"no peak is measured for {dtype or 'whole'} arithmetic"
    return ""


def measure_share(bound: TimeBound, work: ProblemWork, time: Interval) -> RooflineShare:
    """What a time of one call in ns comes to."""
    rate = time.invert()  # calls per ns: times operations of one call, 10^9 of them per second
    gflops = rate.scale_by(work.operations) if work.operations else None
    gbytes = rate.scale_by(work.bytes_moved)
    if bound.ns is None:
        return RooflineShare(None, gflops, gbytes, bound.reason)
    share = rate.scale_by(bound.ns)
    if share.low > _SLACK:
        return RooflineShare(
            None, gflops, gbytes, f"{share.value:.2f} of what the peaks allow: they were measured too low"
        )
    return RooflineShare(share, gflops, gbytes)
