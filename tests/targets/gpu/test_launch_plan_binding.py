"""A plan and its problem: what names stand for, what sizes make of expressions, and what each mistake is told."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.problems.files.reading import read_problem
from opsmith.records import Diagnostic
from opsmith.targets.gpu.binding import bind_plan, find_missing_kernels, list_arguments
from opsmith.targets.gpu.canonical import write_canonical_plan
from opsmith.targets.gpu.plan import BoundArgument, BoundPlan, LaunchPlan, PlanWords, read_bound_plan
from opsmith.targets.gpu.reading import read_plan
from opsmith.targets.gpu.resolving import DeviceLimits, PlanFault, resolve_plan

PROBLEM = read_problem(
    """
problem: scaled
accumulation: fp32
dims: {M: 5, N: 300}
inputs:
  - {name: x, dtype: fp32, shape: [M, N], data: normal}
  - {name: index, dtype: int64, shape: [M], data: "randint(0, 3)"}
scalars: {eps: 0.5, groups: 4}
outputs:
  - {name: y, dtype: fp16, shape: [M, N]}
  - {name: total, dtype: fp32, shape: [M]}
reference: |
  def scaled(x, index, eps, groups):
      return (x * eps).half(), x.sum(1) + index
"""
).problem
FIRST = "// launch scale grid=(cdiv(N, 256), M) block=(256) args=(x, y, M, N, eps)"
SECOND = "// launch add grid=(M) block=(32) shared=4 * groups args=(x, index, total, M, N)"


def read_lines(*lines: str) -> LaunchPlan:
    plan = read_plan("\n".join(lines))
    assert isinstance(plan, LaunchPlan), plan
    return plan


def bind_lines(*lines: str) -> BoundPlan | tuple[Diagnostic, ...]:
    return bind_plan(read_lines(*lines), PROBLEM)


def bind_well(*lines: str) -> BoundPlan:
    bound = bind_lines(*lines)
    assert isinstance(bound, BoundPlan), bound
    return bound


def test_names_stand_for_what_the_task_shows() -> None:
    bound = bind_well("// workspace tmp: fp32 [M, groups]", FIRST, SECOND.replace("total", "total, tmp"))
    assert (bound.inputs, bound.outputs) == (("fp32", "int64"), ("fp16", "fp32"))
    assert bound.numbers == (("M", "int"), ("N", "int"), ("eps", "float"), ("groups", "int"))
    assert bound.launches[1].arrays == (
        BoundArgument("x", "input", 0, "fp32"),
        BoundArgument("index", "input", 1, "int64"),
        BoundArgument("total", "output", 1, "fp32"),
        BoundArgument("tmp", "workspace", 0, "fp32"),
    )
    assert bound.launches[0].numbers[-1] == BoundArgument("eps", "number", 2, "float")
    assert list(bound.list_kernels()) == ["scale", "add"]


def test_a_bound_plan_travels_as_json() -> None:
    bound = bind_well("// workspace tmp: fp32 [M]", FIRST, SECOND)
    assert read_bound_plan(bound.write_json()) == bound


def test_arguments_are_those_of_the_task() -> None:
    names = [(argument.name, argument.kind) for argument in list_arguments(PROBLEM)]
    kinds = dict.fromkeys(("x", "index"), "input") | dict.fromkeys(("y", "total"), "output")
    assert names == [*kinds.items(), ("M", "number"), ("N", "number"), ("eps", "number"), ("groups", "number")]


def test_sizes_make_numbers_of_expressions() -> None:
    bound = bind_well("// workspace tmp: fp16 [M, N + 1]", FIRST, SECOND)
    resolved = resolve_plan(bound, [3, 513, 0.5, 4])
    assert resolved.workspaces == (2 * 3 * 514,)
    assert [(launch.grid, launch.block, launch.shared) for launch in resolved.launches] == [
        ((3, 3, 1), (256, 1, 1), 0),
        ((3, 1, 1), (32, 1, 1), 16),
    ]


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ((FIRST.replace("(x,", "(z,"), SECOND), 1, "launch scale, args: given z: no such argument; expected one of x, index, y, total, M, N, eps, groups"),
        ((FIRST.replace("(x,", "(X,"), SECOND), 1, "given X: no such argument; expected one of x, index, y, total, M, N, eps, groups; try: write x"),
        ((FIRST, SECOND.replace("total", "totl")), 2, "try: write total"),
        ((FIRST.replace("N, 256", "n, 256"), SECOND), 1, "given n: no such dim, in `cdiv(n, 256)`; expected one of M, N, groups; try: write N"),
        ((FIRST.replace("(N, 256", "(x, 256"), SECOND), 1, "given x in `cdiv(x, 256)`; expected whole numbers: M, N, groups; try: sizes follow from dims alone"),
        ((FIRST.replace("block=(256)", "block=(eps)"), SECOND), 1, "given eps in `eps`; expected whole numbers"),
        ((FIRST, SECOND.replace("groups", "B")), 2, "given B: no such dim, in `4 * B`"),
        ((FIRST,), 1, "output total: given no launch with total in its args; expected every output written by a kernel; try: add total to the args"),
        ((FIRST.replace("(x,", "(x, x,"), SECOND), 1, "given the array x twice; expected each array once"),
        (("// workspace x: fp32 [M]", FIRST, SECOND), 1, "workspace x: given the name of the input x; expected a name of its own; try: call it x_tmp"),
        (("// workspace M: fp32 [N]", FIRST, SECOND), 1, "workspace M: given the name of the number M"),
        (("// workspace t: fp32 [M]", "// workspace t: fp32 [N]", FIRST, SECOND), 2, "given t once more; it is on line 1; expected a name of its own"),
        (("// workspace t: fp32 [P]", FIRST, SECOND), 1, "workspace t: given P: no such dim, in `P`"),
        (("// workspace t: fp32 [t]", FIRST, SECOND), 1, "workspace t: given t in `t`; expected whole numbers"),
    ],
)  # fmt: skip
def test_what_a_plan_names_wrongly_is_a_finding_with_its_line(lines: tuple[str, ...], line: int, words: str) -> None:
    findings = bind_lines(*lines)
    assert isinstance(findings, tuple)
    assert (findings[0].kind, findings[0].line) == ("PARSE", line)
    assert words in str(findings[0])


def test_a_launch_of_no_kernel_is_a_finding() -> None:
    (finding,) = find_missing_kernels(read_lines(FIRST, SECOND), ["scale", "adds"])
    assert (
        str(finding)
        == "PARSE line 2: launch add: given add: no such kernel; expected one of adds, scale; try: write adds"
    )
    (finding, _) = find_missing_kernels(read_lines(FIRST, SECOND), [])
    assert finding.expected == "none: there are none"


@pytest.mark.parametrize(
    ("changed", "numbers", "words"),
    [
        ("grid=(N // 256)", [3, 100], "line 1: launch scale, grid: given grid.x = `N // 256` = 0 at M = 3, N = 100"),
        ("grid=(N - M)", [9, 7], "given grid.x = `N - M` = -2 at M = 9, N = 7"),
        ("grid=(M // (N - 7))", [3, 7], "M // (N - 7), where N - 7 is 0 at M = 3, N = 7, groups = 4; expected a divisor that is not 0; try: max(N - 7, 1)"),
        ("grid=(1, N * 1000)", [3, 100], "given grid.y = `N * 1000` = 100000 at M = 3, N = 100, groups = 4; expected 1 to 65535"),
        ("block=(N)", [3, 1025], "given block.x = `N` = 1025 at M = 3, N = 1025, groups = 4; expected 1 to 1024"),
        ("block=(next_pow2(N), M)", [3, 400], "given a block of 512 x 3 x 1 = 1536 threads at M = 3, N = 400, groups = 4; expected at most 1024"),
        ("block=(32, 1, 65)", [3, 400], "given block.z = 65; expected 1 to 64"),
        ("shared=N * 1024", [3, 400], "given 409600 bytes of shared memory at M = 3, N = 400, groups = 4; expected 0 to 232448; try: work on tiles"),
        ("shared=3 - N", [3, 4], "given -1 bytes of shared memory"),
    ],
)  # fmt: skip
def test_what_cannot_be_launched_at_some_size_is_said_with_the_size(
    changed: str, numbers: list[int], words: str
) -> None:
    keys = {"grid": "grid=(M)", "block": "block=(32)", "shared": ""} | {changed.partition("=")[0]: changed}
    line = f"// launch scale {keys['grid']} {keys['block']} {keys['shared']} args=(x, y, total)"
    with pytest.raises(PlanFault) as caught:
        resolve_plan(bind_well(line), [*numbers, 0.5, 4])
    assert words in str(caught.value)
    assert caught.value.make_finding("PARSE").line == 1


@pytest.mark.parametrize(
    ("shape", "words"),
    [("[M, N - 7]", "`N - 7` = 0"), ("[M, 16384, 16384]", "workspaces of 3221225472 bytes")],
)
def test_workspaces_have_entries_and_a_limit(shape: str, words: str) -> None:
    bound = bind_well(f"// workspace t: fp32 {shape}", FIRST, SECOND)
    with pytest.raises(PlanFault, match=r"^line 1: workspace") as caught:
        resolve_plan(bound, [3, 7, 0.5, 4])
    assert words in str(caught.value)


def test_limits_are_the_devices() -> None:
    bound = bind_well(FIRST, SECOND)
    with pytest.raises(PlanFault, match="at most 128"):
        resolve_plan(bound, [3, 7, 0.5, 4], DeviceLimits(threads=128))


def test_plans_that_differ_in_names_only_have_one_canonical_form() -> None:
    one = read_lines(
        "// workspace a: fp32 [M]",
        "// workspace b: fp16 [M]",
        FIRST.replace("(x", "(x, b"),
        SECOND.replace("(x", "(x, a"),
    )
    other = read_lines(
        "// workspace u: fp16 [M]",
        "// workspace v: fp32 [M]",
        FIRST.replace("scale", "s").replace("(x", "(x, u"),
        SECOND.replace("(x", "(x,v"),
    )
    forms = [write_canonical_plan(one, {"scale": "k0"}), write_canonical_plan(other, {"s": "k0"})]
    assert forms[0] == forms[1]
    swapped = read_lines(
        "// workspace u: fp16 [M]",
        "// workspace v: fp32 [M]",
        FIRST.replace("(x", "(x, v"),
        SECOND.replace("(x", "(x, u"),
    )
    assert write_canonical_plan(swapped, {"scale": "k0"}) != forms[0]


def test_a_process_that_runs_plans_imports_no_torch() -> None:
    code = (
        "import sys, opsmith.targets.gpu.resolving; print([name for name in ('torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


WORDS = st.sampled_from(
    ["M", "N", "groups", "0", "7", "65536", "+", "-", "*", "//", "%", "(", ")", "cdiv(", "next_pow2(", ", "]
)


@given(st.lists(WORDS, max_size=9).map("".join), st.integers(1, 2**20), st.integers(1, 2**20))
def test_whatever_a_plan_says_it_is_resolved_or_refused(text: str, m: int, n: int) -> None:
    plan = read_plan(
        f"// workspace t: int8 [{text}]\n// launch k grid=({text}) block=({text}) shared={text} args=(x, y, total)"
    )
    bound = bind_plan(plan, PROBLEM) if isinstance(plan, LaunchPlan) else plan
    if isinstance(bound, BoundPlan):
        with contextlib.suppress(PlanFault):
            (launch,) = resolve_plan(bound, [m, n, 0.5, 4]).launches
            assert 1 <= math.prod(launch.block) <= 1024
            assert all(entry >= 1 for entry in launch.grid)


# -- numbers that a kernel is compiled for

HASHED = PlanWords(comment="#", keys=("grid", "meta", "args"), needed=("grid", "args"))


def bind_hashed(meta: str, grid: str = "cdiv(N, BLOCK)") -> BoundPlan | tuple[Diagnostic, ...]:
    plan = read_plan(f"# launch scale grid=({grid}, M) meta=({meta}) args=(x, y, index, total, M, N)", HASHED)
    assert isinstance(plan, LaunchPlan), plan
    return bind_plan(plan, PROBLEM)


def test_a_grid_follows_from_numbers_that_the_kernel_is_compiled_for() -> None:
    bound = bind_hashed("BLOCK=next_pow2(N) // 4, num_warps=4")
    assert isinstance(bound, BoundPlan)
    assert read_bound_plan(bound.write_json()) == bound
    (launch,) = resolve_plan(bound, (5, 300, 0.5, 4)).launches
    assert (launch.grid, launch.block, launch.meta) == ((3, 5, 1), (1, 1, 1), (("BLOCK", 128), ("num_warps", 4)))


@pytest.mark.parametrize(
    ("meta", "grid", "where", "given"),
    [
        ("BLOCK=next_pow2(K)", "M", "launch scale, meta", "K: no such dim, in `next_pow2(K)`"),
        ("BLOCK=2, WIDE=BLOCK * 2", "M", "launch scale, meta", "BLOCK: no such dim, in `BLOCK * 2`"),
        ("BLOCK=256", "cdiv(N, WIDTH)", "launch scale", "WIDTH: no such dim, in `cdiv(N, WIDTH)`"),
        ("N=256", "M", "launch scale, meta", "N, the name of an argument"),
    ],
)
def test_a_wrong_name_among_them_is_a_finding(meta: str, grid: str, where: str, given: str) -> None:
    findings = bind_hashed(meta, grid)
    assert isinstance(findings, tuple)
    assert (findings[0].line, findings[0].where, findings[0].given) == (1, where, given)


def test_a_number_without_a_value_at_a_size_is_a_fault_of_the_plan() -> None:
    bound = bind_hashed("BLOCK=N // (M - 5)")
    assert isinstance(bound, BoundPlan)
    with pytest.raises(PlanFault, match=r"line 1: launch scale, meta BLOCK: given N // \(M - 5\), where M - 5 is 0"):
        resolve_plan(bound, (5, 300, 0.5, 4))
