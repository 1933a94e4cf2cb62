"""The programs in C of the suites, of the fixtures and what is expected of each; as a script, a table of verdicts.

python tests/languages/c/fixture_programs.py > table.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from opsmith.judging.pool import Pool
from opsmith.records import FOR_PEOPLE, Task, Verdict
from opsmith.suites import load_tasks, task_files
from opsmith_lab.bench.attacks import LIBRARY

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernels"
MISTAKES = LIBRARY / "c" / "mistakes"
HEADER = re.compile(r"// wrong: (?P<kind>\w+): (?P<words>.+); refused at (?P<stage>[A-Z]+)\n")
THREADS = "threads"  # the folder of programs for two threads


@dataclass(frozen=True)
class FixtureProgram:
    """A program, the task that it is for, and where it is refused."""

    path: Path
    suite: str = "kernels"

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def source(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def task(self) -> Task:
        return load_c_task(f"{self.suite}/{self.path.stem.partition('__')[0]}", self.path.parent.name == THREADS)

    @property
    def kind(self) -> str:
        header = HEADER.match(self.source)
        return header["kind"] if header else "right"

    @property
    def stage(self) -> str:
        """Where it is refused; "": it passes."""
        header = HEADER.match(self.source)
        return header["stage"] if header else ""


@cache
def load_c_task(name: str, has_threads: bool) -> Task:
    return load_tasks([name], "c", {"threads": 2} if has_threads else {})[0]


def list_programs() -> Iterator[FixtureProgram]:
    """All of them: plain, fast, reordered, for two threads, wrong."""
    for suite in ("kernels", "step26"):
        folder = task_files(suite)[0].parent / "plain"
        yield from (FixtureProgram(path, suite) for path in sorted(folder.glob("*.c")))
    for folder in (*(FIXTURES / name for name in ("fast", "reordered", THREADS)), MISTAKES):
        yield from (FixtureProgram(path) for path in sorted(folder.glob("*.c")))


def write_row(program: FixtureProgram, verdict: Verdict) -> str:
    """What a model is told is in the last column, a line for each finding; what only people are told is left out."""
    findings = "<br>".join(str(error).replace("|", "\\|") for error in verdict.errors)
    hidden = any(warning.startswith(FOR_PEOPLE) for warning in verdict.warnings)
    size = "hidden" if hidden else "stated"
    stage = verdict.stage.name if not verdict.passed else f"passed {verdict.trials} trials"
    return f"| {program.name} | {program.kind} | {stage} | {size if verdict.errors else ''} | {findings} |"


def print_table() -> None:
    print("| program | kind | verdict | sizes | what a model is told |\n|---|---|---|---|---|")
    with Pool() as pool:
        futures = [(program, pool.submit(program.task, program.source)) for program in list_programs()]
        for program, future in futures:
            print(write_row(program, future.result()), flush=True)


if __name__ == "__main__":
    sys.exit(print_table())
