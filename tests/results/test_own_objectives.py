"""A figure of a target's own, of which more is better, goes through rounds, the best of them, fronts, pages, export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from learn.optimised_run import LAYERS, SETTINGS, ImprovableTiny, ScriptedModel, count_layers, write_layers
from learn.tiny_run import InProcess
from tiny_target import tiny_task

from opsmith.errors import UsageError
from opsmith.export.choice import choose_programs
from opsmith.export.solved import describe_choice
from opsmith.judging.verifier import verify
from opsmith.learn.afterwards import list_right_programs, measure_figures
from opsmith.learn.loop import improve
from opsmith.measuring.costs import CostRequest, measure_costs
from opsmith.measuring.objectives import list_objectives
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport, read_measurement, write_measurement
from opsmith.profiling.cost import CostProfiler
from opsmith.profiling.profiler import ProfileSubject
from opsmith.records import CYCLES, Objective, Task
from opsmith.report.fronts import list_totals, view_fronts
from opsmith.report.markdown import write_markdown
from opsmith.report.story_picture import describe_costs
from opsmith.results.bests import list_best
from opsmith.results.fronts import read_fronts
from opsmith.results.lineage import read_optimised
from opsmith.store import Store
from opsmith.targets import TARGETS

RESERVE = Objective("reserve", "spare words", is_less_better=False)


class Sparing(ImprovableTiny):
    """It counts what is left of 100 words."""

    name = "tiny-sparing"
    objectives = (RESERVE, CYCLES)

    def estimate_cost(self, task: Task, source: str) -> Mapping[str, Any]:
        return {"reserve": 100.5 - len(source.split()), **super().estimate_cost(task, source)}


SPARING = Sparing()
TARGETS[SPARING.name] = lambda: SPARING
TASKS = [replace(tiny_task(f"sum_{at}", "x y + z +" + " u +" * at), target=SPARING.name) for at in range(2)]


def count_words(order: SpeedOrder) -> Iterator[SpeedReport]:
    objectives = tuple(offer for offer in list_objectives(order.task) if offer.name in order.figures)
    request = CostRequest(order.task, order.source, order.find_partner(), order.grade, objectives)
    yield from measure_costs(verify, SPARING.estimate_cost, request)


class ReserveMeasurer:
    def explain_lack(self, task: Task) -> str:
        return ""

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        for report in count_words(order):
            yield report


@pytest.fixture(scope="module")
def optimised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    settings = SETTINGS.replace(objective="reserve", measure="full")
    with Store.open(tmp_path_factory.mktemp("reserve")) as store:
        arguments = {"judge": InProcess(), "measurer": ReserveMeasurer()}
        yield store, improve(TASKS, ScriptedModel(), settings, store, **arguments).run


def test_rounds_look_for_more_of_it_and_the_best_program_is_the_one_with_most(optimised: tuple[Store, str]) -> None:
    starts = {task: lineage.start.source for task, lineage in read_optimised(*optimised).items()}
    bests = {solution.experience.task.id: solution.experience for solution in list_best(*optimised)}
    assert starts.keys() == bests.keys() == {"sum_0", "sum_1"}
    for task, best in bests.items():
        assert count_layers(best.source) < count_layers(starts[task])
        given, own = (SPARING.estimate_cost(TASKS[0], source)["reserve"] for source in (best.source, starts[task]))
        assert best.gain == pytest.approx(given / own)
        assert best.gain > 1


def test_a_measurement_is_read_as_it_was_written_without_the_target(optimised: tuple[Store, str]) -> None:
    measurement = optimised[0].read_speeds(optimised[1])[0].report.measurement
    written = write_measurement(measurement)
    assert measurement.objective == RESERVE
    assert written["unit"] == {"name": "reserve", "unit": "spare words", "is_less_better": False}
    assert read_measurement(written) == measurement


def test_fronts_pages_and_the_choice_of_an_export_say_it_in_the_target_s_words(optimised: tuple[Store, str]) -> None:
    store, run = optimised
    longer = [replace(task, impl=write_layers(task, LAYERS)) for task in TASKS]
    programs = list_right_programs(store, run, longer)
    list(measure_figures(store, run, programs, MeasuringGrade.FULL, count_words, ["reserve", "cycles"]))
    fronts = read_fronts(store, [run], longer, SPARING.objectives)
    assert all(front.is_above_own("reserve") for front in fronts)
    assert all(len(front.front) == 1 for front in fronts), "few words are few cycles"
    for front in fronts:
        [best], own = front.front, front.own
        assert own is not None
        assert front.scale_point(best) == (own[0] / best.figures[0], best.figures[1] / own[1])
    assert "more spare words than the task's own program: 2 tasks: sum_0, sum_1" in list_totals(fronts)
    view = view_fronts(store, run, store.read_speeds(run))
    assert view is not None
    assert {"cycles: least (own)", "spare words: most (own)"} <= set(view.table.columns)
    assert "spare words" in write_markdown(store, [run])
    choices = choose_programs(store, run, longer, "reserve")
    chosen = choices["sum_0"]
    assert count_layers(chosen.source) == min(
        count_layers(program.source) for program in programs if program.task.id == "sum_0"
    )
    assert describe_choice(chosen).startswith("the most reserve of ")
    with pytest.raises(UsageError, match=r"objective 'time': programs of target tiny-sparing have .*: reserve, cycles"):
        choose_programs(store, run, longer, "time")


def test_what_the_cost_model_says_has_it_too() -> None:
    figures = SPARING.estimate_cost(TASKS[0], "x y + z +")
    assert describe_costs(figures, TASKS[0]).endswith("50 cycles, 95.5 spare words")
    [report] = CostProfiler(SPARING.estimate_cost).profile_program(ProfileSubject(TASKS[0], "x y + z +"))
    assert "spare words: 95.5 (more is better)" in report.body
