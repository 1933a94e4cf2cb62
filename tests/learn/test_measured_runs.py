"""Solutions are measured before their round ends, what is measured is stored at once, and nothing is measured twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import measured_run
from measured_run import MEASURED, SHAPES, ScriptedMeasurer, script_report
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel

from opsmith.errors import VerifierError
from opsmith.learn.events import Event, MeasuringStarted, ProgramMeasured, RoundEnded, TaskSolved, Warned
from opsmith.learn.loop import improve, improve_async
from opsmith.measuring.orders import Measurer, SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import Task
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.pages import session_settings


def run(store: Store, measurer: Measurer | None, settings: Settings = MEASURED) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []
    result = improve(TASKS, TinyModel(), settings, store, judge=InProcess(), measurer=measurer, on_event=events.append)
    return result, events


def test_every_solution_is_measured_and_stored_with_its_sample(tmp_path: Path) -> None:
    measurer = ScriptedMeasurer()
    with Store.open(tmp_path) as store:
        result, events = run(store, measurer)
        solutions = {solution.experience.task.id: solution for solution in store.read_experiences(result.run)}
        speeds = store.read_speeds(result.run)
    assert len(solutions) > 1
    assert {(speed.task, speed.sample) for speed in speeds} == {
        (task, solution.sample) for task, solution in solutions.items()
    }
    assert len(speeds) == len(SHAPES) * len(solutions)
    assert all(order.grade is MeasuringGrade.SCREEN for order in measurer.orders)
    assert [event.speed for event in events if isinstance(event, ProgramMeasured)] == speeds
    order = [type(event) for event in events if isinstance(event, MeasuringStarted | TaskSolved | RoundEnded)]
    assert order.index(MeasuringStarted) < order.index(TaskSolved) < order.index(RoundEnded)


def test_what_is_measured_is_stored_before_its_round_ends(tmp_path: Path) -> None:
    stored = []
    with Store.open(tmp_path) as store:

        def watch(event: Event) -> None:
            if isinstance(event, ProgramMeasured):
                (name,) = [row.info.id for row in store.list_runs()]
                (begun,) = [solved for _, solved in store.read_rounds(name)][-1:]
                stored.append((begun, event.speed in store.read_speeds(name)))

        improve(TASKS, TinyModel(), MEASURED, store, judge=InProcess(), measurer=ScriptedMeasurer(), on_event=watch)
    assert set(stored) == {(None, True)}, "the round has no end yet, and the measurement is there"


def test_a_run_killed_at_each_step_measures_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "killed.sqlite"
    script = [sys.executable, measured_run.__file__, str(path)]
    killed = int(subprocess.run(script, capture_output=True, text=True, check=True, timeout=300).stdout)
    with Store.open(tmp_path / "whole.sqlite") as store:
        result, _ = run(store, ScriptedMeasurer())
        whole, speeds = store.read_contents(result.run), store.read_speeds(result.run)
    with Store.open(path) as store:
        assert store.read_contents(result.run) == whole
        assert store.read_speeds(result.run) == speeds
    assert killed == 2 * len(speeds), "once when it was ordered, once when it was stored"
    counts = Counter(Path(f"{path}.measured").read_text().splitlines())
    assert set(counts.values()) == {1}
    assert len(counts) == len(speeds)


def test_a_run_that_is_stopped_while_it_measures_goes_on_with_what_is_left(tmp_path: Path) -> None:
    async def stop_early(store: Store) -> RunResult:
        stop = asyncio.Event()

        def watch(event: Event) -> None:
            if isinstance(event, ProgramMeasured):
                stop.set()

        class Slow(ScriptedMeasurer):
            async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
                async for report in super().measure(order):
                    yield report
                    await asyncio.sleep(0.01)  # so that the loop sees that it was stopped

        return await improve_async(
            TASKS, TinyModel(), MEASURED, store, InProcess(), measurer=Slow(), on_event=watch, stop=stop
        )

    again = ScriptedMeasurer()
    with Store.open(tmp_path) as store:
        stopped = asyncio.run(stop_early(store))
        before = store.read_speeds(stopped.run)
        assert stopped.end == "interrupted"
        assert 1 <= len(before) < len(SHAPES) * len(TASKS)
        result, _ = run(store, again)
        assert result.finished
        assert len(again.measured) == len(store.read_speeds(result.run)) - len(before)


def test_measuring_has_no_say_in_a_run_and_is_named_nowhere_where_nothing_is_measured(tmp_path: Path) -> None:
    silent = ScriptedMeasurer()
    with Store.open(tmp_path / "one") as one, Store.open(tmp_path / "two") as two:
        without, _ = run(one, silent, SETTINGS.replace(max_rounds=2))
        measured, _ = run(two, ScriptedMeasurer())
        assert without.run == measured.run
        assert one.read_contents(without.run) == two.read_contents(measured.run)
        assert (silent.orders, one.read_speeds(without.run)) == ([], [])
        assert "measure" not in session_settings(one, without.run)
        assert session_settings(two, measured.run)["measure"] == "screen"


class Lacking(ScriptedMeasurer):
    def explain_lack(self, task: Task) -> str:
        return f"target {task.target}: nothing is measured"


class Failing(ScriptedMeasurer):
    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        yield script_report(order, SHAPES[0])
        raise VerifierError("no machine is left")


def test_that_nothing_can_be_measured_is_said_once(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        result, events = run(store, Lacking())
        assert store.read_speeds(result.run) == []
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert warnings == ["target tiny: nothing is measured"]


def test_a_measurer_that_fails_stops_no_run(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        result, events = run(store, Failing())
        solved = store.read_experiences(result.run)
        assert len(store.read_speeds(result.run)) == len(solved) > 0
    assert result.finished
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert len(warnings) == len(solved)
    assert all(message.endswith("its program was not measured: no machine is left") for message in warnings)


def test_a_run_that_is_over_says_which_command_measures_it(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        ended, _ = run(store, None, SETTINGS.replace(max_rounds=2))
        measurer = ScriptedMeasurer()
        result, events = run(store, measurer)
        assert (result.run, measurer.orders) == (ended.run, [])
    (warning,) = [event.message for event in events if isinstance(event, Warned)]
    assert warning.endswith(f"opsmith measure {ended.run}")
