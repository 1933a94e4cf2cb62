"""Measurements of programs in C: a right one has a figure beside its partner, a wrong one a reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import FIXTURES, MISTAKES, load_c_task
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedReport
from opsmith.targets import get_target
from opsmith.targets.c import C
from opsmith.targets.c.prompt import TEXTS
from opsmith.targets.native.prompt_texts import EXAMPLE, read_prompt_file
from opsmith.targets.native.prompt_texts import PLAIN as PLAIN_EXAMPLE
from opsmith.timing.engine import LEAST_PAIRS, SCREEN

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def room() -> Iterator[TimingRoom]:
    with TimingRoom() as shared:
        yield shared


def make_request(name: str, source: str | None = None) -> SpeedRequest:
    task = load_c_task(f"kernels/{name}", False)
    assert task.impl is not None
    sets = choose_timed_sets(task, ["small"])
    program, partner = TimedProgram(source or task.impl, "program"), TimedProgram(task.impl, PLAIN)
    return SpeedRequest(task, program, partner, sets, MeasuringGrade.SCREEN, describe_device(), None)


def measure_once(pool: Pool, room: TimingRoom, request: SpeedRequest) -> SpeedReport:
    (report,) = measure_program(room, pool.verify, request)
    return report


def read_fixture(name: str) -> str:
    return (FIXTURES / name).read_text("utf-8")


def test_a_program_with_a_fifth_of_the_work_to_do_is_faster(pool: Pool, room: TimingRoom) -> None:
    report = measure_once(pool, room, make_request("gemm_bias_relu", read_fixture("fast/gemm_bias_relu.c")))
    measurement = report.measurement
    assert measurement.reason == ""
    assert measurement.ratio is not None
    assert measurement.ratio.precise.value > 1.5
    assert LEAST_PAIRS <= measurement.pairs <= SCREEN.pairs
    assert report.share is not None
    assert report.share.gflops is not None
    assert "-march=" in measurement.flags


def test_both_clocks_are_asked_for_a_claim(pool: Pool, room: TimingRoom) -> None:
    request = make_request("gemm_bias_relu", read_fixture("fast/gemm_bias_relu.c"))
    measurement = measure_once(pool, room, replace(request, grade=MeasuringGrade.FULL)).measurement
    assert measurement.processes == 5
    if measurement.ratio is None:
        assert "the clock outside it" in measurement.reason
    else:
        assert measurement.ratio.trusted is not None
        assert measurement.ratio.claim is not None


def test_what_was_prepared_for_a_program_serves_the_next_one_of_its_task(pool: Pool, room: TimingRoom) -> None:
    fast = read_fixture("fast/rms_norm.c")
    requests = [make_request("rms_norm", source) for source in (fast, fast + "// again", fast + "// and again")]
    kept = []
    for request in requests:
        assert measure_once(pool, room, request).measurement.ratio is not None
        with room.asking_worker(request.task, "c") as worker:
            (data,) = worker.kept_data.values()
            kept.append((worker.worker.worker.pid, list(data.recipes), list(data.call_ns)))
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0][1]) == SCREEN.prepared


def test_a_wrong_program_has_no_figure(pool: Pool, room: TimingRoom) -> None:
    report = measure_once(pool, room, make_request("softmax", (MISTAKES / "softmax__tail.c").read_text("utf-8")))
    assert report.measurement.time is None
    assert report.measurement.reason.startswith("the program is not right: ")
    assert report.share is None


def test_the_generators_example_is_right_and_really_faster(pool: Pool, room: TimingRoom) -> None:
    problem = get_target("problem").read_task(read_prompt_file(TEXTS, f"{EXAMPLE}.yaml"), EXAMPLE)
    task = C.adapt_task(problem)
    program, partner = (TimedProgram(read_prompt_file(TEXTS, f"{name}.c"), name) for name in (EXAMPLE, PLAIN_EXAMPLE))
    sets = {"base": C.find_problem(task).base_sizes}
    request = SpeedRequest(task, program, partner, sets, MeasuringGrade.SCREEN, describe_device(), None)
    ratio = measure_once(pool, room, request).measurement.ratio
    assert ratio is not None
    assert ratio.precise.low > 2
