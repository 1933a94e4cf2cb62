"""What the measured times come to beside the peaks of the device: what holds the program back, memory or arithmetic.

Nothing is run: the work is read from the stored figures, and the peaks from their file.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.devices.peaks import Peaks, load_peaks
from opsmith.measuring.record import RooflineShare, SpeedReport, describe_partner
from opsmith.measuring.roofline import choose_peak_dtype
from opsmith.problems.problem import Problem
from opsmith.profiling.profiler import ProfileSubject, make_report
from opsmith.records import TIME, ProfileReport, Task
from opsmith.targets import get_target
from opsmith.targets.native.task import split_native_task
from opsmith.targets.protocols import Configured, Stating, Timed

_HEADING = """\
How fast the program was measured to be, beside what {threads} of {device} can do at most.
"GFLOP/s": 10^9 floating-point operations a second, of those that the reference needs. "GB/s": 10^9 bytes a second, each
input read once and each output written once. "share of the limit": the least time that the peaks allow for this work by
the measured time; 1 is as fast as this device can be, 0.1 is ten times as slow.
"""


class RooflineProfiler:
    """Fits `Profiler`."""

    name = "roofline"
    is_quick = True

    def fits_task(self, task: Task) -> bool:
        target = get_target(task.target)
        return isinstance(target, Timed) and isinstance(target, Stating)

    def explain_lack(self, task: Task) -> str:
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        """One text; nothing for a program without a time."""
        timed = [
            report
            for report in subject.speeds
            if report.share is not None and report.measurement.objective == TIME and report.measurement.time is not None
        ]
        target = get_target(subject.task.target)
        if not timed or not isinstance(target, Stating):
            return
        threads = _read_threads(subject.task)
        first = timed[0].measurement
        device = first.device_name or f"device {first.device[:8]}"
        rows = [_HEADING.format(threads="one thread" if threads == 1 else f"{threads} threads", device=device)]
        peaks, problem = load_peaks(first.device), target.find_problem(subject.task)
        for report in timed:
            rows += _describe_report(report, problem, peaks, threads)
        yield make_report(self.name, "\n".join(rows) + "\n")


def _read_threads(task: Task) -> int:
    """That programs of the task have."""
    is_configured = isinstance(get_target(task.target), Configured)
    return int(split_native_task(task.text)[1].get("threads", 1)) if is_configured else 1


def _describe_report(report: SpeedReport, problem: Problem, peaks: Peaks | None, threads: int) -> Iterator[str]:
    measured, share = report.measurement, report.share
    assert measured.time is not None
    assert share is not None
    sizes = ", ".join(f"{name}={size}" for name, size in measured.sizes.items())
    yield f"at {measured.shape_set} ({sizes}): one call takes {_write_time(measured.time.value)}"
    if measured.ratio is not None:
        yield f"  {measured.ratio.precise.value:.2f} times as fast as {_name_partner(measured.ratio.partner)}"
    moved = share.gbytes.value * measured.time.value
    counted = 0.0 if share.gflops is None else share.gflops.value * measured.time.value
    if share.gflops is not None:
        yield f"  {share.gflops.value:.3g} GFLOP/s: {counted:.4g} operations a call"
    yield f"  {share.gbytes.value:.3g} GB/s: {moved:.4g} bytes a call"
    if share.gflops is not None and moved:
        yield f"  {counted / moved:.3g} operations for each byte that must be moved"
    yield from _describe_bound(share, problem, peaks, threads, (counted, moved))


def _describe_bound(
    share: RooflineShare, problem: Problem, peaks: Peaks | None, threads: int, work: tuple[float, float]
) -> Iterator[str]:
    """What limits it, and how near it is to that."""
    team = peaks.find_team(threads) if peaks is not None else None
    if share.share is None or team is None:
        yield f"  its share of the limit cannot be said: {share.reason or 'the peaks of this device are not known'}"
        return
    operations, moved = work
    dtype = choose_peak_dtype(problem)
    bandwidth = team.find_bandwidth(round(moved))
    moving, computing = moved / bandwidth, operations / team.gflops[dtype] if operations and dtype else 0.0
    yield f"  least time for the bytes: {_write_time(moving)}, at the {bandwidth:.3g} GB/s of memory that holds so many"
    if computing and dtype:
        peak = team.gflops[dtype]
        yield f"  least time for the operations: {_write_time(computing)}, at the {peak:.3g} GFLOP/s of {dtype}"
    kind = "arithmetic-bound" if computing > moving else "memory-bound"
    slower = "operations" if computing > moving else "bytes"
    yield f"  {kind}: the {slower} take longer at best"
    yield f"  share of the limit: {share.share.value:.3g}"


def _name_partner(partner: str) -> str:
    return "the task's own program" if partner == "plain" else describe_partner(partner)


def _write_time(ns: float) -> str:
    """A time with its unit.

    >>> _write_time(12_345.0)
    '12.3 us'
    """
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
