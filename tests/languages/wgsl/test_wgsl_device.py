"""WGSL on the software driver: what naga and the checked form find, and what a candidate's process can do meanwhile."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from languages.gpu_programs import needs_wgsl
from opsmith.judging.pool import Pool
from opsmith.problems.files.reading import read_problem
from opsmith.records import Boundary, Outcome, Stage, Task, Verdict
from opsmith.running.sandbox import Sandbox, confine_candidate
from opsmith.suites import load_tasks
from opsmith.targets.native.prompt_texts import read_prompt_file
from opsmith.targets.wgsl import webgpu
from opsmith.targets.wgsl.target import WGSL

pytestmark = needs_wgsl

PROGRAM = """// launch row_sum grid=(M) block=(64) args=(x, y, M, N)
struct Sizes { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> size: Sizes;
var<workgroup> partial: array<f32, 64>;
HEAD
@compute @workgroup_size(64)
fn row_sum(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    BODY
    var sum = 0.0;
    for (var n = lane; n < size.N; n += 64u) {
        sum += x[group.x * size.N + n];
    }
    partial[lane] = sum;
    for (var width = 32u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if (lane < width) {
            partial[lane] += partial[lane + width];
        }
    }
    if (lane == 0u) {
        y[group.x] = partial[0];
    }
}
"""


def write_program(body: str = "", head: str = "") -> str:
    return PROGRAM.replace("BODY", body).replace("HEAD", head)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=10.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def task() -> Task:
    (task,) = load_tasks(["kernels/row_sum"], "wgsl")
    return task


def refuse(pool: Pool, task: Task, source: str, stage: str) -> Verdict:
    verdict = pool.verify(task, source)
    assert (verdict.outcome, verdict.charged_to, verdict.stage) == (
        Outcome.REFUSED,
        Boundary.CANDIDATE,
        Stage(stage),
    ), verdict.message
    return verdict


# -- right programs


@pytest.mark.parametrize("name", ["log_sum_exp.wgsl", "log_sum_exp_plain.wgsl"])
def test_the_programs_of_the_prompt_are_right(pool: Pool, name: str) -> None:
    text = read_prompt_file(WGSL.prompt_texts, "log_sum_exp.yaml")
    assert read_problem(text).name == "log_sum_exp"
    verdict = pool.verify(WGSL.read_task(text, "log_sum_exp"), read_prompt_file(WGSL.prompt_texts, name))
    assert verdict.passed, verdict.message
    assert verdict.build.startswith("wgpu 0.32")


def test_workgroup_memory_begins_as_zeros_as_the_language_promises(pool: Pool, task: Task) -> None:
    head = "var<workgroup> zeros: array<vec4<f32>, 9>; var<workgroup> zero: u32; var<workgroup> none: atomic<i32>;"
    body = "if (zeros[lane % 9u].y != 0.0 || zero != 0u || atomicLoad(&none) != 0) { return; }\n"
    body += "workgroupBarrier(); if (lane == 0u) { zeros[3].y = 1.0; zero = 7u; atomicStore(&none, 5); }"
    text = write_program(body, head)
    verdict = pool.verify(task, text)
    assert verdict.stage == Stage("COMPILE"), verdict.message  # what is read decides who comes to the barrier
    text = text.replace("{ return; }", "{ sum_of_all = 1.0; }").replace(
        "    var sum = 0.0;", "    var sum = sum_of_all;"
    )
    verdict = pool.verify(task, text.replace("if (zeros", "var sum_of_all = 0.0; if (zeros", 1))
    assert verdict.passed, verdict.message


# -- naga


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("let q = absent;", "absent"),
        ("let q: u32 = 1.0;", "expected u32; try: convert it"),
        ("y[0] = lane;", "expected a value of the type on the left"),
        ("y[0] = 1.0 +;", "expected"),
        ("let q = f16(1.0);", "expected `enable f16;`"),
        ("x[0] = 1.0;", "inputs are var<storage, read>"),
        ("let q = lane + 1.0;", "convert one of them"),
        ("let q = vec2<f32>(1.0).z;", "invalid field accessor"),
        ("if (lane + 1u) { }", "expected a bool"),
        ("let q = 1u << 40u;", "RHS of shift"),
    ],
)
def test_what_naga_refuses_is_a_finding_with_its_line(pool: Pool, task: Task, body: str, words: str) -> None:
    verdict = refuse(pool, task, write_program(body), "COMPILE")
    assert verdict.errors[0].line == 10
    assert words in str(verdict.errors[0]), verdict.message


# -- what the checked form finds


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("n < size.N", "n < size.N + 1u", 13, "of x, by invocation"),
        ("        workgroupBarrier();\n", "", 18, "a race on partial"),
        ("partial[lane + width]", "partial[lane + 2u * width]", 19, "index 64 of partial"),
        ("    if (lane == 0u) {", "    {", 23, "a race on"),
        ("y[group.x] = partial[0]", "y[0] = partial[0]", 23, "entries that one workgroup alone uses"),
        ("lane; n <", "0u; n <", None, ""),
    ],
)
def test_what_a_kernel_does_and_may_not_is_found_with_its_line(
    pool: Pool, task: Task, before: str, after: str, line: int | None, words: str
) -> None:
    source = write_program().replace(before, after, 1)
    verdict = refuse(pool, task, source, "RUN" if words else "MATCH")
    assert words in verdict.message
    assert line is None or verdict.errors[0].line == line, verdict.message


def test_invocations_of_one_group_of_lanes_race_too(pool: Pool, task: Task) -> None:
    verdict = refuse(pool, task, write_program("partial[0] = f32(lane); workgroupBarrier();"), "RUN")
    assert "a race on partial[0]" in verdict.message


def test_atomics_do_not_race(pool: Pool, task: Task) -> None:
    head = "var<workgroup> count: atomic<u32>; var<workgroup> counts: array<atomic<u32>, 4>;"
    body = "atomicAdd(&count, 1u); atomicAdd(&counts[lane % 4u], 1u); workgroupBarrier();"
    assert pool.verify(task, write_program(body, head)).passed


# -- hostile programs


@pytest.mark.parametrize(
    ("head", "body", "stage", "words"),
    [
        ("", "let q = " + "-" * 1500 + "1.0;", "COMPILE", ""),
        ("", "let q = " + "(" * 90 + "1.0" + ")" * 90 + ";", "PARSE", "brackets within brackets"),
        ("var<private> big: array<f32, 400000000>;", "big[lane] = 1.0;", "COMPILE", "Size exceeds limit"),
        ("", "var big: array<vec4<f32>, 1000000>; big[lane] = vec4<f32>(1.0);", "COMPILE", ""),
        ("var<workgroup> big: array<f32, 4294967295>;", "big[lane] = 1.0;", "PARSE", "expected: at most 16384"),
        ("struct A { b: B } struct B { a: A }", "var q: A;", "COMPILE", "cyclic"),
        ("const A = B; const B = A;", "let q = A;", "COMPILE", "cyclic"),
        ("override A: u32 = 1u / (1u - 1u);", "let q = A;", "COMPILE", "Division by zero"),
        ("const_assert false;", "", "COMPILE", "const_assert"),
        ("// " + "x" * 1_000_000, "", "PARSE", "bytes"),
        ("", "loop { }", "RUN", "60000 rounds of loops"),
        ("", "var i = 1u; while (i != 0u) { i = i | 1u; }", "RUN", "60000 rounds of loops"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_hostile_program_is_refused(pool: Pool, task: Task, head: str, body: str, stage: str, words: str) -> None:
    assert words in refuse(pool, task, write_program(body, head), stage).message


def test_a_program_without_end_is_ended(task: Task) -> None:
    with Pool(1, trial_deadline=2.0) as pool:
        source = write_program().replace("grid=(M)", "grid=(65535, 65535, 65535)").replace("group.x", "(group.x % 2u)")
        assert "no outputs within 2 s" in refuse(pool, task, source, "RUN").message
        assert pool.verify(task, write_program()).passed


# -- confinement

_SOURCE = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
_SOURCE += "@compute @workgroup_size(4)\nfn main(@builtin(local_invocation_index) i: u32) { y[i] = i + 7u; }\n"


def test_a_device_runs_in_a_process_that_can_do_nothing_else(tmp_path: Path) -> None:
    """The strictest filter, with threads: the driver needs neither files in memory nor sockets."""
    webgpu.preload_driver()
    ours, theirs = os.pipe()
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    pid = os.fork()
    if pid == 0:
        try:
            lines = _try_everything(secret)
        except BaseException as error:
            lines = [f"{type(error).__name__}: {error}"]
        os.write(theirs, "\n".join(lines).encode())
        os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    with open(ours) as answers:
        assert answers.read().splitlines() == ["[7, 8, 9, 10]", *["PermissionError"] * 6]


def _try_everything(secret: Path) -> list[str]:
    from opsmith.targets.wgsl.device import Dispatch, open_device

    parent = os.getppid()
    confine_candidate(Sandbox(), list(webgpu.list_runtime()), threads=4)
    device = open_device()
    pipeline = device.make_pipeline(device.compile_source(_SOURCE), "main")
    buffer = device.make_buffer(16, webgpu.STORAGE | webgpu.COPY_SRC)
    group = device.bind_buffers(pipeline, 0, [(0, buffer, 0, 16)])
    device.run_dispatches([Dispatch(pipeline, [group], (1, 1, 1))])
    lines = [str(memoryview(device.read_buffer(buffer, 16)).cast("I").tolist())]
    attempts = (
        secret.read_text,
        lambda: (secret.parent / "new").write_text(""),
        socket.socket,
        os.fork,
        lambda: os.kill(parent, signal.SIGUSR1),
        lambda: os.memfd_create("x"),
    )
    for attempt in attempts:
        try:
            attempt()
            lines.append("allowed")
        except OSError as error:
            lines.append(type(error).__name__)
    return lines


def test_nurseries_start_no_thread_for_the_driver() -> None:
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    WGSL.preload_runtime()
    time.sleep(0.05)
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before


SPLIT = {
    "load_and_store": "let t = bitcast<f32>(atomicLoad(&total)); atomicStore(&total, bitcast<u32>(t + sum));",
    "exchange_and_store": "let t = bitcast<f32>(atomicExchange(&total, 0u)); atomicStore(&total, bitcast<u32>(t + sum));",
    "one_swap": """let t = atomicLoad(&total);
            let swapped = atomicCompareExchangeWeak(&total, t, bitcast<u32>(bitcast<f32>(t) + sum));""",
}
WHOLE = """var t = atomicLoad(&total);
            loop {
                let swapped = atomicCompareExchangeWeak(&total, t, bitcast<u32>(bitcast<f32>(t) + sum));
                if (swapped.exchanged) { break; }
                t = swapped.old_value;
            }"""


def write_atomic_sum(update: str) -> str:
    """One invocation after the other, so that this driver itself loses nothing."""
    head, _end = PROGRAM.replace("HEAD", "").replace("BODY", "").split("    partial[lane] = sum;")
    body = f"""    for (var turn = 0u; turn < 64u; turn++) {{
        if (turn == lane) {{
            {update}
        }}
    }}
    workgroupBarrier();
    if (lane == 0u) {{ y[group.x] = bitcast<f32>(atomicLoad(&total)); }}
}}
"""
    return head.replace("partial: array<f32, 64>", "total: atomic<u32>") + body


@pytest.mark.parametrize("update", SPLIT)
def test_an_update_that_some_order_of_atomics_loses_is_refused(pool: Pool, task: Task, update: str) -> None:
    refuse(pool, task, write_atomic_sum(SPLIT[update]), "MATCH")


def test_swaps_until_one_is_made_lose_nothing(pool: Pool, task: Task) -> None:
    assert pool.verify(task, write_atomic_sum(WHOLE)).outcome is Outcome.PASSED
