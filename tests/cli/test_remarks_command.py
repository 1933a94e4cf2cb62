"""`opsmith note`, `tag` and `archive`: what people say of a run, from the command line to its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from store.test_store import RUN, whole_run

from opsmith.store import Store
from opsmith.store.rows import RunInfo, run_rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "runs") as store:
        store.put(whole_run()).result()
        store.put(run_rows(RunInfo("other-s1-4567", "4567", "tiny", False, "tiny", 1, {}, {}), [])).result()
    return tmp_path


def test_a_note_grows_by_paragraphs_and_is_replaced_only_when_that_is_said(opsmith, folder: Path) -> None:
    assert opsmith("note", "tiny", "look at\nround 2").code == 0
    assert opsmith("note", "tiny", "seen").out.endswith("note  look at\n      round 2\n      \n      seen\n")
    assert json.loads(opsmith("note", "tiny", "--json").out) == {
        "run": RUN.id,
        "note": "look at\nround 2\n\nseen",
        "tags": [],
    }
    assert "look at" in opsmith("runs").out
    assert opsmith("note", "tiny", "--replace").code == 2
    assert opsmith("note", "tiny", "new\x1b[31m", "--replace").out.endswith("note  new\ufffd[31m\n")
    assert opsmith("note", "tiny", "", "--replace").out.endswith("note  -\n")
    assert opsmith("note", "nobody", "x").code == 2


def test_tags_and_the_archive_say_which_runs_are_listed(opsmith, folder: Path) -> None:
    assert opsmith("tag", "tiny", "+good", "fig-2", "-bad").out == f"run   {RUN.id}\ntags  fig-2 good\nnote  -\n"
    assert opsmith("tag", "tiny", "-fig-2").out.splitlines()[1] == "tags  good"
    assert opsmith("tag", "tiny", "+two words").code == 2
    listed = [json.loads(opsmith("runs", "--json", *tags).out) for tags in ((), ("--tag", "good"), ("--tag", "bad"))]
    assert [len(rows) for rows in listed] == [2, 1, 0]
    assert listed[1][0]["tags"] == ["good"]
    assert opsmith("runs", "--tag", "bad").err == "no run has the tag bad\n"
    assert opsmith("archive", "tiny").code == 0
    shown = opsmith("runs")
    assert (RUN.id in shown.out, "other-s1-4567" in shown.out) == (False, True)
    assert "archived, not listed: 1" in shown.err
    assert RUN.id in opsmith("runs", "--tag", "archived").out
    assert opsmith("archive", "tiny", "--undo").code == 0
    assert RUN.id in opsmith("runs").out


def test_a_report_begins_with_what_is_said_of_its_run(opsmith, folder: Path) -> None:
    opsmith("note", "tiny", "<b>look</b> at *it*")
    opsmith("tag", "tiny", "+good")
    page = opsmith("report", "tiny", "-o", "-").out
    assert '<div class="said">&lt;b&gt;look&lt;/b&gt; at *it*</div>' in page
    assert '<span class="tag">good</span>' in page
    text = opsmith("report", "tiny", "--format", "md", "-o", "-").out
    assert "Tags: good.\n" in text
    assert "\\*it\\*" in text
