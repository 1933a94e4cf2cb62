"""Programs of GPU languages: plain ones, those of strangers, wrong ones, and what is expected of each; as a script, a
table of verdicts with times.

PYTHONPATH=tests python tests/languages/gpu_programs.py cuda > table.md
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
from opsmith.targets.protocols import Equipped, Suffixed
from opsmith_lab.bench.attacks import LIBRARY

FIXTURES = Path(__file__).parents[1] / "fixtures"
PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"
STRANGERS = FIXTURES / "strangers"
HEADER = re.compile(r"// problem: (?P<problem>\w+)\n// refused: (?P<stage>[A-Z]+) ?(?P<words>.*)\n")


@cache
def find_lack(language: str) -> str:
    """Why nothing in a language can be judged here; "": it can."""
    target = get_target(language)
    return sandbox.missing() or (target.explain_lack() if isinstance(target, Equipped) else "")


def skip_without(language: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(find_lack(language)), reason=f"nothing to judge {language}: {find_lack(language)}")


needs_cuda, needs_wgsl, needs_metal = map(skip_without, ("cuda", "wgsl", "metal"))


@dataclass(frozen=True)
class GpuProgram:
    """A program, and where it is refused with which words; no stage: it passes."""

    language: str
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
        return load_gpu_task(self.language, self.place)


@cache
def load_gpu_task(language: str, place: str) -> Task:
    return load_tasks([place], language, {})[0]


def list_plain(language: str) -> list[GpuProgram]:
    return [GpuProgram(language, path, f"kernels/{path.stem}") for path in _list_files(PLAIN, language)]


def list_strangers(language: str) -> list[GpuProgram]:
    """In the ways of others: groups, templates, structs, vector types, several kernels with workspaces between them."""
    files = _list_files(STRANGERS / "plain", language)
    return [GpuProgram(language, path, str(STRANGERS / f"{path.stem}.yaml")) for path in files]


def list_wrong(language: str) -> list[GpuProgram]:
    return [read_wrong(language, path) for path in _list_files(LIBRARY / language / "mistakes", language)]


def read_wrong(language: str, path: Path) -> GpuProgram:
    header = HEADER.match(path.read_text("utf-8"))
    if header is None:
        raise ValueError(f"{path}: no problem and stage in its first lines")
    return GpuProgram(language, path, f"kernels/{header['problem']}", header["stage"], header["words"])


def _list_files(folder: Path, language: str) -> list[Path]:
    target = get_target(language)
    assert isinstance(target, Suffixed)
    return sorted(folder.glob(f"*{target.suffix}"))


def write_row(program: GpuProgram, verdict: Verdict, seconds: float) -> str:
    """What a model is told is in the last column, a line for each finding."""
    findings = "<br>".join(str(error).replace("|", "\\|") for error in verdict.errors)
    hidden = any(warning.startswith(FOR_PEOPLE) for warning in verdict.warnings)
    stage = f"passed {verdict.trials} trials" if verdict.passed else f"{verdict.outcome.name} {verdict.stage.name}"
    sizes = ("hidden" if hidden else "stated") if verdict.errors else ""
    return f"| {program.name} | {program.stage or 'right'} | {stage} | {sizes} | {seconds:.2f} | {findings} |"


def judge_programs(programs: list[GpuProgram]) -> Iterator[str]:
    """One after another, so that times are those of one verdict."""
    with Pool(1, trial_deadline=20.0) as pool:
        for program in programs:
            start = time.perf_counter()
            verdict = pool.verify(program.task, program.source)
            yield write_row(program, verdict, time.perf_counter() - start)


def print_table(language: str, words: list[str]) -> None:
    """Of the programs whose names begin with a word; without words, of all."""
    programs = [*list_plain(language), *list_strangers(language), *list_wrong(language)]
    chosen = [program for program in programs if not words or program.name.startswith(tuple(words))]
    print("| program | expected | verdict | sizes | s | what a model is told |\n|---|---|---|---|---|---|")
    for row in judge_programs(chosen):
        print(row, flush=True)


if __name__ == "__main__":
    sys.exit(print_table(sys.argv[1], sys.argv[2:]))
