"""`opsmith bench languages`: sizes of extras, and how rows are written."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from opsmith.errors import UsageError
from opsmith_lab.bench.extras import list_requirements, measure_extra
from opsmith_lab.bench.language_table import list_notes, write_markdown
from opsmith_lab.bench.languages import LanguageRow, add_rows

SURPRISES = ("c softmax: refused at MATCH",)


def test_an_extra_is_what_it_adds() -> None:
    assert "tree-sitter-c" in list_requirements("c")
    assert "torch" in list_requirements("")
    assert measure_extra("no-such-extra") is None


def test_rows_say_what_was_seen_and_what_was_not() -> None:
    rows = [
        LanguageRow("c", "c-1", "", 24, 23, 60, 60, 1, 201.4, 250.0, 2_840_000, 24, 2400, 9000, 300, SURPRISES),
        LanguageRow("wgsl", lack="wgpu is not installed"),
    ]
    page = write_markdown(rows, "opsmith bench languages", "a processor, 2 cores")
    assert "| c | 23 of 24 | 60 of 60 | 1.2 % of 84 | 201 ms | 250 ms | 2.8 MB | 24 | 2,400 | 9,000 | 300 |" in page
    assert f"| wgsl |{' – |' * 10}" in page
    assert list(list_notes(rows)) == ["c softmax: refused at MATCH", "wgsl: not judged: wgpu is not installed"]


def test_a_language_that_was_judged_elsewhere_has_its_row(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.write_text(
        json.dumps({"languages": [asdict(LanguageRow("c", passed=1)), asdict(LanguageRow("tvm", passed=2))]})
    )
    rows = add_rows([LanguageRow("c", passed=3), LanguageRow("tvm", lack="no TVM")], [there])
    assert [(row.language, row.passed) for row in rows] == [("c", 3), ("tvm", 2)]
    there.write_text("{}")
    with pytest.raises(UsageError, match="expected what `opsmith bench languages --json` printed"):
        add_rows([], [there])
