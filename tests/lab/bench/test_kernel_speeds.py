"""The table of speeds: what a row is composed of, its mean, what is missing, and how it goes on from kept lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.devices.describe import describe_device
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.measuring.torch_partners import COMPILE, EAGER, TorchComparison, TorchFigure, TorchRequest
from opsmith.records import TIME, Task, Verdict, to_json
from opsmith.suites import load_tasks
from opsmith_lab.bench import kernel_speeds
from opsmith_lab.bench.kernel_speeds import (
    KernelSpeed,
    KernelSpeeds,
    SpeedTable,
    choose_faster,
    compose_row,
    read_lines,
)
from opsmith_lab.bench.kernel_table import describe_mean, list_missing, write_markdown

EMPTY = KernelSpeed("softmax", "small", {"M": 8}, has_program=True)
TORCH = TorchComparison(
    Interval(800.0, 790.0, 810.0),
    {
        EAGER: TorchFigure(Interval(400.0, 390.0, 410.0), Interval(0.5, 0.49, 0.51)),
        COMPILE: TorchFigure(Interval(200.0, 190.0, 210.0), Interval(0.25, 0.24, 0.26)),
    },
)
REPORT = SpeedReport(
    SpeedMeasurement(
        program="p" * 64,
        problem="q" * 64,
        shape_set="small",
        sizes={"M": 8},
        device="cpu",
        protocol="pairs/1",
        flags="gcc -O3",
        grade=MeasuringGrade.FULL,
        objective=TIME,
        time=Interval(100.0, 99.0, 101.0),
        ratio=SpeedRatio("plain", Interval(8.0, 7.9, 8.1), Interval(8.0, 7.5, 8.5), Claim.FASTER),
    ),
    None,
)


def make_speeds(*rows: KernelSpeed) -> KernelSpeeds:
    return KernelSpeeds(describe_device(), "2.0", MeasuringGrade.FULL, rows)


def test_a_program_is_compared_with_the_faster_of_eager_and_compile() -> None:
    row = compose_row(EMPTY, TORCH, REPORT)
    assert row.faster == COMPILE
    assert row.over_torch is not None
    assert row.over_torch.value == pytest.approx(8.0 * 0.25)
    assert row.claim == "faster"
    assert row.eager_ratio is not None
    assert row.eager_ratio.value == pytest.approx(2.0)
    assert (row.reasons, row.is_whole) == ([], True)


def test_where_torch_does_not_compile_eager_is_the_faster_one() -> None:
    figures = {**TORCH.figures, COMPILE: TorchFigure(reason="torch.compile: a graph break")}
    row = compose_row(EMPTY, replace(TORCH, figures=figures), REPORT)
    assert row.faster == EAGER
    assert row.over_torch is not None
    assert row.over_torch.value == pytest.approx(8.0 * 0.5)
    assert row.reasons == ["torch.compile: a graph break"]
    assert choose_faster({EAGER: TorchFigure(reason="no"), COMPILE: TorchFigure(reason="no")}) == ""


def test_the_mean_is_of_the_rows_with_a_program_and_says_how_many() -> None:
    speeds = make_speeds(compose_row(EMPTY, TORCH, REPORT), compose_row(replace(EMPTY, task="gather"), TORCH, None))
    assert speeds.mean is not None
    assert speeds.mean.value == pytest.approx(2.0)
    assert "1 of 2 rows" in describe_mean(speeds)
    assert "no program" in describe_mean(make_speeds())


def test_a_page_has_its_command_its_setting_and_every_reason_with_its_rows() -> None:
    missing = compose_row(replace(EMPTY, reasons=["BusyError: somebody has it"]), TORCH, None)
    speeds = make_speeds(compose_row(EMPTY, TORCH, REPORT), replace(missing, shape_set="large"))
    page = write_markdown(speeds, "opsmith bench speeds")
    assert "```sh\nopsmith bench speeds\n```" in page
    assert "gcc -O3" in page
    assert "torch 2.0" in page
    assert list(list_missing(speeds)) == ["softmax large: BusyError: somebody has it"]
    widths = {line.count("|") for line in page.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_rows_come_back_from_their_lines_and_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    row = compose_row(EMPTY, TORCH, REPORT)
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"key": "a", "rows": to_json([row])}) + '\n{"key": "b", "ro', encoding="utf-8")
    assert read_lines(path) == {"a": [row]}
    assert read_lines(tmp_path / "none.jsonl") == {}


def refuse_program(task: Task, source: str) -> Verdict:
    raise OSError("no verdict today")


def test_a_failing_problem_is_a_row_with_its_reason_and_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []

    def time_torch(request: TorchRequest) -> Mapping[str, TorchComparison]:
        timed.append(request.task.id)
        if request.task.id == "softmax":
            raise MemoryError("no memory")
        return dict.fromkeys(request.shape_sets, TORCH)

    monkeypatch.setattr(kernel_speeds, "measure_torch", time_torch)
    tasks = load_tasks(("kernels/softmax", "kernels/gather"), "c")
    (tmp_path / "softmax.c").write_text("void kernel(void) {}", encoding="utf-8")
    with TimingRoom() as room:
        table = SpeedTable(room, refuse_program, programs=tmp_path, lines=tmp_path / "lines.jsonl")
        for _ in range(2):
            speeds = table.measure_tasks(tasks, lambda text: None)
    assert timed == ["softmax", "gather", "softmax"]
    assert {row.task for row in speeds.rows} == {"softmax", "gather"}
    assert set(speeds.rows[0].reasons) == {"MemoryError: no memory", "OSError: no verdict today"}
    assert all(row.eager is not None for row in speeds.rows if row.task == "gather")
