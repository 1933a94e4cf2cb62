"""A whole run of both phases: what gains is kept, what is wrong never is, and a kill at any step changes nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import optimised_run
from optimised_run import (
    LAYERS,
    SETTINGS,
    TASKS,
    WRONG,
    ScriptedModel,
    WordCounter,
    count_layers,
    write_layers,
)
from tiny_run import InProcess

from opsmith.learn.events import Event
from opsmith.learn.loop import improve
from opsmith.models.roles import ANALYST, RoleModels
from opsmith.records import Experience, Outcome
from opsmith.report.failures import FailureReader
from opsmith.results.bests import list_best
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import OPTIMISATION


def run(
    store: Store, settings: Settings = SETTINGS, measurer: WordCounter | None = None
) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []
    device = measurer or WordCounter()
    models = RoleModels(ScriptedModel(), {ANALYST: ScriptedModel("analyst")})
    return improve(TASKS, models, settings, store, judge=InProcess(), measurer=device, on_event=events.append), events


def test_what_gains_is_where_the_next_round_sets_out_from_and_what_is_wrong_never_is(tmp_path: Path) -> None:
    measurer = WordCounter()
    with Store.open(tmp_path) as store:
        result, _ = run(store, SETTINGS.replace(optimise=3, attempts=8), measurer)
        steps, rounds = store.read_steps(result.run), [info for info, _ in store.read_rounds(result.run)]
        wrong = [
            candidate
            for sample in store.list_samples(result.run)
            for candidate in store.find_sample(result.run, sample.id).candidates
            if candidate.source is not None and candidate.source.strip() == WRONG
        ]
    assert {candidate.verdict.outcome for candidate in wrong} == {Outcome.REFUSED}
    assert len(wrong) > 3, "what is fast and wrong was often tried"
    assert WRONG not in {order.source.strip() for order in measurer.orders}
    sources = {step.candidate: step.source for step in steps}
    for task in TASKS:
        parents = [
            name for info in rounds for of, name in info.demonstrations if info.phase == OPTIMISATION and of == task.id
        ]
        layers = [LAYERS, *(count_layers(sources[name] or "") for name in parents[1:])]
        assert layers == sorted(layers, reverse=True)
        assert layers[-1] < LAYERS, "it set out from programs that became better"


def test_a_run_that_begins_with_right_programs_has_nothing_to_solve_and_says_so(tmp_path: Path) -> None:
    given = [Experience(task, write_layers(task, LAYERS), 1.0, -1, "import") for task in TASKS]
    with Store.open(tmp_path) as store:
        models = RoleModels(ScriptedModel(), {ANALYST: ScriptedModel("analyst")})
        result = improve(TASKS, models, SETTINGS, store, judge=InProcess(), measurer=WordCounter(), experiences=given)
        (summary,) = store.list_runs()
        best = {row.experience.task.id: row.experience for row in list_best(store, result.run)}
        headline = FailureReader(store, result.run).write_headline()
    assert (summary.solved, summary.tasks, summary.end) == (0, 0, "nothing to solve; optimised")
    assert headline == "No sample that was to solve a task has a verdict so far."
    assert all(count_layers(experience.source) < LAYERS for experience in best.values()), (
        "counted figures need no grade"
    )
    assert {round(experience.gain or 0, 2) > 1 for experience in best.values()} == {True}


def test_known_programs_are_where_optimising_sets_out_from_and_their_tasks_are_not_solved_again(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    given = write_layers(TASKS[0], 1)
    (tmp_path / "old" / "sum_0.txt").write_text(given)
    with Store.open(tmp_path / "runs") as store:
        result, _ = run(store, SETTINGS.replace(known=str(tmp_path / "old")))
        steps = {step.candidate: step.source for step in store.read_steps(result.run)}
        rounds = [info for info, _ in store.read_rounds(result.run)]
        best = {row.experience.task.id: row.experience for row in list_best(store, result.run)}
    assert {task for info in rounds if info.phase != OPTIMISATION for task in info.attempted} == {"sum_1"}
    first = next(info for info in rounds if info.phase == OPTIMISATION)
    parents = {of: steps.get(name) for of, name in first.demonstrations}
    assert (parents["sum_0"] or given).strip() == given.strip()
    assert [(row.task, row.state) for row in result.known] == [("sum_0", "shown")]
    assert best["sum_0"].gain is not None, "measured beside the program that people gave"
    assert count_layers(best["sum_0"].source) <= 1


def test_a_run_killed_at_each_step_ends_with_the_store_of_one_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    script = [sys.executable, optimised_run.__file__, str(path)]
    killed = int(subprocess.run(script, capture_output=True, text=True, check=True, timeout=300).stdout)
    with Store.open(tmp_path / "whole.sqlite") as store:
        model, measurer = ScriptedModel(), WordCounter()
        result = improve(TASKS, model, SETTINGS, store, judge=InProcess(), measurer=measurer)
        whole, speeds = store.read_contents(result.run), store.read_speeds(result.run)
    with Store.open(path) as store:
        assert store.read_contents(result.run) == whole
        assert store.read_speeds(result.run) == speeds
    assert killed >= 10
    print(f"{killed} sessions killed; {len(speeds)} measurements, {len(model.asked)} requests")
    measured = Counter(Path(f"{path}.measured").read_text().splitlines())
    asked = Counter(Path(f"{path}.asked").read_text().splitlines())
    assert (len(measured), set(measured.values())) == (len(speeds), {1})
    assert len(asked) == len(model.asked)
    assert asked.total() - len(asked) <= killed, "what was in flight at a kill, and one is in flight at a time"
