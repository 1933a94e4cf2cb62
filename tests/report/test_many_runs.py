"""Many runs in one table and one figure, and as columns of files."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from optimised_store import add_optimisation, write_functional
from store.test_store import RUN, whole_run

from opsmith.errors import UsageError
from opsmith.learn.loop import improve
from opsmith.report.many_runs import (
    ManyRuns,
    draw_course,
    gather_runs,
    tabulate_course,
    tabulate_groups,
    tabulate_runs,
    tabulate_steps,
    tabulate_tasks,
)
from opsmith.report.record import DataTable, list_records
from opsmith.report.rows import list_columns, write_table_csv, write_table_parquet
from opsmith.report.views import run_view
from opsmith.results.course import find_value, read_course
from opsmith.store import Store, schema
from opsmith.store.notes import change_tags
from opsmith.store.spending import seconds_by_round


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ManyRuns:
    """Two ways to select, three seeds of each."""
    with Store.open(tmp_path_factory.mktemp("many")) as store:
        for selection in ("adaptive", "none"):
            for seed in (1, 2, 3):
                settings = SETTINGS.replace(
                    seed=seed, samples=4, selection=selection, max_rounds=3, name=f"{selection}-{seed}"
                )
                run = improve(TASKS[:3], TinyModel(price=0.001), settings, store, judge=InProcess()).run
                change_tags(store, run, [selection] if seed < 3 else [])
        return gather_runs([run_view(store, run) for run in store.list_ids()])


def values(table: DataTable, column: str) -> list[object]:
    return [record[column] for record in list_records(table)]


def test_a_row_for_each_run_says_in_what_they_differ(many: ManyRuns) -> None:
    assert set(many.differing) == {"seed", "selection"}
    table = tabulate_runs(many)
    assert values(table, "selection") == ["adaptive"] * 3 + ["none"] * 3
    assert values(table, "run") == [run.id for run in many.runs]
    assert values(table, "name")[:2] == ["adaptive-1", "adaptive-2"]
    assert values(table, "solved") == [run.overall.solved for run in many.runs]
    assert values(table, "cost") == [run.usage.cost_usd for run in many.runs]


def test_a_group_is_the_mean_of_its_runs(many: ManyRuns) -> None:
    groups = list(list_records(tabulate_groups(many, "selection")))
    assert [(row["selection"], row["runs"]) for row in groups] == [("adaptive", 3), ("none", 3)]
    solved = [run.overall.solved for run in many.runs[:3]]
    assert groups[0]["solved"] == {"value": sum(solved) / 3, "low": None, "high": None, "n": 3}
    assert values(tabulate_groups(many, "tag"), "runs") == [2, 2, 2]
    assert values(tabulate_groups(many, "tag"), "tag") == ["adaptive", "no tag", "none"]
    with pytest.raises(UsageError, match="expected tag or a setting; of those that differ here: selection, seed"):
        many.group_runs("colour")
    five = replace(many, runs=(*many.runs[:3], *many.runs[:3]))
    mean = next(iter(list_records(tabulate_groups(five, "selection"))))["tokens"]
    assert mean["low"] <= mean["value"] <= mean["high"]


def test_the_course_ends_where_the_run_does(many: ManyRuns) -> None:
    for run in many.runs:
        last = run.course[-1]
        assert (last.solved, last.tokens) == (run.overall.solved, run.tokens)
        assert last.cost == pytest.approx(run.usage.cost_usd)
        assert 0 < last.time <= run.seconds + 0.1
        assert find_value(run.course, True, "solved", "cost", 0.0) == 0
        assert find_value(run.course, True, "solved", "cost", 1e9) == last.solved
        assert find_value(run.course, False, "solved", "round", last.round + 1) is None
    table = tabulate_course(many, "solved", "cost", "selection")
    assert len(table.rows) == 2
    assert values(table, list(table.columns)[-1])[0]["n"] == 3


@pytest.mark.parametrize(
    ("shown", "by", "group"), [("solved", "round", ""), ("tokens", "cost", "selection"), ("gain", "round", "")]
)
def test_the_figure_has_a_line_for_each_run_or_group(many: ManyRuns, shown: str, by: str, group: str) -> None:
    figure = draw_course(many, shown, by, group)
    points = figure.spec["data"]["values"]
    lines = {point["series"] for point in points}
    assert figure.name == f"{shown}-by-{by}"
    assert len(lines) == (0 if shown == "gain" else 2 if group else 6)
    if shown == "solved":
        assert lines == {f"{run.given_name} (no LM)" for run in many.runs}
        assert figure.title == "Tasks solved of 3, by round"


def test_the_gain_of_a_run_grows_with_its_rounds(tmp_path: Path) -> None:
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path) as store:
        add_optimisation(store, run)
        view = run_view(store, run)
        assert view.optimised is not None
        gains = [step.gain for step in read_course(store, run, view.optimised.result)]
    assert gains[-2:] == [pytest.approx(1.5), pytest.approx(1.75)]
    assert set(gains[:-2]) == {None}


@pytest.fixture
def table(many: ManyRuns) -> DataTable:
    return tabulate_groups(many, "selection")


def test_files_have_the_values_of_the_tables(many: ManyRuns, table: DataTable, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, own in (
        ("runs", tabulate_runs(many)),
        ("rounds", tabulate_steps(many)),
        ("tasks", tabulate_tasks(many)),
        ("groups", table),
    ):
        write_table_csv(own, tmp_path / f"{name}.csv")
        write_table_parquet(own, tmp_path / f"{name}.parquet")
        columns = list_columns(own)
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        read = parquet.read_table(tmp_path / f"{name}.parquet").to_pydict()
        assert list(rows[0]) == list(columns) == list(read)
        for column, expected in columns.items():
            assert [row[column] for row in rows] == ["" if value is None else str(value) for value in expected]
            assert read[column] == expected
    assert {"cost_usd", "cost_usd_low", "time_s", "pass_at_1_n", "selection"} <= set(list_columns(table))


def test_a_killed_session_counts_up_to_its_last_reply(tmp_path: Path) -> None:
    begin = {"run": RUN.id, "settings": "{}", "versions": "{}", "commit": None}
    with Store.open(tmp_path) as store:
        store.put(whole_run()).result()
        with store._database.open_transaction() as connection:  # clock times of a run that was killed and went on
            for table in (schema.session, schema.session_end):
                connection.execute(table.delete())
            connection.execute(schema.reply.update().values(at=130.0))
            connection.execute(schema.round_end.update().values(at=560.0))
            connection.execute(schema.session.insert(), [{**begin, "at": 100.0}, {**begin, "at": 500.0}])
            connection.execute(
                schema.session_end.insert(), [{"run": RUN.id, "reason": "", "seconds": 80.0, "at": 580.0}]
            )
        assert set(seconds_by_round(store, RUN.id).values()) == {90.0}


def test_a_run_with_nothing_to_solve_is_drawn(store, runs):
    view = run_view(store, runs[0])
    course = tuple(replace(step, solved=0) for step in view.course)
    alone = replace(view, tasks=(), overall=replace(view.overall, tasks=0), course=course)
    assert draw_course(gather_runs([alone]), "solved", "tokens").spec["data"]["values"]
