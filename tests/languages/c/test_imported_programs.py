"""Imported problems can be solved: plain programs in C for problems of each kind pass, and what cheats is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from export.installs import link_packages, run_python
from export.stores import RUN, Said, info, write_run
from targets.native.programs import needs_compiler

from languages.originals import replace_sizes
from opsmith.export.flashinfer import export_traces
from opsmith.export.torch_modules import export_torch_modules
from opsmith.judging.pool import Pool
from opsmith.problems.files.reading import read_problem
from opsmith.records import Outcome, Task
from opsmith.suites import load_tasks

pytestmark = needs_compiler

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUNNER = Path(__file__).parent / "trace_runner.py"
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
        result = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=root, check=False)
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


def test_solved_imports_agree_with_their_modules_in_the_harness(
    pool: Pool, imported: dict[str, Path], tmp_path: Path
) -> None:
    """As modules beside the imported files, whose constants are made as small as the largest set that is timed."""
    programs = [path for path in PROGRAMS if path.parts[-3] == "kernelbench"]
    tasks = {path: load_imported(imported[path.stem]) for path in programs}
    said = {task.id: [Said(path.read_text("utf-8"), True)] for path, task in tasks.items()}
    with write_run(tmp_path / "store", said, list(tasks.values()), info("c")) as store:
        exported = export_torch_modules(store, RUN, tmp_path / "modules", pool)
    assert set(exported.modules) == {path.stem for path in programs}
    for path in programs:
        for folder in (exported.folder, exported.folder / "reference"):
            shrink_module(folder / f"{path.stem}.py", imported[path.stem])
    packages = link_packages(tmp_path / "packages", "torch")
    result = run_python(str(exported.folder / "harness.py"), "--json", cwd=exported.folder, packages=packages)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["name"]: row["message"] for row in rows} == {path.stem: "" for path in programs}, result.stderr


@pytest.mark.skipif(shutil.which("ninja") is None, reason="torch's extension builder needs ninja")
def test_solved_imports_are_solutions_for_flashinfer_trace_as_well(
    pool: Pool, imported: dict[str, Path], tmp_path: Path
) -> None:
    """The modules' code stands in the definitions; two of the solutions are run, since each is built for seconds."""
    programs = [path for path in PROGRAMS if path.parts[-3] == "kernelbench"]
    tasks = {path: load_imported(imported[path.stem]) for path in programs}
    said = {task.id: [Said(path.read_text("utf-8"), True)] for path, task in tasks.items()}
    with write_run(tmp_path / "store", said, list(tasks.values()), info("c")) as store:
        exported = export_traces(store, RUN, tmp_path / "traces", pool)
    assert (len(exported.entries), dict(exported.without_form)) == (len(programs), {})
    for path in exported.folder.glob("solutions/*/*"):
        if not path.name.endswith(("batch_norm", "conv2d_bias_tanh_scale")):
            shutil.rmtree(path)
    packages = link_packages(tmp_path / "packages", "torch", "setuptools")
    done = run_python(str(RUNNER), str(exported.folder), cwd=tmp_path, packages=packages)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({row["name"] for row in rows}) == 2, done.stderr[-3000:]
    assert [row for row in rows if row["error"] > 1e-3] == []


def shrink_module(module: Path, file: Path) -> None:
    """Both modules have the file's constants, and run in one namespace."""
    problem = read_problem(file.read_text("utf-8"), file.stem).problem
    module.write_text(replace_sizes(module.read_text("utf-8"), problem.bench["large"]), "utf-8")
