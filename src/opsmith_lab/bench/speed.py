"""How right measurements of speed are: a program beside itself, and beside copies that do a known share more.

Summing rows, all of them 60 times over: the slower copy does it some more times, so that the true ratio is that of
the times. (Where it were once against twice, the second time would find the rows in a nearer cache and cost less: they
are new in each call. With 20 times a ratio of 2 was measured as 1.994 to 2.000.)
Each is measured several times, with other seeds, as `opsmith measure` does it; quiet, and beside processes that keep
processors busy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets, measure_program
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.records import Task, Verdict
from opsmith.suites import load_tasks

TASK, LANGUAGE, SHAPE_SET = "kernels/row_sum", "c", "small"
SLOWDOWNS = (1.0, 1.05, 1.2, 2.0)
PASSES = 60  # over the rows, of the program that is not slowed
NEIGHBOURS = 2  # busy processes
_SUM = """#include <stdint.h>

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{{
    for (int64_t i = 0; i < M * {passes}; i++) {{
        int64_t m = i % M;
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {{
            sum += x[m * N + n];
        }}
        y[m] = sum;
    }}
}}
"""


@dataclass(frozen=True)
class SpeedAccuracy:
    """One slowdown, measured several times."""

    neighbours: int  # busy processes beside it
    true_ratio: float
    times: int
    within: int  # intervals that hold the true ratio
    unsaid: int  # measurements without a figure
    largest_error: float | None  # of the figures, as a share; None: there is none
    largest_width: float | None  # of an interval, as a share of its figure


def measure_accuracy(
    times: int, loads: Sequence[int], open_pool: Callable[[], Pool], tell: Callable[[str], None]
) -> Iterator[SpeedAccuracy]:
    """A row for each load and slowdown. Raises UsageError, VerifierError."""
    (task,) = load_tasks((TASK,), LANGUAGE)
    with open_pool() as pool, TimingRoom() as room:
        for neighbours in loads:
            for slowdown in SLOWDOWNS:
                request = _make_request(task, slowdown)
                measurements = []
                with _busy_neighbours(neighbours):
                    for measurement in _repeat_measuring(room, pool, request, times):
                        measurements.append(measurement)
                        tell(f"{neighbours} busy neighbours, slowed by {slowdown:g}: {len(measurements)} of {times}")
                yield summarise_accuracy(neighbours, slowdown, measurements)


def summarise_accuracy(neighbours: int, true_ratio: float, measurements: Sequence[SpeedMeasurement]) -> SpeedAccuracy:
    """How far measurements of a known ratio lie from it."""
    figures = [measurement.ratio.precise for measurement in measurements if measurement.ratio is not None]
    errors = [abs(figure.value / true_ratio - 1) for figure in figures]
    widths = [(figure.high - figure.low) / figure.value for figure in figures]
    return SpeedAccuracy(
        neighbours,
        round(true_ratio, 4),
        len(measurements),
        sum(figure.contains(true_ratio) for figure in figures),
        len(measurements) - len(figures),
        round(max(errors), 4) if errors else None,
        round(max(widths), 4) if widths else None,
    )


def _make_request(task: Task, slowdown: float) -> SpeedRequest:
    """The loop beside one that makes more passes: above 1, as the one with fewer is the faster one."""
    sources = (_SUM.format(passes=round(PASSES * factor)) for factor in (1, slowdown))
    program, partner = (TimedProgram(source, f"slowed by {slowdown:g}") for source in sources)
    sets = choose_timed_sets(task, [SHAPE_SET])
    return SpeedRequest(task, program, partner, sets, MeasuringGrade.FULL, describe_device(), None)


def _repeat_measuring(room: TimingRoom, pool: Pool, request: SpeedRequest, times: int) -> Iterator[SpeedMeasurement]:
    """The programs are judged once."""
    verdicts: dict[str, Verdict] = {}

    def verify_once(task: Task, source: str) -> Verdict:
        if source not in verdicts:
            verdicts[source] = pool.verify(task, source)
        return verdicts[source]

    for seed in range(times):
        for report in measure_program(room, verify_once, replace(request, seed=seed)):
            yield report.measurement


@contextmanager
def _busy_neighbours(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
