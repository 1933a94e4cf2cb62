"""A report in other forms: a table of all samples, Markdown, and figures for papers."""

import csv
import io
import sys
from dataclasses import replace

import pytest
from pyarrow import parquet
from report.conftest import HOSTILE, answer

from opsmith.errors import UsageError
from opsmith.report.files import FORMATS, default_path, write_report
from opsmith.report.markdown import escape_markup, fence_text, write_markdown
from opsmith.report.rows import COLUMNS, sample_rows, to_csv
from opsmith.store import rows
from opsmith.store.rows import SampleKey


def test_the_csv_holds_every_sample(store, runs):
    read = list(csv.DictReader(io.StringIO(to_csv(store, runs))))
    samples = [row for run in runs for row in store.list_samples(run)]
    assert [row["sample"] for row in read] == [row.id for row in samples]
    assert sum(row["passed"] == "True" for row in read) == sum(
        tally.right for run in runs for tally in store.read_tallies(run)
    )
    assert sum(int(row["input_tokens"]) for row in read) == sum(store.sum_usage(run).input_tokens for run in runs)
    assert sum(float(row["cost_usd"]) for row in read) == pytest.approx(
        sum(store.sum_usage(run).cost_usd for run in runs)
    )
    assert {row["is_language_model"] for row in read} == {"False"}


def test_parquet_holds_the_same_and_the_programs(store, runs):
    path = write_report(store, runs, "parquet")[0]
    table = parquet.read_table(path)
    assert table.column_names == list(COLUMNS)
    assert table.to_pylist() == list(sample_rows(store, runs))
    assert any(row["program"] for row in table.to_pylist())


def test_without_pyarrow_parquet_says_what_to_install(store, runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"opsmith\[data\]"):
        write_report(store, runs, "parquet")
    assert not list(default_path(store, runs, "parquet").parent.glob("*parquet*"))


def test_a_sample_without_a_verdict_is_a_row_without_an_outcome(hostile):
    found = {row["number"]: row for row in sample_rows(hostile[0], [hostile[1]]) if row["task"] == "attn_0"}
    assert (found[3]["outcome"], found[3]["passed"], found[3]["program"]) == (None, None, None)
    assert (found[2]["outcome"], found[2]["passed"], found[2]["program"]) == ("refused", False, None)
    assert found[1]["input_tokens"] == 20  # the guardian's too
    assert found[0]["cost_usd"] is None  # no known price


def test_a_spreadsheet_computes_nothing(hostile):
    store, run = hostile
    task = replace(store.read_tasks(run)[0], id="=HYPERLINK(1)")
    info = rows.RunInfo("open-s0-1", "1", "@model", True, "step", 0, {}, {})
    store.put(rows.run_rows(info, [task]))
    store.put([rows.round_row(info.id, rows.RoundInfo(0, 0, "none", (), (task.id,), 1))])
    answer(store, SampleKey(info.id, 0, task.id, 1.0, 0), "proposer")
    store.flush()
    (row,) = csv.DictReader(io.StringIO(to_csv(store, [info.id])))
    assert (row["task"], row["model"]) == ("'=HYPERLINK(1)", "'@model")


def test_markdown_holds_every_task_and_its_program(store, runs):
    text = write_markdown(store, runs)
    assert "at its best temperature" in text
    assert "over all rounds and temperatures" in text
    for kept in store.read_experiences(runs[0]):
        assert f"### {escape_markup(kept.experience.task.id)}\n" in text
        assert kept.experience.source.strip() in text
    assert text.count("not a language model") >= 3
    sections = [section.partition("## Kept")[0] for section in text.split("## Tasks")[1:]]
    widths = {line.count(" | ") for line in "".join(sections).splitlines() if line.startswith("| sum\\_")}
    assert widths == {5}


def test_markdown_escapes_texts_from_outside(hostile):
    text = write_markdown(*[hostile[0], [hostile[1]]])
    assert "<script" not in text.replace("\\<script", "")
    assert "\u202e" not in text
    assert escape_markup("a|b\n`c`") == "a\\|b \\`c\\`"
    assert HOSTILE not in text


def test_a_fence_is_longer_than_those_in_the_text():
    assert next(fence_text("```\nx")) == "````"


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_written_beside_the_store(store, runs, kind):
    for path in write_report(store, runs[:1], kind):
        assert path.is_relative_to(default_path(store, runs[:1], kind).parent)
        assert path.stat().st_size > 100
        assert not path.with_name(f"{path.name}.part").exists()
