"""Data for training: which replies are in it, what a row holds, how tasks are split, and that Parquet reads it."""

import json
from dataclasses import replace
from importlib import util

import pytest
from export.stores import OLD, RUN, Said, info, write_run
from optimised_store import FASTER, OPTIMISED, SUGGESTION, add_optimisation, write_functional
from pyarrow import parquet
from tiny_target import Tiny, register, tiny_task

from opsmith.errors import UsageError
from opsmith.export import dataset
from opsmith.export.dataset import export_dataset
from opsmith.export.examples import MIXED, TEST, TRAIN, split_of
from opsmith.export.rows import COLUMNS
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import (
    MeasuringGrade,
    SpeedMeasurement,
    SpeedRatio,
    SpeedReport,
    read_report,
)
from opsmith.records import TIME, Boundary, Candidate, Diagnostic, Outcome, Stage, Verdict
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows
from opsmith.store.verdicts import list_judgements, reverdict_rows
from opsmith.suites import load_tasks

register()


def task_in(split: str, solution: str, name: str):
    """A task whose content falls into that split."""
    candidates = (tiny_task(f"{name}_{seed}", solution, seed=seed) for seed in range(100))
    return next(task for task in candidates if split_of(task.digest) == split)


SUM, SQUARE, DIFFERENCE = (
    task_in(TRAIN, "x y +", "sum"),
    task_in(TEST, "x x *", "square"),
    task_in(TRAIN, "x y -", "diff"),
)
RIGHT = "copy x a b\na b *"
SAID = {
    SUM.id: [
        Said("x y +", True, reply="first"),
        Said("x y + \\ the same, with a comment", True, reply="isomorphic"),
        Said("y x +", True, reply="another"),
        Said("x", False, reply="wrong"),
        Said("x \\ wrong again", False, reply="wrong, isomorphic"),
        Said(None, False, reply="I cannot"),
        Said("y", False, 1, reply="wrong, in a round without a right one"),
    ],
    SQUARE.id: [Said(RIGHT, True, reply="a square")],
    DIFFERENCE.id: [Said("y", False, reply="at first"), Said("x y -", True, 1, reply="with examples")],
}
SHOWN = {1: [(SQUARE.id, RIGHT), (SUM.id, "x y +")]}


@pytest.fixture
def store(tmp_path):
    with write_run(tmp_path / "runs", SAID, [SUM, SQUARE, DIFFERENCE], info("tiny"), SHOWN) as made:
        yield made


def lines(folder, kind: str):
    return [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]


def said(rows, key: str = "messages"):
    return [row[key][-1]["content"] for row in rows]


def test_right_replies_are_there_once_per_isomorphic_group_with_their_exact_prompts(store, tmp_path):
    export_dataset(store, RUN, tmp_path / "data", every=False)
    rows = lines(tmp_path / "data", "sft")
    assert sorted(said(rows)) == ["a square", "another", "first", "with examples"]
    first = next(row for row in rows if row["messages"][-1]["content"] == "first")
    assert first["messages"] == [
        {"role": "system", "content": "write programs"},
        {"role": "user", "content": f"task: {SUM.id}, round 0"},
        {"role": "assistant", "content": "first"},
    ]
    assert (first["program"], first["agent"], first["verifier"], first["model"]) == (
        "x y +",
        "proposer",
        OLD,
        "some-model",
    )
    assert first["is_language_model"] is True
    assert list(first) == list(COLUMNS["sft"])


def test_all_right_replies_are_there_if_wanted(store, tmp_path):
    export_dataset(store, RUN, tmp_path / "data", every=True)
    rows = lines(tmp_path / "data", "sft")
    assert sorted(said(rows)) == ["a square", "another", "first", "isomorphic", "with examples"]
    groups = {row["messages"][-1]["content"]: row["isomorphism"] for row in rows}
    assert groups["first"] == groups["isomorphic"] != groups["another"]


def test_pairs_are_of_one_task_and_of_one_prompt_where_that_is_possible(store, tmp_path):
    export_dataset(store, RUN, tmp_path / "data", every=False)
    rows = lines(tmp_path / "data", "preferences")
    pairs = [(row["chosen"][0]["content"], row["rejected"][0]["content"], row["same_prompt"]) for row in rows]
    assert sorted(pairs) == [
        ("another", "I cannot", True),
        ("first", "wrong", True),
        ("with examples", "at first", False),
    ]
    stages = {row["rejected"][0]["content"]: (row["rejected_stage"], row["rejected_message"]) for row in rows}
    assert {stages[reply][0] for reply in ("wrong", "I cannot")} == {"MATCH", "FORMAT"}
    assert "expected: right ones" in stages["wrong"][1]
    other = next(row for row in rows if not row["same_prompt"])
    assert other["prompt"][-1]["content"] == f"task: {DIFFERENCE.id}, round 1"
    assert list(rows[0]) == list(COLUMNS["preferences"])


@pytest.mark.skipif(util.find_spec("tree_sitter_c") is None, reason="programs in C are compared by their trees")
def test_rows_of_a_compiled_language_say_how_it_was_built_and_what_was_measured(tmp_path):
    (task,) = load_tasks(["kernels/row_sum"], "c", {"flags": "-O2"})
    assert task.impl is not None
    renamed, wrong = task.impl.replace("sum", "total"), task.impl.replace("+=", "-=")
    unmeasured = task.impl.replace("float sum", "double sum")
    said = [Said(task.impl, True), Said(renamed, True), Said(unmeasured, True), Said(wrong, False)]
    with write_run(tmp_path / "runs", {task.id: said}, [task], info("c")) as store:
        for report in (measured("small", 2.0), measured("large", 8.0)):
            measurement = replace(report.measurement, program=Candidate(task.impl).id)
            stored = StoredSpeed(task.id, None, replace(report, measurement=measurement))
            store.put(speed_rows(RUN, stored)).result()
        export_dataset(store, RUN, tmp_path / "data", every=False)
    rows = {row["program"]: row for row in lines(tmp_path / "data", "sft")}
    assert renamed not in rows, "isomorphic programs are one"
    first = rows[task.impl]
    assert (first["target"], first["verdict"]) == ("c", "passed: 3 trials")
    assert first["interface"] == task.prompt_text
    assert "void kernel(" in first["interface"]
    assert (first["speed_ratio"], len(first["measurements"])) == (pytest.approx(4.0), 2)
    assert first["speed_low"] < 4
    assert read_report(json.loads(first["measurements"][0])).measurement.shape_set == "small"
    assert (rows[unmeasured]["speed_ratio"], rows[unmeasured]["measurements"]) == (None, [])
    (pair,) = lines(tmp_path / "data", "preferences")
    assert (pair["target"], pair["rejected_stage"]) == ("c", "MATCH")
    table = parquet.read_table(next((tmp_path / "data" / "data" / "sft").glob("*.parquet")))
    assert sorted(table.to_pylist(), key=str) == sorted(rows.values(), key=str)
    assert "`build` compiler, instruction set and flags" in (tmp_path / "data" / "README.md").read_text()


def measured(shape_set: str, ratio: float) -> SpeedReport:
    """A screen's measurement against the task's own program."""
    place = ("", "problem", shape_set, {"M": 2, "N": 3}, "device", "pairs/1", "-O2", MeasuringGrade.SCREEN, TIME)
    interval = Interval(ratio, ratio * 0.9, ratio * 1.1)
    measurement = SpeedMeasurement(*place, Interval(9, 8, 10), SpeedRatio("plain", interval), pairs=20, processes=1)
    return SpeedReport(measurement, None)


def test_no_task_is_in_two_splits_and_a_prompt_that_shows_a_test_task_is_not_in_train(store, tmp_path):
    export_dataset(store, RUN, tmp_path / "data", every=False)
    for kind in ("sft", "preferences"):
        for row in lines(tmp_path / "data", kind):
            wanted = {SUM.id: TRAIN, SQUARE.id: TEST, DIFFERENCE.id: MIXED}[row["task"]]
            assert row["split"] == wanted
            assert (row["demonstrations"] == [SQUARE.id, SUM.id]) == (row["task"] == DIFFERENCE.id)


def test_a_program_that_its_prompt_shows_is_marked(tmp_path):
    shown = {0: [(SQUARE.id, "x y +")]}
    with write_run(tmp_path / "runs", {SUM.id: SAID[SUM.id]}, [SUM], info("tiny"), shown) as store:
        store.put(_text_row("x y +")).result()
        export_dataset(store, RUN, tmp_path / "data", every=False)
    marked = {row["program"]: row["contaminated"] for row in lines(tmp_path / "data", "sft")}
    assert marked == {"x y +": True, "y x +": False}


def _text_row(text: str):
    from opsmith.store.rows import text_row

    return [text_row(text)]


def test_parquet_holds_the_same_rows_by_split(store, tmp_path):
    folder = tmp_path / "data"
    found = export_dataset(store, RUN, folder, every=False)
    assert found.rows == {"sft": {"train": 2, "test": 1, "mixed": 1}, "preferences": {"train": 2, "mixed": 1}}
    assert found.tasks == {"train": 1, "test": 1, "mixed": 1}
    for kind, splits in found.rows.items():
        for split, count in splits.items():
            table = parquet.read_table(folder / "data" / kind / f"{split}.parquet")
            assert table.num_rows == count
            assert table.to_pylist() == [row for row in lines(folder, kind) if row["split"] == split]


def test_the_card_says_what_it_is(tmp_path):
    import yaml

    sampler = info("tiny", model="embedded", is_language_model=False)
    with write_run(tmp_path / "runs", SAID, [SUM, SQUARE, DIFFERENCE], sampler, SHOWN) as store:
        export_dataset(store, RUN, tmp_path / "data", every=False)
    _, front, body = (tmp_path / "data" / "README.md").read_text().split("---\n", 2)
    configs = {config["config_name"]: config["data_files"] for config in yaml.safe_load(front)["configs"]}
    assert configs["sft"][1] == {"split": "test", "path": "data/sft/test.parquet"}
    assert [entry["split"] for entry in configs["preferences"]] == ["train", "mixed"]
    assert "not-from-an-llm" in front
    for words in (
        "not a language model",
        "| sft | 2 | 1 | 1 |",
        "| preferences | 2 | 0 | 1 |",
        "Contamination",
        "Licence",
    ):
        assert words in body
    assert {row["is_language_model"] for row in lines(tmp_path / "data", "sft")} == {False}


def test_the_verdict_of_now_counts(store, tmp_path):
    """What a later verifier refused teaches nothing; what it passes does."""
    verdicts = {
        "x y +": (Stage.MATCH, Outcome.REFUSED, (Diagnostic("DATA", "now", "wrong", "right"),)),
        "x": (Stage.MATCH, Outcome.PASSED, ()),
    }
    for item in list_judgements(store, RUN, Tiny.verifier):
        for source, (stage, outcome, errors) in verdicts.items():
            if item.candidate == Candidate(source).id:
                later = Verdict(item.candidate, stage, outcome, Boundary.CANDIDATE, errors, verifier=Tiny.verifier)
                store.put(reverdict_rows(RUN, item.sample, later)).result()
    export_dataset(store, RUN, tmp_path / "data", every=False)
    rows = [row for row in lines(tmp_path / "data", "sft") if row["task"] == SUM.id]
    assert sorted(said(rows)) == ["another", "isomorphic", "wrong"]
    assert {row["messages"][-1]["content"]: row["verifier"] for row in rows}["wrong"] == Tiny.verifier


def test_the_same_run_gives_the_same_bytes_and_replaces_only_its_own(store, tmp_path):
    export_dataset(store, RUN, tmp_path / "a", every=False)
    export_dataset(store, RUN, tmp_path / "b", every=False)
    files = {
        path.relative_to(tmp_path / "a"): path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()
    }
    assert files == {path: (tmp_path / "b" / path).read_bytes() for path in files}
    export_dataset(store, RUN, tmp_path / "a", every=True)
    (tmp_path / "a" / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match=r"mine\.txt was added since its export"):
        export_dataset(store, RUN, tmp_path / "a", every=False)


def test_without_pyarrow_or_a_right_reply_there_is_no_data_set(tmp_path, monkeypatch):
    wrong = {SUM.id: [Said("x", False)]}
    with write_run(tmp_path / "runs", wrong, [SUM], info("tiny")) as store:
        with pytest.raises(UsageError, match="none of its replies is right"):
            export_dataset(store, RUN, tmp_path / "data", every=False)
        monkeypatch.setattr(dataset.util, "find_spec", lambda name: None)
        with pytest.raises(UsageError, match="it needs pyarrow"):
            export_dataset(store, RUN, tmp_path / "data", every=False)
    assert not (tmp_path / "data").exists()


def test_replies_of_guardians_and_repairs_teach_too(tmp_path):
    """A real run of the tiny sampler with an llm guardian and a turn of repair: every row's reply holds its program."""
    from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel

    from opsmith.agents.reply import read_reply
    from opsmith.learn.loop import improve
    from opsmith.targets import get_target

    settings = SETTINGS.replace(guardian="llm", repair=1)
    with Store.open(tmp_path / "runs") as store:
        run = improve(TASKS, TinyModel(), settings, store, judge=InProcess()).run
        found = export_dataset(store, run, tmp_path / "data", every=True)
    rows = lines(tmp_path / "data", "sft")
    assert len(rows) == sum(found.rows["sft"].values())
    assert {row["agent"] for row in rows} >= {"proposer", "guardian", "repair-1"}
    tasks = {task.id: task for task in TASKS}
    for row in rows:
        held = read_reply(get_target("tiny"), tasks[row["task"]], row["messages"][-1]["content"]).source
        assert held == row["program"]
    kept = {row["messages"][-1]["content"] for row in rows}
    assert not kept & {row["rejected"][0]["content"] for row in lines(tmp_path / "data", "preferences")} - {""}


def test_changes_of_optimisation_rounds_are_there_with_their_ratios(tmp_path):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as optimised:
        export_dataset(optimised, run, tmp_path / "before", every=False)
        assert not (tmp_path / "before" / "improvements.jsonl").exists()
        add_optimisation(optimised, run)
        exported = export_dataset(optimised, run, tmp_path / "data", every=False)
    rows = lines(tmp_path / "data", "improvements")
    assert len(rows) == sum(exported.rows["improvements"].values())
    assert {row["task"] for row in rows} == set(OPTIMISED)
    assert {(round(row["ratio"], 3), row["remembered"]) for row in rows} == {
        (1.5, "gain"),
        (0.8, "loss"),
        (1.2, "gain"),
    }
    assert all(row["before"] != row["after"] and row["what"] == SUGGESTION.what for row in rows)
    for split in exported.rows["improvements"]:
        table = parquet.read_table(tmp_path / "data" / "data" / "improvements" / f"{split}.parquet")
        assert table.column_names == list(COLUMNS["improvements"])


def test_a_reply_of_an_optimisation_round_says_what_it_set_out_from_and_what_it_gained(tmp_path):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as store:
        add_optimisation(store, run)
        export_dataset(store, run, tmp_path / "data", every=True)
    rows = [row for row in lines(tmp_path / "data", "sft") if row["task"] == OPTIMISED[0]]
    better = {row["program"]: row for row in rows if row["phase"] == "optimisation"}
    best = next(row for program, row in better.items() if program.endswith("# best"))
    assert best["parent"].endswith(FASTER)
    assert best["parent_sample"] == better[best["parent"]]["sample"]
    assert best["ratio"] == pytest.approx(1.2)
    assert json.loads(best["suggestion"])["effect"] == "1.5 times as fast"
    assert better[best["parent"]]["parent_sample"] is None
    solving = [row for row in rows if row["phase"] == "functional"]
    assert solving
    assert all(row["parent"] is row["ratio"] is row["suggestion"] is None for row in solving)
