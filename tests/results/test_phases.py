"""What a run solved is the same whether or not its programs were made faster afterwards: those samples count nowhere."""

import shutil

import pytest
from learn.tiny_run import TASKS
from optimised_store import OPTIMISED, add_optimisation, write_functional

from opsmith.report.curves import draw_rounds
from opsmith.report.views import run_view
from opsmith.results.result import result_of
from opsmith.store import Store
from opsmith.store.attempts import count_stages, list_attempts
from opsmith.store.rows import OPTIMISATION
from opsmith.ui.snapshot import SnapshotReader


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same run without and with two rounds of optimisation."""
    folder = tmp_path_factory.mktemp("phases")
    run = write_functional(folder / "before.sqlite")
    shutil.copy(folder / "before.sqlite", folder / "after.sqlite")
    with Store.open(folder / "before.sqlite") as before, Store.open(folder / "after.sqlite") as after:
        add_optimisation(after, run)
        yield before, after, run


def test_rates_counts_and_prompts_of_solving_stay(stores):
    before, after, run = stores
    first, second = result_of(before, run).as_json(), result_of(after, run).as_json()
    assert second["usage"]["requests"] > first["usage"]["requests"]
    assert {**first, "usage": None} == {**second, "usage": None}


def test_a_round_of_optimisation_has_no_pass_at_k(stores):
    _, after, run = stores
    first = after.find_optimisation(run)
    assert after.read_tallies(run, first) != []
    assert len(run_view(after, run).rounds) == first


def test_the_charts_of_solving_are_equal(stores):
    before, after, run = stores
    views = [run_view(store, run) for store in (before, after)]
    specs = [{figure.name: figure.spec for figure in draw_rounds(view)} for view in views]
    assert specs[0] == {name: specs[1][name] for name in specs[0]}
    for name in ("rounds", "tasks", "groups", "overall", "samples", "judged", "pass_at_k", "solving", "first"):
        assert getattr(views[0], name) == getattr(views[1], name), name


@pytest.mark.parametrize("task", [task.id for task in TASKS])
def test_the_attempts_at_a_task_are_those_of_solving_it(stores, task):
    before, after, run = stores
    assert list_attempts(before, run, task, 1000) == list_attempts(after, run, task, 1000)
    assert count_stages(before, run, task) == count_stages(after, run, task)


def test_the_live_page_counts_tasks_as_before_and_shows_the_new_rounds_as_their_phase(stores):
    before, after, run = stores
    first, second = (SnapshotReader(store).read_snapshot(run) for store in (before, after))
    assert first.task_cells == second.task_cells
    assert second.rounds[: len(first.rounds)] == first.rounds
    assert [line.level for line in second.rounds[len(first.rounds) :]] == [OPTIMISATION, OPTIMISATION]
    assert sum(second.counts.values()) - sum(second.functional.values()) == 8 * len(OPTIMISED)


def test_the_questions_about_a_run_without_optimisation_are_as_they_were(stores):
    """No condition is added to its queries, so that their plans stay."""
    before, after, run = stores
    assert str(before.is_functional(run)) == "true"
    assert "request.round <" in str(after.is_functional(run))
