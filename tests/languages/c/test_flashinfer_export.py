"""A run in C as a data set of FlashInfer Trace: what is written is valid, comes back as the same problem, and runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from export.installs import link_packages, run_python
from export.stores import RUN, Said, info, write_run
from imports.definitions import RMS_NORM, write_dataset
from targets.native.programs import needs_compiler

import opsmith
from opsmith.errors import UsageError
from opsmith.export.flashinfer import ExportedTraces, export_traces
from opsmith.export.trace_definition import find_definition
from opsmith.imports.flashinfer.folder import import_definitions
from opsmith.imports.flashinfer.formats import Definition, FlashinferSolution, Trace, read_json, read_model
from opsmith.imports.worker import ImportWorkers
from opsmith.imports.writing import ProblemFolder
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.problems.digest import hash_problem
from opsmith.problems.files.reading import read_problem
from opsmith.records import TIME, Candidate, Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows
from opsmith.suites import load_tasks
from opsmith.targets import get_target

pytestmark = needs_compiler
PLAIN = Path(opsmith.__file__).parent / "suites" / "kernels" / "plain"
RUNNER = Path(__file__).parent / "trace_runner.py"
RMS_NORM_C = """
#include <math.h>
void kernel(const uint16_t *restrict x, const uint16_t *restrict weight, uint16_t *restrict y, int64_t rows,
            double eps) {
  for (int64_t row = 0; row < rows; row++) { /* "quoted" \\\\ ??/ \u00e9 */
    float sum = 0;
    for (int64_t i = 0; i < 64; i++) {
      float value = bf16_to_float(x[row * 64 + i]);
      sum += value * value;
    }
    float scale = 1 / sqrtf(sum / 64 + (float)eps);
    for (int64_t i = 0; i < 64; i++) {
      float value = bf16_to_float(x[row * 64 + i]) * scale;
      y[row * 64 + i] = float_to_bf16(value * bf16_to_float(weight[i]));
    }
  }
}
"""


def import_all(place: Path, out: Path, workers: ImportWorkers) -> dict[str, str]:
    """The texts of the problem files by name."""
    rows = import_definitions(place, ProblemFolder(out), workers, 1_000_000, lambda _: None)
    return {row.problem: Path(row.written).read_text() for row in rows}


@pytest.fixture(scope="module")
def workers() -> Iterator[ImportWorkers]:
    with ImportWorkers() as opened:
        yield opened


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, workers: ImportWorkers) -> str:
    """The problem file of a definition with workloads of its own."""
    folder = tmp_path_factory.mktemp("flashinfer")
    sizes = {RMS_NORM["name"]: [{"batch_size": size} for size in (40000, 3, 5, 700)]}
    return import_all(write_dataset(folder / "data", [RMS_NORM], sizes), folder / "problems", workers)["rms_norm_h64"]


def list_tasks(imported: str) -> list[tuple[Task, str]]:
    kernels = load_tasks(["kernels/row_max_argmax", "kernels/rope"], "c")
    own = get_target("c").read_task(imported, "rms_norm_h64")
    return [(own, RMS_NORM_C), *((task, (PLAIN / f"{task.id}.c").read_text()) for task in kernels)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, imported: str) -> Iterator[Store]:
    """A run that solved all, with measurements of the imported one."""
    solved = list_tasks(imported)
    said = {task.id: [Said(source, right=True)] for task, source in solved}
    with write_run(tmp_path_factory.mktemp("store"), said, [task for task, _ in solved], info("c")) as opened:
        rows = [speed_rows(RUN, speed) for speed in list_speeds(solved[0][0])]
        opened.put([row for group in rows for row in group]).result()
        yield opened


def list_speeds(task: Task) -> list[StoredSpeed]:
    """A publishable one, one that only the process's own clock saw, and a screen."""
    return [
        measure_as(task, "of_3", MeasuringGrade.FULL, Claim.FASTER),
        measure_as(task, "of_5", MeasuringGrade.FULL, Claim.IN_PROCESS),
        measure_as(task, "of_700", MeasuringGrade.SCREEN, None),
    ]


def measure_as(task: Task, shape_set: str, grade: MeasuringGrade, claim: Claim | None) -> StoredSpeed:
    precise = Interval(2.0, 1.9, 2.1)
    ratio = SpeedRatio("plain", precise, None if claim is None else Interval(2.0, 1.5, 2.5), claim)
    measurement = SpeedMeasurement(
        Candidate(RMS_NORM_C).id,
        "0" * 64,
        shape_set,
        {"batch_size": 3},
        "a device",
        "pairs-1",
        "-O3",
        grade,
        TIME,
        Interval(5e5, 4e5, 6e5),
        ratio,
        pairs=100,
        processes=3,
    )
    return StoredSpeed(task.id, None, SpeedReport(measurement, None))


@pytest.fixture(scope="module")
def exported(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportedTraces]:
    with Pool(1) as pool:
        yield export_traces(store, RUN, tmp_path_factory.mktemp("export") / "traces", pool)


def read_lines(path: Path) -> list[Trace]:
    return [read_model(Trace, read_json(line)) for line in path.read_text().splitlines()]


def test_everything_that_is_written_is_of_the_format(exported: ExportedTraces) -> None:
    assert [entry.operator.task.id for entry in exported.entries] == ["rms_norm_h64", "rope", "row_max_argmax"]
    for entry in exported.entries:
        (path,) = exported.folder.glob(f"solutions/*/*/{entry.solution.name}.json")
        assert read_model(FlashinferSolution, read_json(path.read_text())) == entry.solution
        operator, name = path.parts[-3:-1]
        text = (exported.folder / "definitions" / operator / f"{name}.json").read_text()
        assert read_model(Definition, read_json(text)).name == entry.solution.definition
        workloads = read_lines(exported.folder / "workloads" / operator / f"{name}.jsonl")
        traces = read_lines(exported.folder / "traces" / operator / f"{name}.jsonl")
        assert len(workloads) >= 4
        assert {trace.workload.uuid for trace in traces} <= {trace.workload.uuid for trace in workloads}


def test_a_trace_has_the_speed_that_may_be_said_and_no_other(exported: ExportedTraces) -> None:
    traces = {trace.workload.axes["batch_size"]: trace.evaluation for trace in exported.entries[0].traces}
    assert list(traces) == [2500, 3], "the base, where the verdict was made, and what was measured in full"
    base, measured = traces[2500], traces[3]
    assert base is not None
    assert measured is not None
    assert (base.status, base.performance) == ("PASSED", None)
    assert base.correctness is not None
    assert base.correctness.max_absolute_error is not None
    assert base.correctness.max_relative_error is None, "a verdict does not say it"
    assert measured.performance is not None
    figures = measured.performance
    assert (figures.latency_ms, figures.reference_latency_ms, figures.speedup_factor) == (0.5, 1.0, 2.0)
    assert "reference: plain" in measured.log
    assert "faster" in measured.log


LOCAL = """
problem: halves
group: linear algebra
dims: {M: 5, N: 6}
inputs: [{name: x, dtype: fp32, shape: [M, 2*N], data: normal}]
outputs: [{name: y, dtype: fp32, shape: [M]}]
reference: |
  def halves(x):
      N = x.shape[1] // 2
      return sum(x[:, n] for n in range(N))
"""


def test_a_local_variable_that_is_called_like_a_dim_is_none() -> None:
    """No axis of an argument is N long."""
    problem = read_problem(LOCAL).problem
    definition, _ = find_definition(problem, "halves", "linear algebra")
    assert definition.reference.startswith("import torch\n\n\ndef run(x):\n    N = x.shape[1] // 2\n")
    with pytest.raises(UsageError, match="names the dim N, which no argument"):
        find_definition(read_problem(LOCAL.replace("N = x.shape[1] // 2", "pass")).problem, "halves", "")


def test_an_import_of_the_export_is_the_same_problem(
    exported: ExportedTraces, imported: str, tmp_path: Path, workers: ImportWorkers
) -> None:
    again = import_all(exported.folder, tmp_path, workers)
    assert again.keys() == {"rms_norm_h64", "row_max_argmax", "rope"}
    assert hash_problem(read_problem(again["rms_norm_h64"]).problem) == hash_problem(read_problem(imported).problem)
    second = read_problem(again["row_max_argmax"]).problem
    assert second.base_sizes == read_problem((PLAIN.parent / "row_max_argmax.yaml").read_text()).problem.base_sizes


@pytest.mark.skipif(shutil.which("ninja") is None, reason="torch's extension builder needs ninja")
def test_a_solution_runs_from_its_json_alone(exported: ExportedTraces, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    shutil.copytree(exported.folder, folder)
    (rope,) = folder.glob("solutions/*/rope")
    shutil.rmtree(rope)  # two builds of torch's headers are enough
    packages = link_packages(tmp_path / "packages", "torch", "setuptools")
    done = run_python(str(RUNNER), str(folder), cwd=tmp_path, packages=packages)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({row["name"] for row in rows}) >= 2
    assert len(rows) >= 8
    assert all(row["error"] < 2**-7 for row in rows), rows


def test_a_problem_of_another_language_has_no_such_form(store: Store, tmp_path: Path) -> None:
    tasks = load_tasks(["gemm_2"])
    said = {task.id: [Said(task.impl, right=True)] for task in tasks}
    with (
        write_run(tmp_path / "step", said, tasks) as steps,
        Pool(1) as pool,
        pytest.raises(UsageError, match="no form as an extension of torch; try: --library DIR or --dataset DIR"),
    ):
        export_traces(steps, RUN, tmp_path / "out", pool)
