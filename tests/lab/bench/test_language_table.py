"""`opsmith bench languages`: sizes of extras, and how rows are written."""

from __future__ import annotations

from opsmith_lab.bench.extras import list_requirements, measure_extra
from opsmith_lab.bench.language_table import list_notes, write_markdown
from opsmith_lab.bench.languages import LanguageRow


def test_an_extra_is_what_it_adds() -> None:
    assert "tree-sitter-c" in list_requirements("c")
    assert "torch" in list_requirements("")
    assert measure_extra("no-such-extra") is None


def test_rows_say_what_was_seen_and_what_was_not() -> None:
    rows = [
        LanguageRow("c", "c-1", "", 24, 23, 1, 201.4, 250.0, 2_840_000, ("c softmax: refused at MATCH",)),
        LanguageRow("wgsl", lack="wgpu is not installed"),
    ]
    page = write_markdown(rows, "opsmith bench languages", "a processor, 2 cores")
    assert "| c | 23 of 24 | 4.2 % of 24 | 201 ms | 250 ms | 2.8 MB |" in page
    assert "| wgsl | – | – | – | – | – |" in page
    assert list(list_notes(rows)) == ["c softmax: refused at MATCH", "wgsl: not judged: wgpu is not installed"]
