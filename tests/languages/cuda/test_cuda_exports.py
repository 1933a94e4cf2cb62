"""Right programs in CUDA taken away: modules for KernelBench and solutions for FlashInfer Trace, as far as a machine
without a GPU can tell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from export.installs import link_packages, run_python
from export.stores import RUN, Said, info, write_run

from opsmith.export.flashinfer import ExportedTraces, export_traces
from opsmith.export.torch_modules import ExportedModules, export_torch_modules
from opsmith.imports.flashinfer.folder import import_definitions
from opsmith.imports.flashinfer.formats import Definition, FlashinferSolution, read_json, read_model
from opsmith.imports.worker import ImportWorkers
from opsmith.imports.writing import ProblemFolder
from opsmith.judging.pool import Pool
from opsmith.problems.files.reading import read_problem
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.protocols import Equipped, Stating

KERNELS = ("mean_variance", "row_max_argmax", "top_k")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A run that solved all with the plain programs."""
    target = get_target("cuda")
    if isinstance(target, Equipped) and (lack := target.explain_lack()):
        pytest.skip(lack)
    tasks = load_tasks(KERNELS, "cuda")
    said = {task.id: [Said(task.impl, right=True)] for task in tasks}
    with write_run(tmp_path_factory.mktemp("store"), said, list(tasks), info("cuda")) as opened:
        yield opened


@pytest.fixture(scope="module")
def modules(store: Store, tmp_path_factory: pytest.TempPathFactory) -> ExportedModules:
    with Pool(1) as pool:
        return export_torch_modules(store, RUN, tmp_path_factory.mktemp("export") / "modules", pool)


@pytest.fixture(scope="module")
def traces(store: Store, tmp_path_factory: pytest.TempPathFactory) -> ExportedTraces:
    with Pool(1) as pool:
        return export_traces(store, RUN, tmp_path_factory.mktemp("export") / "traces", pool)


def test_a_module_says_what_it_needs_where_there_is_no_gpu(modules: ExportedModules, tmp_path: Path) -> None:
    assert sorted(modules.modules) == sorted(KERNELS)
    readme = (modules.folder / "README.md").read_text()
    assert "which nvcc compiles" in readme
    assert "$ python harness.py --device cuda" in readme
    text = (modules.folder / "mean_variance.py").read_text()
    assert "`ModelNew` around a kernel in CUDA" in text
    assert "means = torch" not in text, "workspaces are allocated by the host code in C++"
    result = run_python(
        str(modules.folder / "harness.py"),
        "--json",
        cwd=modules.folder,
        packages=link_packages(tmp_path / "p", "torch"),
    )
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.returncode, len(rows)) == (1, len(KERNELS))
    assert all("given no GPU that torch can use; expected one of NVIDIA" in row["message"] for row in rows), rows


def test_solutions_are_of_the_format_and_name_their_language(traces: ExportedTraces) -> None:
    assert [entry.operator.task.id for entry in traces.entries] == ["mean_variance", "row_max_argmax"]
    assert "no axis of an input or output is N alone" in traces.without_form["top_k"]
    for entry in traces.entries:
        (path,) = traces.folder.glob(f"solutions/*/*/{entry.solution.name}.json")
        solution = read_model(FlashinferSolution, read_json(path.read_text()))
        assert solution == entry.solution
        spec = solution.spec
        assert (spec.language, spec.target_hardware, spec.entry_point) == ("cuda", ("cuda",), "main.cpp::run")
        assert spec.destination_passing_style
        assert spec.dependencies == ("torch", "nvcc")
        assert [source.path for source in solution.sources] == ["main.cpp", "kernel.cu"]
        assert entry.operator.source.strip() in solution.sources[1].content, "the kernels as they were judged"
        (trace,) = entry.traces
        assert trace.evaluation is not None
        assert trace.evaluation.environment.hardware.startswith("emulated on ")
        assert trace.evaluation.performance is None


def test_an_import_of_the_export_asks_for_the_same_problem(traces: ExportedTraces, tmp_path: Path) -> None:
    with ImportWorkers() as workers:
        folder = ProblemFolder(tmp_path)
        rows = list(import_definitions(traces.folder, folder, workers, 1_000_000, lambda _: None))
    problems = {row.problem: read_problem(Path(row.written).read_text()).problem for row in rows}
    target = get_target("cuda")
    assert isinstance(target, Stating)
    for entry in traces.entries:
        text = next(traces.folder.glob(f"definitions/*/{entry.definition.name}.json")).read_text()
        assert read_model(Definition, read_json(text)) == entry.definition
        own, again = target.find_problem(entry.operator.task), problems[entry.definition.name]
        assert again.base_sizes == own.base_sizes
        assert [tensor.type for tensor in again.tensors] == [tensor.type for tensor in own.tensors]
        assert [output.types for output in again.outputs] == [output.types for output in own.outputs]
