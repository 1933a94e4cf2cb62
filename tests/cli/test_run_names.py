"""`run --name` and `tag --name`: what people call a run stands for its id, and is no part of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from store.test_store import RUN, whole_run

from opsmith.errors import UsageError
from opsmith.learn.identity import plain_settings
from opsmith.learn.loop import improve
from opsmith.store import Store
from opsmith.store.deletion import referring_runs
from opsmith.store.notes import name_run
from opsmith.store.rows import RunInfo, run_rows

OTHER = RunInfo("other-s1-4567", "4567", "tiny", False, "tiny", 1, {"tokens_from": "fig2"}, {})
SMALL = SETTINGS.replace(samples=2, max_rounds=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store.open(tmp_path / "runs") as store:
        store.put(whole_run()).result()
        store.put(run_rows(OTHER, [])).result()
    return tmp_path


def test_a_named_run_is_found_and_shown_by_its_name(opsmith, folder: Path) -> None:
    assert opsmith("tag", RUN.id, "--name", "fig2").out == f"run   {RUN.id}\nname  fig2\ntags  -\nnote  -\n"
    for command in (("show", "fig2"), ("runs",), ("report", "fig2", "--format", "md", "-o", "-")):
        done = opsmith(*command)
        assert (done.code, "fig2" in done.out, RUN.id in done.out) == (0, True, True), command
    for command in (("spent", "fig2"), ("tag", "fig2"), ("compare", "fig2", OTHER.id)):
        assert opsmith(*command).code == 0
    assert json.loads(opsmith("show", "fig2", "--json").out)["name"] == "fig2"
    assert [row["info"].get("name") for row in json.loads(opsmith("runs", "--json").out)] == ["fig2", None]
    assert "fig2 (tiny-s0-0123, " in opsmith("show", "nothing").err
    assert opsmith("tag", "fig2", "--name", "").out.splitlines()[1] == "tags  -"
    assert opsmith("show", "fig2").code == 2


def test_a_name_belongs_to_one_run_and_is_a_word(opsmith, folder: Path) -> None:
    opsmith("tag", RUN.id, "--name", "fig2")
    for name, words in (("fig2", f"run {RUN.id} is called so"), (RUN.id, "is called so"), ("a/b", "expected at most")):
        done = opsmith("tag", OTHER.id, "--name", name)
        assert (done.code, words in done.err) == (2, True), name
    opsmith("tag", "fig2", "--name", "fig3")
    assert opsmith("tag", OTHER.id, "--name", "fig2").code == 0
    with Store.open(folder / "runs") as store:
        assert (store.find_run("fig3"), store.find_run("fig2")) == (RUN.id, OTHER.id)
        assert referring_runs(store, RUN.id) == [OTHER.id]  # it was called so when the other one began


def test_a_run_is_named_before_anything_is_asked_and_its_id_stays(tmp_path: Path) -> None:
    named = SMALL.replace(name="first")
    assert plain_settings(named.replace(name=None)) == plain_settings(SMALL)
    assert "name" not in plain_settings(SMALL)
    with Store.open(tmp_path) as store:
        result = improve(TASKS[:1], TinyModel(), named, store, judge=InProcess())
        assert (result.name, store.find_run("first")) == ("first", result.run)
        assert improve(TASKS[:1], TinyModel(), SMALL, store, judge=InProcess()).run == result.run
        with pytest.raises(UsageError, match="is called so"):
            improve(TASKS[:1], TinyModel(), named.replace(seed=9), store, judge=InProcess())
        assert store.list_ids() == [result.run]
        name_run(store, result.run, "again")
        assert store.read_names() == {result.run: "again"}


def test_one_run_is_not_compared_with_itself(opsmith, folder: Path) -> None:
    opsmith("tag", RUN.id, "--name", "fig2")
    done = opsmith("compare", RUN.id, "fig2", OTHER.id)
    assert done.code == 2
    assert f"given {RUN.id} and fig2, which are one run, {RUN.id}; expected different ones" in done.err
