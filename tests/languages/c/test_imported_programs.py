"""Imported problems can be solved: plain programs in C for problems of each kind pass, and what cheats is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from opsmith.judging.pool import Pool
from opsmith.records import Outcome, Task
from opsmith.suites import load_tasks

pytestmark = needs_compiler

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = sorted(FIXTURES.glob("*/programs/*.c"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The problem files that the programs are for, by the programs' names."""
    root, files = tmp_path_factory.mktemp("imported"), {}
    for format_ in ("kernelbench", "flashinfer"):
        for program in (FIXTURES / format_ / "programs").glob("*.c"):
            copy_source(FIXTURES / format_, program.stem, root / "sources" / format_)
        words = ["import", format_, str(root / "sources" / format_), "--out", str(root / format_), "--json"]
        command = [sys.executable, "-m", "opsmith", *words]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=root, check=False)
        for row in json.loads(result.stdout)["files"]:
            assert row["problem"], row
            files[Path(row["file"]).stem] = root / row["written"]
    return files


def copy_source(folder: Path, stem: str, target: Path) -> None:
    """The files of a source, where they lie in the folder."""
    for path in folder.rglob(f"{stem}.*"):
        if path.suffix != ".c":
            copy = target / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=10.0) as shared:
        yield shared


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_plain_program_solves_an_imported_problem(pool: Pool, imported: dict[str, Path], program: Path) -> None:
    verdict = pool.verify(load_imported(imported[program.stem]), program.read_text("utf-8"))
    assert verdict.passed, f"{verdict.message}\n{verdict.warnings}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_that_writes_nothing_solves_none(pool: Pool, imported: dict[str, Path], program: Path) -> None:
    source = program.read_text("utf-8")
    head = source[source.index("void kernel(") : source.index("{", source.index("void kernel("))]
    verdict = pool.verify(load_imported(imported[program.stem]), f"#include <stdint.h>\n{head}{{}}\n")
    assert verdict.outcome is Outcome.REFUSED, verdict.message


def load_imported(path: Path) -> Task:
    return load_tasks([str(path)], "c", {})[0]
