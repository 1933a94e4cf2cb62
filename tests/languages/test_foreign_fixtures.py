"""What the imports make of files in foreign formats: the rows that are expected, and problems that mean the same."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from languages.originals import run_original
from opsmith.problems.drawing import draw_data, widen_data
from opsmith.problems.files.reading import read_problem
from opsmith.problems.problem import Problem
from opsmith.problems.reference import clone_names, run_reference
from opsmith.running import sandbox

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no isolation: {sandbox.missing()}")

FIXTURES = Path(__file__).parents[1] / "fixtures"
IMPORTED, DEGENERATE, REFUSED = "imported", "degenerate", "refused"
SECONDS = 300
CAST = {"fp8_block_gemm_n256_k512"}  # its result is rounded to the declared type, which only its float64 reference has
STATED = {"level3/6_Patch_attention_with_einops.py": {"image_size": 48}}  # the import's own, which no size of it tells


@dataclass(frozen=True)
class Expectation:
    """What must come of one file."""

    result: str
    words: tuple[str, ...] = ()  # in the reason of a refusal, or in warnings
    needs: tuple[str, ...] = ()  # packages without which it is refused, with their names


@cache
def read_expectations(format_: str) -> dict[str, Expectation]:
    table = tomllib.loads((FIXTURES / format_ / "expected.toml").read_text("utf-8"))
    return {
        name: Expectation(row["result"], tuple(row.get("words", ())), tuple(row.get("needs", ())))
        for name, row in table.items()
    }


@pytest.fixture(scope="module", params=["kernelbench", "flashinfer"])
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ForeignImport:
    folder = tmp_path_factory.mktemp(request.param)
    words = ["import", request.param, str(FIXTURES / request.param), "--out", str(folder), "--json"]
    words += ["--seconds", "25"] if request.param == "kernelbench" else []  # one of them never ends
    command = [sys.executable, "-m", "opsmith", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=folder, check=False)
    assert result.stdout, result.stderr
    return ForeignImport(request.param, folder, json.loads(result.stdout))


@dataclass(frozen=True)
class ForeignImport:
    """One import of all fixtures of a format."""

    format: str
    folder: Path
    report: dict[str, Any]

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        """By the names of `expected.toml`."""
        return {self._name_row(row["file"]): row for row in self.report["files"]}

    def _name_row(self, file: str) -> str:
        return file if self.format == "kernelbench" else Path(file).stem

    def read_problems(self) -> dict[str, Problem]:
        """Those that were written, by the same names."""
        rows = {name: row for name, row in self.rows.items() if row["problem"]}
        texts = {name: (self.folder / row["written"]).read_text("utf-8") for name, row in rows.items()}
        return {name: read_problem(text, rows[name]["problem"]).problem for name, text in texts.items()}


def test_every_file_becomes_what_is_expected(imported: ForeignImport) -> None:
    expected = read_expectations(imported.format)
    assert imported.rows.keys() == expected.keys()
    wrong = {name: row for name, row in imported.rows.items() if not is_as_expected(row, expected[name])}
    assert not wrong, json.dumps(wrong, indent=2)


def is_as_expected(row: dict[str, Any], expected: Expectation) -> bool:
    missing = [package for package in expected.needs if find_spec(package) is None]
    is_refused = expected.result == REFUSED or bool(missing)
    warnings = "; ".join(row["warnings"])
    text = (row["refusal"] if is_refused else warnings).casefold()
    has_words = all(word.casefold() in text for word in (*expected.words, *missing))
    is_degenerate = "degenerate" in warnings
    return has_words and bool(row["refusal"]) == is_refused and is_degenerate == (expected.result == DEGENERATE)


def test_refusals_have_reasons_of_their_own() -> None:
    """Each of the modules is refused for another reason."""
    refused = [row.words for row in read_expectations("kernelbench").values() if row.result == REFUSED]
    assert len(refused) >= 10
    assert len({*refused}) == len(refused)


def test_a_problem_computes_what_its_source_computes(imported: ForeignImport) -> None:
    """At the base sizes and at every shape set, on the same data: the source is executed as it is."""
    for name, problem in imported.read_problems().items():
        for label, sizes in {"base": {}, **problem.shapes}.items():
            bindings = draw_data(problem, sizes, 7)
            expected = run_original(problem, bindings, STATED.get(name, {}))
            own = widen_data(problem, bindings, 7) if name in CAST else bindings
            values = [tensor for output in run_reference(problem, own, clone_names(own)) for tensor in output]
            assert [tensor.shape for tensor in values] == [tensor.shape for tensor in expected], (name, label)
            agree = partial(torch.allclose, rtol=2**-8 if name in CAST else 1e-3, atol=1e-4, equal_nan=True)
            assert all(map(agree, map(torch.Tensor.double, values), map(torch.Tensor.double, expected))), (name, label)


def test_imported_sizes_are_small_and_vary(imported: ForeignImport) -> None:
    for name, problem in imported.read_problems().items():
        assert problem.count_numbers(problem.base_sizes) <= 16_000_000 // 4, name
        assert problem.shapes, name
        assert len(problem.bench) >= 3, name
