"""`opsmith bench languages`: what wrong programs say of themselves, sizes of extras, and how rows are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith_lab.bench.extras import list_requirements, measure_extra
from opsmith_lab.bench.language_table import list_notes, write_markdown
from opsmith_lab.bench.languages import LanguageRow, list_wrong_programs, read_wrong_program

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("name", "text", "problem", "stage"),
    [
        ("a__b.cu", "// problem: softmax\n// refused: RUN race on shared memory\n", "softmax", "RUN"),
        ("row_sum__tail.wgsl", "// refused: MATCH\n", "row_sum", "MATCH"),
        ("gemm__bound.c", "// wrong: bound: one row less; refused at PARSE\nint x;\n", "gemm", "PARSE"),
    ],
)
def test_a_wrong_program_says_where_it_fails(tmp_path: Path, name: str, text: str, problem: str, stage: str) -> None:
    (tmp_path / name).write_text(text)
    program = read_wrong_program(tmp_path / name)
    assert (program.problem, program.stage, program.source) == (problem, stage, text)


def test_a_program_that_does_not_say_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("// a program\n" * 10 + "// refused: RUN\n")
    with pytest.raises(UsageError, match="given no stage"):
        list(list_wrong_programs([tmp_path], ".cu"))
    with pytest.raises(UsageError, match="no such folder"):
        list(list_wrong_programs([tmp_path / "none"], ".cu"))


def test_all_wrong_programs_in_c_say_it() -> None:
    programs = list(list_wrong_programs([FIXTURES / "kernels" / "wrong"], ".c"))
    assert len(programs) > 100
    assert {program.stage for program in programs} == {"PARSE", "COMPILE", "RUN", "MATCH"}


def test_an_extra_is_what_it_adds() -> None:
    assert "tree-sitter-c" in list_requirements("c")
    assert "torch" in list_requirements("")
    assert measure_extra("no-such-extra") is None


def test_rows_say_what_was_seen_and_what_was_not() -> None:
    rows = [
        LanguageRow("c", "c-1", "", 24, 24, 102, 101, 1, 201.4, 250.0, 2_840_000, ("c a.c: passed at MATCH",)),
        LanguageRow("wgsl", lack="wgpu is not installed"),
    ]
    page = write_markdown(rows, "opsmith bench languages", "a processor, 2 cores")
    assert "| c | 24 of 24 | 101 of 102 | 0.8 % of 126 | 201 ms | 250 ms | 2.8 MB |" in page
    assert "| wgsl | – | – | – | – | – | – |" in page
    assert list(list_notes(rows)) == ["c a.c: passed at MATCH", "wgsl: not judged: wgpu is not installed"]
