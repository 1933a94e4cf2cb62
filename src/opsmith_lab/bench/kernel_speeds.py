"""Speeds of a suite's problems on this machine: the plain program, a given one, torch eager and compiled.

Each problem is measured for itself, and what goes wrong there is a reason in its rows: nothing stops the others. What
was measured can be kept line by line in a file, from which an interrupted table goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from opsmith.devices.describe import Device
from opsmith.devices.peaks import load_peaks
from opsmith.measuring.chaining import chain_report
from opsmith.measuring.intervals import Interval, average_ratios
from opsmith.measuring.measure import PROTOCOL, choose_timed_sets
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.measuring.torch_partners import (
    COMPILE,
    EAGER,
    PARTNERS,
    TorchComparison,
    TorchFigure,
    TorchRequest,
    measure_torch,
)
from opsmith.records import Task, content_hash, to_json
from opsmith_lab.bench.beside_plain import PlainTimer, describe_failure

_UNTIMED = TorchComparison(None, {partner: TorchFigure(reason="not timed") for partner in PARTNERS})


@dataclass(frozen=True)
class KernelSpeed:
    """One problem at one shape set. Times are ns of one call; ratios are to the plain program, above 1 is faster."""

    task: str
    shape_set: str
    sizes: Mapping[str, int]
    has_program: bool = False  # one was given
    plain: Interval | None = None
    program: Interval | None = None  # the given one
    eager: Interval | None = None
    compile: Interval | None = None
    program_ratio: Interval | None = None
    eager_ratio: Interval | None = None
    compile_ratio: Interval | None = None
    faster: str = ""  # of eager and compile; "": neither has a figure
    over_torch: Interval | None = None  # time of that one by the given program's: above 1 the program is the faster one
    claim: str = ""  # that may be made of it
    share: Interval | None = None  # of what the device allows, by the given program
    flags: str = ""  # of its build
    reasons: Sequence[str] = ()  # why figures are missing

    @property
    def is_whole(self) -> bool:
        """Whether all was timed that can be: what torch.compile refuses it will refuse again."""
        return self.plain is not None and self.eager is not None and (self.program is not None or not self.has_program)


@dataclass(frozen=True)
class KernelSpeeds:
    """A table, and what it was measured with."""

    device: Device
    torch: str  # its version
    grade: MeasuringGrade
    rows: Sequence[KernelSpeed]

    @property
    def mean(self) -> Interval | None:
        """The geometric mean of the given programs over the faster of eager and compile."""
        return average_ratios([row.over_torch for row in self.rows if row.over_torch is not None])

    @property
    def count(self) -> int:
        """Rows behind the mean."""
        return sum(row.over_torch is not None for row in self.rows)


@dataclass
class SpeedTable(PlainTimer):
    """Measures the rows of tasks, or reads them where they were kept."""

    grade: MeasuringGrade = MeasuringGrade.FULL
    programs: Path | None = None  # a folder with programs, named as the tasks are
    lines: Path | None = None  # where rows are kept

    def measure_tasks(self, tasks: Sequence[Task], tell: Callable[[str], None]) -> KernelSpeeds:
        """The table. Raises OSError where rows cannot be kept."""
        kept_rows = read_lines(self.lines) if self.lines is not None else {}
        rows: list[KernelSpeed] = []
        for number, task in enumerate(tasks, 1):
            tell(f"{task.id}: measured, {number} of {len(tasks)}")
            paths = sorted(self.programs.glob(f"{task.id}.*")) if self.programs is not None else []
            program = paths[0].read_text("utf-8") if paths else None
            key = self._name_rows(task, program)
            if key not in kept_rows:
                kept_rows[key] = list(self._measure_task(task, program))
                self._keep_rows(key, kept_rows[key])
            rows += kept_rows[key]
        return KernelSpeeds(self.device, version("torch"), self.grade, rows)

    def _name_rows(self, task: Task, program: str | None) -> str:
        """All that the figures depend on."""
        peaks = load_peaks(self.device.digest)
        texts = (task.text, task.impl or "", program or "", str(peaks), self.grade.value, PROTOCOL, version("torch"))
        return content_hash("kernel speeds", self.device.digest, *texts)

    def _keep_rows(self, key: str, rows: Sequence[KernelSpeed]) -> None:
        """Rows that miss what could be timed are measured anew the next time."""
        if self.lines is not None and all(row.is_whole for row in rows):
            with self.lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "rows": to_json(rows)}) + "\n")

    def _measure_task(self, task: Task, program: str | None) -> Iterator[KernelSpeed]:
        try:
            shape_sets = choose_timed_sets(task)
        except Exception as error:
            yield KernelSpeed(task.id, "-", {}, reasons=[describe_failure(error)])
            return
        comparisons, torch_failure = self._time_torch(task, shape_sets)
        reports, failure = self._list_reports(task, program, shape_sets)
        for name, sizes in shape_sets.items():
            empty = KernelSpeed(task.id, name, sizes, program is not None, reasons=[torch_failure, failure])
            yield compose_row(empty, comparisons.get(name, _UNTIMED), reports.get(name))

    def _time_torch(
        self, task: Task, shape_sets: Mapping[str, Mapping[str, int]]
    ) -> tuple[Mapping[str, TorchComparison], str]:
        """The comparisons, or why there are none."""
        try:
            return measure_torch(TorchRequest(task, shape_sets, PARTNERS, self.grade)), ""
        except Exception as error:
            return {}, describe_failure(error)

    def _list_reports(
        self, task: Task, program: str | None, shape_sets: Mapping[str, Mapping[str, int]]
    ) -> tuple[Mapping[str, SpeedReport], str]:
        """The reports by shape set, as far as they came, and what ended them."""
        reports: dict[str, SpeedReport] = {}
        try:
            for report in self.time_program(task, program, shape_sets, self.grade):
                reports[report.measurement.shape_set] = report
        except Exception as error:
            return reports, describe_failure(error)
        return reports, ""


# -- one row


def compose_row(empty: KernelSpeed, torch: TorchComparison, report: SpeedReport | None) -> KernelSpeed:
    """The row of one shape set, of what was measured there."""
    eager, compiled = torch.figures[EAGER], torch.figures[COMPILE]
    reasons = [*empty.reasons, *(figure.reason for figure in (eager, compiled) if figure.reason != "not timed")]
    row = replace(
        empty,
        plain=torch.plain,
        eager=eager.time,
        compile=compiled.time,
        eager_ratio=eager.to_plain and eager.to_plain.invert(),
        compile_ratio=compiled.to_plain and compiled.to_plain.invert(),
        faster=choose_faster(torch.figures),
    )
    if report is not None:
        measurement, share = report.measurement, report.share
        ratio = measurement.ratio
        row = replace(
            row,
            program=measurement.time,
            program_ratio=ratio.precise if ratio is not None else None,
            share=share.share if share is not None else None,
            flags=measurement.flags,
        )
        reasons += [measurement.reason, share.reason if share is not None else ""]
        if row.faster and ratio is not None:
            chained = chain_report(report, row.faster, torch.figures[row.faster]).measurement
            reasons.append(chained.reason)
            if chained.ratio is not None:
                claim = chained.ratio.claim.value if chained.ratio.claim else ""
                row = replace(row, over_torch=chained.ratio.precise, claim=claim)
    return replace(row, reasons=list(dict.fromkeys(filter(None, reasons))))


def choose_faster(figures: Mapping[str, TorchFigure]) -> str:
    """The name of the faster one, by its ratio to the plain program; "": none has one."""
    ratios = {name: figure.to_plain.value for name, figure in figures.items() if figure.to_plain is not None}
    return min(ratios, key=ratios.__getitem__, default="")


# -- the file


def read_lines(path: Path) -> dict[str, list[KernelSpeed]]:
    """The rows that a file keeps; a line that is none, such as one that was cut off, is passed over."""
    rows: dict[str, list[KernelSpeed]] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            data = json.loads(line)
            rows[data["key"]] = [
                KernelSpeed(**{name: _read_value(value) for name, value in row.items()}) for row in data["rows"]
            ]
    return rows


def _read_value(value: Any) -> Any:
    """Intervals are the mappings with an end."""
    is_interval = isinstance(value, dict) and value.keys() == {"value", "low", "high"}
    return Interval(**value) if is_interval and all(map(math.isfinite, value.values())) else value
