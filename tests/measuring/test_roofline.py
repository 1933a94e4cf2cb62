"""Work of problems and its limit: counts agree with those by hand, and what cannot be said has a reason."""

from dataclasses import replace
from importlib.resources import files

import pytest
from problems.examples import SOFTMAX, read_example

from opsmith.devices.peaks import Bandwidth, Peaks
from opsmith.measuring.intervals import Interval
from opsmith.measuring.roofline import NO_PEAKS, ProblemWork, bound_time, measure_share
from opsmith.measuring.work import count_work
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import Problem

PEAKS = Peaks("a device", {"fp32": 100.0, "fp64": 50.0}, (Bandwidth(1 << 14, 400.0, 500.0), Bandwidth(1 << 20, 20, 10)))


def load_problem(name: str) -> Problem:
    return read_problem((files("opsmith.suites.kernels") / f"{name}.yaml").read_text("utf-8")).problem


@pytest.mark.parametrize("shape_set", ["small", "odd"])
@pytest.mark.parametrize(
    ("name", "operations", "bytes_moved"),
    [
        ("gemm_at", "2*M*N*K", "4*(K*M + K*N + M*N)"),
        ("gemm_bias_relu", "2*M*N*K + 2*M*N", "4*(M*K + K*N + N + M*N)"),
        ("batched_gemm", "2*B*M*N*K", "2*B*(M*K + K*N + M*N)"),
        ("int8_gemm", "2*M*N*K + 2*M*N", "M*K + K*N + 4*(M + N + M*N)"),
        ("conv2d", "2*9*C * B*O*H*W", "4*(B*C*4*H*W + 9*O*C + O + B*O*H*W)"),
        ("conv1d", "2*C*R * B*O*L", "4*(B*C*L + O*C*R + O + B*O*L)"),
        ("max_pool2d", "9 * B*C*H*W", "4*5*B*C*H*W"),
        ("softmax", "5*M*N", "8*M*N"),
        ("row_sum", "M*N", "4*M*N + 4*M"),
        ("inclusive_scan", "M*N", "8*M*N"),
        (
            "layer_norm",
            "(1 + 1 + 2)*M*N + 2*M + 3*M*N",
            "8*M*N + 8*N",
        ),  # mean, difference, variance; eps, root; scaling
        ("bias_gelu_residual", "3*M*N", "12*M*N + 4*N"),
        ("rope", "2*3*T*H*D", "2 * 2*T*H*2*D + 2 * 4*T*D"),
        ("gather", "0", "4*V*D + 8*T + 4*T*D"),
        ("scatter_add", "T*D", "8*V*D + 8*T + 4*T*D"),
    ],
)
def test_work_is_that_counted_by_hand(name: str, operations: str, bytes_moved: str, shape_set: str) -> None:
    problem = load_problem(name)
    sizes = dict(problem.bench[shape_set])
    work = count_work(problem, sizes)
    assert (work.operations, work.bytes_moved) == (eval(operations, {**sizes}), eval(bytes_moved, {**sizes}))


def test_work_that_depends_on_data_is_counted_on_data() -> None:
    problem = load_problem("embedding_bag")
    sizes = problem.bench["small"]
    first, second = (count_work(problem, sizes, seed).operations for seed in (0, 1))
    assert first is not None
    assert second is not None
    most = (sizes["T"] + sizes["B"]) * sizes["D"]
    assert most / 2 < min(first, second) <= max(first, second) <= most


def test_every_problem_of_the_suite_is_counted() -> None:
    names = [path.name.removesuffix(".yaml") for path in files("opsmith.suites.kernels").iterdir()]
    problems = [load_problem(name) for name in names if "." not in name and name not in ("plain", "__pycache__")]
    assert len(problems) >= 24
    assert [problem for problem in problems if count_work(problem, problem.bench["small"]).operations is None] == []


def test_an_operator_that_nobody_counted_makes_the_count_unknown() -> None:
    work = count_work(read_example(SOFTMAX, ("torch.softmax(x, -1)", "torch.special.bessel_j0(x)")), {})
    assert work.operations is None
    assert "bessel_j0" in work.reason
    assert work.bytes_moved == 8 * 6 * 40


def test_the_bound_is_the_larger_of_two_times() -> None:
    problem = read_example(SOFTMAX)
    arithmetic, memory = ProblemWork(10**6, 1 << 14), ProblemWork(10, 1 << 20)
    assert bound_time(problem, arithmetic, PEAKS).ns == pytest.approx(10**6 / 100)
    assert bound_time(problem, arithmetic, PEAKS).limited_by == "arithmetic"
    assert bound_time(problem, memory, PEAKS).ns == pytest.approx((1 << 20) / 20)
    assert bound_time(problem, memory, PEAKS).limited_by == "memory"


def test_bandwidth_is_that_of_the_memory_that_holds_the_bytes() -> None:
    assert PEAKS.find_bandwidth(10) == PEAKS.find_bandwidth(1 << 14) == PEAKS.find_bandwidth((1 << 20) - 1) == 500
    assert PEAKS.find_bandwidth(1 << 20) == PEAKS.find_bandwidth(1 << 30) == 20
    dented = Peaks("a device", {}, (Bandwidth(1, 9, 9), Bandwidth(10, 3, 3), Bandwidth(100, 5, 5)))
    assert dented.find_bandwidth(10) == 5, "what a larger memory can, a smaller one can"


@pytest.mark.parametrize(("ns", "share"), [(20_000.0, 0.5), (10_000.0, 1.0), (9_900.0, 1.0101)])
def test_a_share_is_bound_by_time(ns: float, share: float) -> None:
    work = ProblemWork(10**6, 1 << 14)
    result = measure_share(bound_time(read_example(SOFTMAX), work, PEAKS), work, Interval(ns, ns * 0.99, ns * 1.02))
    assert result.share is not None
    assert result.share.value == pytest.approx(share, rel=1e-4)
    assert result.share.low < result.share.value < result.share.high
    assert result.gflops is not None
    assert result.gflops.value == pytest.approx(10**6 / ns)
    assert result.gbytes.value == pytest.approx((1 << 14) / ns)


def test_a_share_above_one_is_no_share() -> None:
    work = ProblemWork(10**6, 1 << 14)
    result = measure_share(bound_time(read_example(SOFTMAX), work, PEAKS), work, Interval(5e3, 4.9e3, 5.1e3))
    assert result.share is None
    assert "2.00 of what the peaks allow" in result.reason
    assert result.gflops is not None


@pytest.mark.parametrize(
    ("name", "work", "peaks", "reason"),
    [
        ("softmax", ProblemWork(1, 1), None, NO_PEAKS),
        ("softmax", ProblemWork(None, 1, "who knows"), PEAKS, "who knows"),
        ("int8_gemm", ProblemWork(1, 1), PEAKS, "no peak is measured for int8 arithmetic"),
        ("softmax", ProblemWork(1, 1), replace(PEAKS, threads=2), "no peaks of 1 threads are measured"),
        (
            "softmax",
            ProblemWork(1, 1),
            Peaks("a device", {"fp64": 1.0}, PEAKS.bandwidths),
            "no peak is measured for fp32",
        ),
    ],
)
def test_what_cannot_be_said_has_a_reason(name: str, work: ProblemWork, peaks: Peaks | None, reason: str) -> None:
    bound = bound_time(load_problem(name), work, peaks)
    assert bound.ns is None
    assert reason in bound.reason
    assert measure_share(bound, work, Interval(1, 1, 1)).reason == bound.reason


def test_work_without_arithmetic_is_bound_by_memory_alone() -> None:
    bound = bound_time(load_problem("gather"), ProblemWork(0, 1 << 20), Peaks("a device", {}, PEAKS.bandwidths))
    assert bound.limited_by == "memory"
    assert measure_share(bound, ProblemWork(0, 1 << 20), Interval(1e6, 1e6, 1e6)).gflops is None


def test_products_of_whole_numbers_have_a_peak_of_their_own_and_threads_have_theirs() -> None:
    work = ProblemWork(10**6, 1000)
    whole = replace(PEAKS, gflops={**PEAKS.gflops, "int8": 400.0})
    peaks = replace(whole, teams=(replace(whole, gflops={"int8": 800.0}, threads=2),))
    problem = load_problem("int8_gemm")
    assert bound_time(problem, work, peaks).ns == 10**6 / 400
    assert bound_time(problem, work, peaks, threads=2).ns == 10**6 / 800
    assert bound_time(problem, work, peaks, threads=3).reason == "no peaks of 3 threads are measured"
