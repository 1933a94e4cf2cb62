"""Cheats on a timer: each is a program in C that a naive driver would believe, and none has a claim here.

As a script: python tests/languages/c/test_cheats.py > table.md
"""

from __future__ import annotations

import math
import platform
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import FIXTURES, load_c_task
from languages.c.naive_timing import claim_ratio
from opsmith.devices.describe import describe_device
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets, measure_program
from opsmith.measuring.record import PLAIN, Claim, MeasuringGrade, SpeedMeasurement
from opsmith.problems.dtypes import BYTES_BY_DTYPE
from opsmith.problems.problem import ArrayType
from opsmith.records import Task, Verdict
from opsmith.targets.c import C
from opsmith.targets.native.signature import make_signature

pytestmark = needs_compiler
HEADER = re.compile(r"// cheat: (?P<words>.+); caught at (?P<stages>[A-Za-z ]+?)(?P<only> \(x86-64\))?\n")
TIMING = "timing"


@dataclass(frozen=True)
class Cheat:
    """A program, and where it may be caught."""

    path: Path

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def task(self) -> Task:
        problem, _, _ = self.path.stem.rpartition("__")
        return load_c_task(f"kernels/{problem or 'row_sum'}", False)

    @property
    def stages(self) -> list[str]:
        header = HEADER.match(self.source)
        assert header is not None, self.path
        return header["stages"].split(" or ")

    @property
    def runs_here(self) -> bool:
        return platform.machine() == "x86_64" or "(x86-64)\n" not in self.source

    def claim_naively(self, folder: Path) -> float:
        """By how much a naive driver takes it to be faster than the plain program, at a middle size."""
        problem = C.find_problem(self.task)
        sizes = {**problem.base_sizes, **problem.bench["small"]}
        inputs = [_count_bytes(tensor.type, sizes) for tensor in problem.tensors]
        outputs = [_count_bytes(output.types[0], sizes) for output in problem.outputs]
        rows = (inputs, outputs, [sizes[name] for name in problem.base_sizes])
        words = [",".join(map(str, row)) for row in rows]
        return claim_ratio(folder, make_signature(problem), self.task.impl or "", self.source, words)


CHEATS = [Cheat(path) for path in sorted((FIXTURES / "cheats").glob("*.c"))]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def room() -> Iterator[TimingRoom]:
    with TimingRoom() as shared:
        yield shared


def measure_cheat(pool: Pool, room: TimingRoom, cheat: Cheat) -> SpeedMeasurement:
    task = cheat.task
    program, partner = TimedProgram(cheat.source, "program"), TimedProgram(task.impl or "", PLAIN)
    sets = choose_timed_sets(task, ["small"])
    request = SpeedRequest(task, program, partner, sets, MeasuringGrade.FULL, describe_device(), None)
    (report,) = measure_program(room, pool.verify, request)
    return report.measurement


def is_caught(measurement: SpeedMeasurement) -> bool:
    """No figure, or none that says that it is faster."""
    ratio = measurement.ratio
    return ratio is None or ratio.precise.low <= LEAST_GAIN or ratio.claim is not Claim.FASTER


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.path.stem)
def test_a_cheat_has_no_claim(pool: Pool, room: TimingRoom, cheat: Cheat) -> None:
    if not cheat.runs_here:
        pytest.skip("it is written for x86-64")
    verdict = pool.verify(cheat.task, cheat.source)
    if not verdict.passed:
        assert verdict.stage.name in cheat.stages, verdict.message
        return
    assert TIMING in cheat.stages, "it passes its verdict"
    measurement = measure_cheat(pool, room, cheat)
    assert is_caught(measurement), measurement


def _count_bytes(type_: ArrayType, sizes: Mapping[str, int]) -> int:
    return BYTES_BY_DTYPE[type_.dtype] * math.prod(type_.shape_at(sizes))


def write_row(cheat: Cheat, verdict: Verdict, measurement: SpeedMeasurement | None, claim: float) -> str:
    said = verdict.message.splitlines()[0] if not verdict.passed else ""
    if measurement is not None:
        ratio = measurement.ratio
        said = measurement.reason or (f"{ratio.precise}: {ratio.claim}" if ratio is not None else "")
    stage = verdict.stage.name if not verdict.passed else TIMING
    return f"| {cheat.path.stem} | {claim:.1f} | {stage} | {said[:150].replace('|', '/')} |"


def print_table() -> None:
    print("| cheat | naive claim | caught at | what is said |\n|---|---|---|---|", flush=True)
    with Pool(1, trial_deadline=5.0) as pool, TimingRoom() as room, tempfile.TemporaryDirectory() as folder:
        for cheat in CHEATS:
            verdict = pool.verify(cheat.task, cheat.source)
            measurement = measure_cheat(pool, room, cheat) if verdict.passed else None
            print(write_row(cheat, verdict, measurement, cheat.claim_naively(Path(folder))), flush=True)


if __name__ == "__main__":
    sys.exit(print_table())
