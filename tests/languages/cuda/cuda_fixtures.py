"""Programs in CUDA: plain ones, those of strangers, wrong ones, and what is expected of each; as a script, a table of
verdicts with times.

PYTHONPATH=tests python tests/languages/cuda/cuda_fixtures.py > table.md
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import opsmith
from opsmith.judging.pool import Pool
from opsmith.records import FOR_PEOPLE, Task, Verdict
from opsmith.running import sandbox
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.protocols import Equipped

FIXTURES = Path(__file__).parents[2] / "fixtures"
PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"
STRANGERS = FIXTURES / "strangers"
WRONG = FIXTURES / "wrong" / "cuda"
HEADER = re.compile(r"// problem: (?P<problem>\w+)\n// refused: (?P<stage>[A-Z]+) ?(?P<words>.*)\n")


def find_lack() -> str:
    """Why nothing in CUDA can be judged here; "": it can."""
    target = get_target("cuda")
    return sandbox.missing() or (target.explain_lack() if isinstance(target, Equipped) else "")


needs_cuda = pytest.mark.skipif(bool(find_lack()), reason=f"no CUDA here: {find_lack()}")


@dataclass(frozen=True)
class CudaProgram:
    """A program, and where it is refused with which words; no stage: it passes."""

    path: Path
    place: str  # of its problem, as `load_tasks` takes it
    stage: str = ""
    words: str = ""

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def task(self) -> Task:
        return load_cuda_task(self.place)


@cache
def load_cuda_task(place: str) -> Task:
    return load_tasks([place], "cuda", {})[0]


def list_plain() -> list[CudaProgram]:
    return [CudaProgram(path, f"kernels/{path.stem}") for path in sorted(PLAIN.glob("*.cu"))]


def list_strangers() -> list[CudaProgram]:
    """In the ways of others: cooperative groups, templates, vector types, patterns of known samples."""
    programs = sorted((STRANGERS / "plain").glob("*.cu"))
    return [CudaProgram(path, str(STRANGERS / f"{path.stem}.yaml")) for path in programs]


def list_wrong() -> list[CudaProgram]:
    return list(map(read_wrong, sorted(WRONG.glob("*.cu"))))


def read_wrong(path: Path) -> CudaProgram:
    header = HEADER.match(path.read_text("utf-8"))
    if header is None:
        raise ValueError(f"{path}: no problem and stage in its first lines")
    return CudaProgram(path, f"kernels/{header['problem']}", header["stage"], header["words"])


def write_row(program: CudaProgram, verdict: Verdict, seconds: float) -> str:
    """What a model is told is in the last column, a line for each finding."""
    findings = "<br>".join(str(error).replace("|", "\\|") for error in verdict.errors)
    hidden = any(warning.startswith(FOR_PEOPLE) for warning in verdict.warnings)
    stage = f"passed {verdict.trials} trials" if verdict.passed else f"{verdict.outcome.name} {verdict.stage.name}"
    sizes = ("hidden" if hidden else "stated") if verdict.errors else ""
    return f"| {program.name} | {program.stage or 'right'} | {stage} | {sizes} | {seconds:.2f} | {findings} |"


def judge_programs(programs: list[CudaProgram]) -> Iterator[str]:
    """One after another, so that times are those of one verdict."""
    with Pool(1, trial_deadline=20.0) as pool:
        for program in programs:
            start = time.perf_counter()
            verdict = pool.verify(program.task, program.source)
            yield write_row(program, verdict, time.perf_counter() - start)


def print_table(words: list[str]) -> None:
    """Of the programs whose names begin with a word; without words, of all."""
    programs = [*list_plain(), *list_strangers(), *list_wrong()]
    chosen = [program for program in programs if not words or program.name.startswith(tuple(words))]
    print("| program | expected | verdict | sizes | s | what a model is told |\n|---|---|---|---|---|---|")
    for row in judge_programs(chosen):
        print(row, flush=True)


if __name__ == "__main__":
    sys.exit(print_table(sys.argv[1:]))
