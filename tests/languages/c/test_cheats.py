"""Cheats on a timer: each is a program in C that a naive driver would believe, and none has a claim here.

They are the library of attacks' class `clocks`. As a script, which takes ten minutes:
python tests/languages/c/test_cheats.py > experiments/clock-cheats.md
"""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from languages.c.naive_timing import claim_ratio
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import ArrayType
from opsmith.records import Task
from opsmith.targets.c import C
from opsmith.targets.native.signature import make_signature
from opsmith_lab.bench.attacks import CLOCKS, LIBRARY, Attack, is_believed, measure_claim, read_attack, read_task

pytestmark = needs_compiler
HEADER = re.compile(r"// wrong: (?P<words>.+?)(?P<only> \(x86-64\))?\n", re.MULTILINE)
MOST_STEERED = 1.1  # a screen may be so far off on a busy machine
HEAD = """# Cheats of the clock

Each is a program in C that passes as right, or tries to, and would be believed to be faster than it is. *Usual loop*:
what a driver says that calls the program and then its partner 300 times on the same arrays in one process, and divides
the means. *Screen* and *full*: what is said here, at the sizes `small` beside the task's plain program; a ratio above
1 is faster. Printed by `python tests/languages/c/test_cheats.py` on {device}, {when}.

| cheat | what it does | usual loop | screen | full |
|---|---|---|---|---|"""


@dataclass(frozen=True)
class Cheat:
    """A program, and the stage that refuses it where that is certain."""

    path: Path

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def header(self) -> re.Match[str]:
        header = HEADER.search(self.source)
        assert header is not None, self.path
        return header

    @property
    def task(self) -> Task:
        return read_task(self.attack)

    @property
    def attack(self) -> Attack:
        return read_attack(self.path)

    @property
    def runs_here(self) -> bool:
        return platform.machine() == "x86_64" or self.header["only"] is None

    def claim_naively(self, folder: Path) -> float:
        """By how much a naive driver takes it to be faster than the plain program, at a middle size."""
        problem = C.find_problem(self.task)
        sizes = {**problem.base_sizes, **problem.bench["small"]}
        inputs = [_count_bytes(tensor.type, sizes) for tensor in problem.tensors]
        outputs = [_count_bytes(output.types[0], sizes) for output in problem.outputs]
        rows = (inputs, outputs, [sizes[name] for name in problem.base_sizes], [*problem.scalars.values()])
        words = [",".join(map(str, row)) for row in rows]
        return claim_ratio(folder, make_signature(problem), self.task.impl or "", self.source, words)


CHEATS = [Cheat(path) for path in sorted((LIBRARY / "c" / CLOCKS).glob("*.c"))]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def room() -> Iterator[TimingRoom]:
    with TimingRoom() as shared:
        yield shared


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.path.stem)
def test_a_cheat_has_no_claim_and_steers_no_search(pool: Pool, room: TimingRoom, cheat: Cheat) -> None:
    if not cheat.runs_here:
        pytest.skip("it is written for x86-64")
    verdict = pool.verify(cheat.task, cheat.source)
    if not verdict.passed:
        assert verdict.stage.name == cheat.attack.stage or not cheat.attack.stage, verdict.message
        return
    assert not cheat.attack.stage, "it passes its verdict"
    screen = measure_claim(pool, room, cheat.task, cheat.source, MeasuringGrade.SCREEN)
    assert screen.ratio is None or screen.ratio.precise.low <= MOST_STEERED, screen
    measurement = measure_claim(pool, room, cheat.task, cheat.source)
    assert not is_believed(measurement), measurement


def _count_bytes(type_: ArrayType, sizes: Mapping[str, int]) -> int:
    return BYTES_BY_DTYPE[type_.dtype] * math.prod(type_.shape_at(sizes))


def describe_figure(measurement: SpeedMeasurement) -> str:
    ratio = measurement.ratio
    if ratio is None:
        return f"no figure: {measurement.reason.partition(': DATA')[0]}"
    return f"{ratio.precise}" + (f": {ratio.claim.value}" if ratio.claim is not None else "")


def write_row(pool: Pool, room: TimingRoom, cheat: Cheat, folder: Path) -> str:
    """A line of the table."""
    verdict = pool.verify(cheat.task, cheat.source)
    said = ["not measured"] * 2
    if verdict.passed:
        said = [describe_figure(measure_claim(pool, room, cheat.task, cheat.source, grade)) for grade in MeasuringGrade]
    else:
        said[0] = f"refused at {verdict.stage.name}"
    try:
        claim = f"{cheat.claim_naively(folder):.1f}"
    except subprocess.SubprocessError:
        claim = "it crashes"
    cells = (cheat.path.stem, cheat.header["words"], claim, *said)
    return "| " + " | ".join(cell.replace("|", "/")[:230] for cell in cells) + " |"


def print_table() -> None:
    device = describe_device()
    words = f"{device.name}, {device.usable_cores} cores, load {os.getloadavg()[0]:.0f}"
    print(HEAD.format(device=words, when=time.strftime("%Y-%m-%d")), flush=True)
    with Pool(1, trial_deadline=5.0) as pool, TimingRoom() as room, tempfile.TemporaryDirectory() as folder:
        for cheat in CHEATS:
            print(write_row(pool, room, cheat, Path(folder)), flush=True)


if __name__ == "__main__":
    sys.exit(print_table())
