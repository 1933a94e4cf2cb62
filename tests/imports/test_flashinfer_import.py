"""Definitions of FlashInfer Trace become problem files that hold what the definition says, or a row with a reason."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from imports.definitions import MASKED_MAX, RMS_NORM, RMS_NORM_SIZES, SEGMENTS, write_dataset

from opsmith.export.trace_definition import list_freed, list_workloads
from opsmith.imports.flashinfer.folder import import_definitions
from opsmith.imports.flashinfer.formats import Definition, read_model
from opsmith.imports.outcomes import ImportRow
from opsmith.imports.worker import ImportWorkers
from opsmith.imports.writing import ProblemFolder
from opsmith.problems.drawing import draw_data, widen_data
from opsmith.problems.files.reading import read_problem
from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.problem import Problem
from opsmith.problems.reference import compute_expected
from opsmith.problems.size_kinds import Sizes
from opsmith.records import Scrutiny
from opsmith.running import sandbox

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no isolation: {sandbox.missing()}")
BYTES = 1_000_000


@pytest.fixture(scope="module")
def workers() -> Iterator[ImportWorkers]:
    with ImportWorkers() as opened:
        yield opened


def import_all(place: Path, out: Path, workers: ImportWorkers, most_bytes: int = BYTES) -> list[ImportRow]:
    return list(import_definitions(place, ProblemFolder(out), workers, most_bytes, lambda _: None))


def import_one(
    definition: dict[str, Any], folder: Path, workers: ImportWorkers, sizes: list[dict[str, int]] | None = None
) -> tuple[ImportRow, Problem | None]:
    place = write_dataset(folder / "data", [definition], {definition["name"]: sizes or []})
    row = import_all(place, folder / "out", workers)[0]
    return row, read_problem(Path(row.written).read_text()).problem if row.written else None


def test_a_definition_becomes_a_problem_with_its_own_sizes_shrunk(tmp_path: Path, workers: ImportWorkers) -> None:
    row, problem = import_one(RMS_NORM, tmp_path, workers, RMS_NORM_SIZES)
    assert problem is not None
    assert (row.problem, row.refusal, row.warnings) == ("rms_norm_h64", "", ())
    assert problem.sizes == {"batch_size": 2500}, "halved from 40000 until a megabyte holds it"
    assert row.bytes_from == 2 * 40000 * 64 * 2 + 128
    assert [str(dim) for dim in problem.inputs[0].type.shape] == ["batch_size", "64"], "constants do not vary"
    assert problem.scalars == {"eps": 1e-5}
    assert problem.accumulation == "fp32"
    assert list(problem.bench.values()) == [{"batch_size": 3}, {"batch_size": 5}, {"batch_size": 700}]
    assert problem.source is not None
    assert json.loads(problem.source.text) == RMS_NORM
    assert problem.source.arguments == ("hidden_states", "weight", "eps")
    assert problem.source.sizes == {"batch_size": 40000}


def test_expected_values_are_float64_whatever_types_the_reference_names(tmp_path: Path, workers: ImportWorkers) -> None:
    _, problem = import_one(RMS_NORM, tmp_path, workers, RMS_NORM_SIZES[1:])
    assert problem is not None
    assert "torch.float32" not in problem.reference
    assert "torch.bfloat16" not in problem.reference
    bindings = widen_data(problem, draw_data(problem, {}, 0), 0)
    ((expected,),) = compute_expected(problem, bindings)
    x, weight = bindings.input_data["hidden_states"], bindings.input_data["weight"]
    exact = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * weight
    assert (expected - exact).abs().max() < 1e-12
    ((narrow,),) = compute_expected(problem, draw_data(problem, {}, 0))
    assert str(narrow.dtype) == "torch.bfloat16"


def test_pointers_and_indices_stay_within_what_they_point_to(tmp_path: Path, workers: ImportWorkers) -> None:
    row, problem = import_one(SEGMENTS, tmp_path, workers)
    assert problem is not None
    assert list(row.warnings) == ["indices: randint(0, rows), the largest range tried in which the reference runs"]
    assert problem.constraints == ("len_indptr == state_ + 1",), "the constants' holds, the pointers' is in the data"
    for seed in range(5):
        data = draw_data(problem, {"total": 11}, seed).input_data
        assert (data["indptr"][0], data["indptr"][-1]) == (0, 11)
        assert bool((data["indptr"].diff() >= 0).all())
        assert 0 <= int(data["indices"].min()) <= int(data["indices"].max()) < problem.sizes["rows"]
    assert [output.types[0].shape for output in problem.outputs][1] == (), "a null shape is a single number"


def test_all_sizes_keep_the_constraints(tmp_path: Path, workers: ImportWorkers) -> None:
    _, problem = import_one(MASKED_MAX, tmp_path, workers)
    assert problem is not None
    pool: HiddenPool[Sizes] = HiddenPool(problem, lambda sizes, _: sizes)
    hidden = [sizes for number in range(10) for sizes in pool.list_materials(Scrutiny(str(number)))]
    stated = [problem.sizes, *problem.shapes.values(), *problem.bench.values()]
    assert hidden
    assert len(problem.shapes) >= 2
    assert len(problem.bench) >= 3
    assert all(sizes["n"] % 8 == 0 and sizes["m"] <= sizes["n"] for sizes in [*stated, *hidden])


CAUSAL: dict[str, Any] = {
    "name": "causal_sums",
    "op_type": "ragged",
    "axes": {"n": {"type": "var"}, "p": {"type": "var"}, "total_q": {"type": "var"}, "total_k": {"type": "var"}},
    "constraints": ["p == n + 1", "total_q == q_ptr[-1].item()", "total_k == int(k_ptr[-1])", "total_k == 2 * total_q"],
    "inputs": {
        "q": {"shape": ["total_q"], "dtype": "float32"},
        "k": {"shape": ["total_k"], "dtype": "float32"},
        "q_ptr": {"shape": ["p"], "dtype": "int32"},
        "k_ptr": {"shape": ["p"], "dtype": "int32"},
    },
    "outputs": {"y": {"shape": ["total_q"], "dtype": "float32"}},
    "reference": (
        "import torch\ndef run(q, k, q_ptr, k_ptr):\n    y = torch.zeros_like(q)\n"
        "    for i in range(len(q_ptr) - 1):\n"
        "        keys = k[int(k_ptr[i]):int(k_ptr[i + 1])]\n"
        "        y[int(q_ptr[i]):int(q_ptr[i + 1])] = q[int(q_ptr[i]):int(q_ptr[i + 1])] * keys.mean()\n"
        "    return y\n"
    ),
}


def test_pointers_are_even_where_no_others_suit_the_reference(tmp_path: Path, workers: ImportWorkers) -> None:
    """Here the mean of no keys is no number."""
    row, problem = import_one(CAUSAL, tmp_path, workers)
    assert problem is not None
    assert [warning.partition(";")[0] for warning in row.warnings] == ["pointers are evenly spread"]
    data = draw_data(problem, {}, 3).input_data
    assert int(data["q_ptr"].diff().min()) >= 1
    assert (int(data["q_ptr"][-1]), int(data["k_ptr"][-1])) == (problem.sizes["total_q"], problem.sizes["total_k"])


def test_constants_that_make_tensors_too_large_vary(tmp_path: Path, workers: ImportWorkers) -> None:
    """What the reference asserts of them is left out; the largest goes first, and no more than are needed."""
    gemm = {
        "name": "gemm",
        "op_type": "gemm",
        "axes": {"m": {"type": "var"}, "n": {"type": "const", "value": 512}, "k": {"type": "const", "value": 8192}},
        "inputs": {"a": {"shape": ["m", "k"], "dtype": "float32"}, "b": {"shape": ["n", "k"], "dtype": "float32"}},
        "outputs": {"c": {"shape": ["m", "n"], "dtype": "float32"}},
        "reference": "def run(a, b):\n    m, k = a.shape\n    assert k == 8192\n    return a @ b.T\n",
    }
    row, problem = import_one(gemm, tmp_path, workers, [{"m": size} for size in (3, 4, 5, 6)])
    assert problem is not None
    assert row.warnings == ("constant axes vary, for their tensors are too large: k = 8192",)
    assert problem.sizes == {"m": 3, "k": 256}
    assert [str(dim) for dim in problem.inputs[1].type.shape] == ["512", "k"]
    assert problem.source is not None
    assert problem.source.sizes == {"m": 3, "k": 8192}
    definition = read_model(Definition, json.loads(problem.source.text))
    workloads = list_workloads(problem, definition)
    assert all(row.axes.keys() == {"m"} for row in workloads.values()), "a workload has the axes that vary there"
    assert list_freed(problem, definition) == {"k": 8192}


def change(definition: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**definition, **changes}


REFUSED = {
    "a 4-bit float": (
        change(RMS_NORM, inputs={**RMS_NORM["inputs"], "weight": {"shape": ["hidden_size"], "dtype": "float4_e2m1"}}),
        "weight: dtype float4_e2m1",
    ),
    "a foreign package": (change(RMS_NORM, reference="import os\ndef run(a, b, c):\n    return a\n"), "imports os"),
    "code at top level": (
        change(RMS_NORM, reference="open('/tmp/opsmith-was-here', 'w')\ndef run(a, b, c):\n    return a\n"),
        "line 1: `open('/tmp/opsmith-was-here', 'w')` would run",
    ),
    "no run": (change(RMS_NORM, reference="def go(a, b, c):\n    return a\n"), "no function run"),
    "other arguments": (change(RMS_NORM, reference="def run(a):\n    return a\n"), "run(a): expected hidden_states"),
    "no Python": (change(RMS_NORM, reference="def run(a:\n"), "line 1: a syntax error"),
    "random": (
        change(RMS_NORM, reference="import torch\ndef run(a, b, eps):\n    return a + torch.randn_like(a)\n"),
        "random",
    ),
    "a crash": (
        change(RMS_NORM, reference="import ctypes\ndef run(a, b, eps):\n    return ctypes.string_at(0)\n"),
        "imports ctypes",
    ),
    "an exit": (
        change(RMS_NORM, reference="import torch\ndef run(a, b, eps):\n    torch.os._exit(7)\n"),
        "the process that ran its code ended with status 7",
    ),
    "a file": (
        change(RMS_NORM, reference="def run(a, b, eps):\n    open('/tmp/opsmith-was-here', 'w')\n    return a\n"),
        "line 2: calls open",
    ),
    "a file behind torch's back": (
        change(
            RMS_NORM,
            reference="import torch\ndef run(a, b, eps):\n    torch.os.open('/tmp/opsmith-was-here', 65)\n    return a\n",
        ),
        "PermissionError",
    ),
    "constraints that no sizes keep": (change(MASKED_MAX, constraints=["m < n", "n < m"]), "no sizes were found"),
    "an unknown axis": (change(MASKED_MAX, axes={"m": {"type": "var"}}), "x: its axis 'n' is none of m"),
    "too large at constants that are needed": (
        change(
            RMS_NORM,
            axes={**RMS_NORM["axes"], "hidden_size": {"type": "const", "value": 2**22}},
            reference="def run(a, b, eps):\n    return a.view(-1, 2**22) * b\n",
        ),
        "invalid for input of size",
    ),
    "another shape": (
        change(RMS_NORM, reference="def run(a, b, eps):\n    return a[:, :3]\n"),
        "a tensor of shape",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_imported_is_a_row_with_the_reason(name: str, tmp_path: Path, workers: ImportWorkers) -> None:
    definition, words = REFUSED[name]
    row, problem = import_one(definition, tmp_path, workers)
    assert problem is None
    assert words in row.refusal
    assert "\n" not in row.refusal
    assert not Path("/tmp/opsmith-was-here").exists()


def test_nothing_stops_at_one_file_and_nothing_is_overwritten(tmp_path: Path, workers: ImportWorkers) -> None:
    place = write_dataset(tmp_path / "data", [MASKED_MAX, change(RMS_NORM, reference="(")])
    (place / "definitions" / "broken.json").write_text("[" * 100_000)
    rows = import_all(place, tmp_path / "out", workers)
    assert [bool(row.problem) for row in rows] == [False, True, False]
    assert rows == import_all_again(place, tmp_path / "out", workers, rows), "a second import writes the same bytes"
    Path(rows[1].written).write_text("problem: another\n")
    again = import_all(place, tmp_path / "out", workers)
    assert "is there already and differs" in again[1].refusal
    assert Path(rows[1].written).read_text() == "problem: another\n"


def import_all_again(place: Path, out: Path, workers: ImportWorkers, rows: list[ImportRow]) -> list[ImportRow]:
    """With the seconds of the first time, which alone may differ."""
    from dataclasses import replace

    again = import_all(place, out, workers)
    return [replace(row, seconds=first.seconds) for row, first in zip(again, rows, strict=True)]
