"""Profilers explain every figure, and say nothing that was not measured or counted."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.devices.peaks import Bandwidth, Peaks, save_peaks
from opsmith.errors import UsageError
from opsmith.executors.local_profiler import LocalProfiler
from opsmith.judging.pool import Pool
from opsmith.measuring.intervals import Interval
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, RooflineShare, SpeedMeasurement, SpeedReport
from opsmith.profiling.choice import choose_profilers
from opsmith.profiling.cost import CostProfiler
from opsmith.profiling.profiler import ProfileSubject
from opsmith.profiling.roofline import RooflineProfiler
from opsmith.records import TIME, Task
from opsmith.running.toolchain import NO_COMPILER
from opsmith.suites import load_tasks

[STEP] = load_tasks(("attn_0",))


def _load_kernel(name: str = "kernels/row_sum") -> Task:
    pytest.importorskip("tree_sitter_c", reason="the language C: its parser is not installed")
    [task] = load_tasks((name,), "c")
    return task


def _point(value: float) -> Interval:
    return Interval(value, value, value)


def _report(task: Task, ns: float, share: float | None) -> SpeedReport:
    """A call that adds 10^6 numbers of 4 bytes."""
    measured = SpeedMeasurement(
        program="p", problem="q", shape_set="large", sizes={"M": 1000, "N": 1000}, device="d" * 64, protocol="x",
        flags="-O3", grade=MeasuringGrade.SCREEN, objective=TIME, time=_point(ns), device_name="Some CPU",
    )  # fmt: skip
    reason = "" if share is not None else "too noisy"
    rates = RooflineShare(None if share is None else _point(share), _point(1e6 / ns), _point(4e6 / ns), reason)
    return SpeedReport(measured, rates)


def _write_roofline(task: Task, *reports: SpeedReport) -> str:
    [report] = RooflineProfiler().profile_program(ProfileSubject(task, "", reports))
    return report.body


def test_the_roofline_says_which_limit_is_nearer_and_how_near(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = _load_kernel()
    peaks = Peaks("d" * 64, {"fp32": 100.0}, (Bandwidth(1 << 20, 10.0, 8.0),))
    save_peaks(peaks)
    text = _write_roofline(task, _report(task, 1e6, 0.4))
    assert "at large (M=1000, N=1000): one call takes 1 ms" in text
    assert "least time for the bytes: 400 us" in text
    assert "least time for the operations: 10 us" in text
    assert "memory-bound" in text
    assert "share of the limit: 0.4\n" in text
    save_peaks(replace(peaks, gflops={"fp32": 1.0}))
    assert "arithmetic-bound" in _write_roofline(task, _report(task, 1e6, 0.4))


def test_a_share_that_cannot_be_said_has_a_reason_and_no_time_has_no_roofline() -> None:
    task = _load_kernel()
    assert "its share of the limit cannot be said: too noisy" in _write_roofline(task, _report(task, 1e6, None))
    assert list(RooflineProfiler().profile_program(ProfileSubject(task, ""))) == []


class _ScriptedDevice:
    """Measures what a test says."""

    def __init__(self, report: SpeedReport) -> None:
        self.report = report
        self.orders: list[SpeedOrder] = []

    def explain_lack(self, task: Task) -> str:
        return ""

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        self.orders.append(order)
        yield self.report


def test_a_program_that_nobody_has_timed_is_timed_for_its_roofline() -> None:
    task = _load_kernel()
    device = _ScriptedDevice(_report(task, 1e6, None))
    source = LocalProfiler(lambda task, source: {}, ("roofline",), None, device)
    warnings: list[str] = []
    [report] = asyncio.run(source.make_profiles(ProfileSubject(task, "text"), warnings.append))
    assert "one call takes 1 ms" in report.body
    assert [(order.source, order.shape_sets) for order in device.orders] == [("text", ("large",))]
    timed = ProfileSubject(task, "text", (_report(task, 2e6, None),))
    [report] = asyncio.run(source.make_profiles(timed, warnings.append))
    assert "one call takes 2 ms" in report.body
    assert len(device.orders) == 1
    assert warnings == []


def test_the_cost_profile_names_the_busiest_node_and_the_critical_path() -> None:
    with Pool(1) as pool:
        [report] = CostProfiler(pool.cost).profile_program(ProfileSubject(STEP, STEP.impl or ""))
        figures = pool.cost(STEP, STEP.impl or "")
    assert f"cycles: {figures['cycles']} (" in report.body
    busiest = max(figures["nodes"], key=lambda node: node["busy"] or 0)
    assert f"{busiest['name']}: {busiest['busy']}\n" in report.body
    path = sum(node["latency"] for node in figures["critical_path"])
    assert path == figures["cycles"] - max(busiest["busy"], -(-figures["off_chip_bytes"] // 1024))
    assert f"Critical path: {path} cycles" in report.body


@pytest.mark.skipif(shutil.which("gcc") is None, reason=NO_COMPILER)
def test_remarks_name_the_line_of_each_loop() -> None:
    task = _load_kernel()
    (profiler,), _ = choose_profilers(task, ("remarks",), lambda task, source: {})
    [report] = profiler.profile_program(ProfileSubject(task, task.impl or ""))
    lines = (task.impl or "").splitlines()
    inner = next(number for number, line in enumerate(lines, 1) if line.startswith("        for"))
    assert f"line {inner}, innermost, depth 2: {lines[inner - 1].strip()}\n  vectorised" in report.body
    assert "in-order reduction\n" in report.body


@pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed: Debian's package llvm")
@pytest.mark.skipif(shutil.which("gcc") is None, reason=NO_COMPILER)
def test_mca_sees_that_a_sum_waits_for_itself() -> None:
    task = _load_kernel()
    (profiler,), _ = choose_profilers(task, ("mca",), lambda task, source: {})
    [report] = profiler.profile_program(ProfileSubject(task, task.impl or ""))
    assert "cycles a round; at least" in report.body
    assert "waits for results in 9" in report.body


def test_names_choose_among_the_profilers_of_the_language() -> None:
    chosen, lacks = choose_profilers(STEP, ("auto",), lambda task, source: {})
    assert [profiler.name for profiler in chosen] == ["cost"]
    assert lacks == ()  # what is made for other languages is not missing
    assert choose_profilers(STEP, ("none",), lambda task, source: {}) == ((), ())
    for names, expected in ((("none",), ["command"]), (("cost",), ["cost", "command"])):
        chosen, _ = choose_profilers(STEP, names, lambda task, source: {}, "true")
        assert [profiler.name for profiler in chosen] == expected
    for name, message in (("remarks", "not made for programs of target step"), ("nvprof", "no such profiler; known:")):
        with pytest.raises(UsageError, match=message):
            choose_profilers(STEP, (name,), lambda task, source: {})


def test_a_profiler_that_is_not_installed_is_said_and_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    task = _load_kernel()
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen, lacks = choose_profilers(task, ("mca", "roofline"), lambda task, source: {})
    assert [profiler.name for profiler in chosen] == ["roofline"]
    assert lacks == ("profile mca: llvm-mca is not installed; try: install Debian's package llvm",)
