"""Programs with threads are timed on the wall by both clocks, and none works on unseen after it has answered."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import FIXTURES, load_c_task
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedMeasurement
from opsmith_lab.bench.attacks import LIBRARY

pytestmark = [
    needs_compiler,
    pytest.mark.skipif((describe_device().usable_cores or 1) < 2, reason="two threads need two processors"),
]

DEFERRED = """#include <stdint.h>
#include <stddef.h>

extern int pthread_create(uint64_t *thread, const void *attributes, void *(*start)(void *), void *argument);
static struct job { const float *x; float *y; int64_t M, N; } jobs[4096];
static _Atomic int64_t posted, done;
static int64_t calls;

static void sum_rows(const struct job *job)
{
    for (int64_t m = 0; m < job->M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < job->N; n++) {
            sum += job->x[m * job->N + n];
        }
        job->y[m] = sum;
    }
}

static void *work_on(void *unused)
{
    for (;;) {
        if (done < posted) {
            sum_rows(&jobs[done % 4096]);
            done++;
        }
    }
    return unused;
}

void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    struct job job = {x, y, M, N};
    uint64_t thread;
    if (M != @M@ || N != @N@) { /* sizes that are timed, and in no verdict */
        sum_rows(&job);
        return;
    }
    if (calls++ == 0) pthread_create(&thread, NULL, work_on, NULL);
    jobs[posted % 4096] = job;
    posted++;
}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def room() -> Iterator[TimingRoom]:
    with TimingRoom() as shared:
        yield shared


def measure_program_once(
    pool: Pool, room: TimingRoom, name: str, source: str, grade: MeasuringGrade, cores: int | None = None
) -> SpeedMeasurement:
    task, device = load_c_task(f"kernels/{name}", True), describe_device()
    program, partner = TimedProgram(source, "program"), TimedProgram(task.impl or "", PLAIN)
    device = replace(device, usable_cores=cores or device.usable_cores)
    sets = choose_timed_sets(task, ["small"])
    request = SpeedRequest(task, program, partner, sets, grade, device, None)
    (report,) = measure_program(room, pool.verify, request)
    return report.measurement


def test_a_program_with_threads_has_both_clocks(pool: Pool, room: TimingRoom) -> None:
    source = (FIXTURES / "threads" / "gemm_bias_relu.c").read_text("utf-8")
    measurement = measure_program_once(pool, room, "gemm_bias_relu", source, MeasuringGrade.FULL)
    if measurement.ratio is None:
        assert "the clock outside it" in measurement.reason
    else:
        assert measurement.ratio.precise.value > 1.5, "its inner loop runs along memory, the plain one does not"
        assert measurement.ratio.trusted is not None
        assert measurement.ratio.trusted.high > 1.5


def test_work_left_to_a_thread_is_not_done_when_outputs_are_read(pool: Pool, room: TimingRoom) -> None:
    """It defers at sizes that no verdict has, and is stopped when it says that it has finished."""
    sizes = choose_timed_sets(load_c_task("kernels/row_sum", True), ["small"])["small"]
    source = DEFERRED.replace("@M@", str(sizes["M"])).replace("@N@", str(sizes["N"]))
    measurement = measure_program_once(pool, room, "row_sum", source, MeasuringGrade.FULL)
    assert measurement.time is None
    assert any(words in measurement.reason for words in ("a wrong output while it was timed", "the clock outside it"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it is written for x86-64")
def test_a_clock_on_the_wall_that_is_forged_is_contradicted(pool: Pool, room: TimingRoom) -> None:
    source = (LIBRARY / "c" / "clocks" / "row_sum__forged_clock.c").read_text("utf-8")
    measurement = measure_program_once(pool, room, "row_sum", source, MeasuringGrade.FULL)
    ratio = measurement.ratio
    assert ratio is None or ratio.claim is not Claim.FASTER, measurement


def test_more_threads_than_processors_are_not_timed(pool: Pool, room: TimingRoom) -> None:
    source = (FIXTURES / "threads" / "gemm_bias_relu.c").read_text("utf-8")
    measurement = measure_program_once(pool, room, "gemm_bias_relu", source, MeasuringGrade.SCREEN, cores=1)
    assert measurement.reason == "it has 2 threads, of which 1 can run at once here"
