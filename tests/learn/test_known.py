"""Programs that a run is given: judged first, shown from round 0, never counted; submitted while it goes; the control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_run import TASKS, InProcess, TinyModel

from opsmith.agents.prompt import read_prompt
from opsmith.errors import UsageError
from opsmith.learn.events import Event, ProgramsGiven, Warned
from opsmith.learn.known import PERSON, find_submitted, submit_program
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.records import KnownProgram
from opsmith.results.result import RunResult, result_of
from opsmith.settings import Settings
from opsmith.store import Store

SETTINGS = Settings(samples=4, temperatures=(1.0,), concurrency=1, seed=1, max_rounds=2, agents="single")
RIGHT = {"sum_0": "x y + z +", "sum_1": "x y + z + u +"}
WRONG = "x y +"


def write_programs(folder: Path, programs: dict[str, str]) -> Path:
    for name, source in programs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return folder


class Mute(TinyModel):
    """Never right, so that only what is given is ever shown."""

    def answer(self, request: Request) -> str:
        return "impl: |\n  x\n"


def run_tiny(
    store: Store, known: Path | None, model: TinyModel | None = None, **changes: Any
) -> tuple[RunResult, TinyModel, list[Event]]:
    model, events = model or Mute(), list[Event]()
    settings = SETTINGS.replace(known=known and str(known), **changes)
    result = improve(TASKS, model, settings, store, judge=InProcess(), on_event=events.append)
    return result, model, events


def list_shown(model: TinyModel) -> list[set[str]]:
    """The programs of each prompt, less the language's own example."""
    shown = [{program.strip() for _, program in read_prompt(request.messages).examples} for request in model.asked]
    return [programs - {"p q +"} for programs in shown]


def name_asked(store: Store, run: str) -> set[str]:
    return {task for info, _ in store.read_rounds(run) for task in info.attempted}


def test_what_is_known_is_shown_from_the_first_round_on_and_nobody_is_asked_for_it(tmp_path: Path) -> None:
    folder = write_programs(tmp_path / "old", {"sum_0.txt": RIGHT["sum_0"], "sum_1/best.txt": RIGHT["sum_1"]})
    with Store.open(tmp_path / "a.sqlite") as store:
        result, model, events = run_tiny(store, folder)
        assert list_shown(model) == [set(RIGHT.values())] * len(model.asked)
        assert not RIGHT.keys() & name_asked(store, result.run)
        assert [(row.task, row.author, row.state, row.round) for row in result.known] == [
            ("sum_0", "person", "shown", 0),
            ("sum_1", "person", "shown", 0),
        ]
        assert (result.known_before, result.solved_before, result.solved) == (("sum_0", "sum_1"), (), 0)
        assert not RIGHT.keys() & result.per_task.keys()
        assert store.summarise_run(result.run).tasks == len(TASKS) - 2
        (given,) = [event for event in events if isinstance(event, ProgramsGiven)]
        assert [program.place for program in given.programs] == ["sum_0.txt", "sum_1/best.txt"]


def test_a_wrong_one_is_refused_with_its_message_and_shown_to_nobody(tmp_path: Path) -> None:
    folder = write_programs(tmp_path / "old", {"sum_0.txt": WRONG, "sum_1.txt": RIGHT["sum_1"], "notes.txt": "to do"})
    with Store.open(tmp_path / "a.sqlite") as store:
        result, model, events = run_tiny(store, folder)
        assert list_shown(model) == [{RIGHT["sum_1"]}] * len(model.asked)
        assert "sum_0" in name_asked(store, result.run)
        said = [event.message for event in events if isinstance(event, Warned)]
        assert any("sum_0.txt is not right for task sum_0" in text and "expected" in text for text in said)
        assert any("notes.txt: no task of this run is called so" in text for text in said)
        assert [(row.task, row.state, bool(row.message)) for row in result.known] == [
            ("sum_0", "refused", True),
            ("sum_1", "shown", False),
        ]


def test_a_run_that_is_refused_before_anything_was_asked_leaves_nothing(tmp_path: Path) -> None:
    class Unable(TinyModel):
        async def complete(self, request: Request) -> Reply:
            raise UsageError("it writes no programs in this language")

    folder = write_programs(tmp_path / "old", {"sum_0.txt": WRONG})
    with Store.open(tmp_path / "a.sqlite") as store:
        with pytest.raises(UsageError, match="writes no programs"):
            run_tiny(store, folder, Unable())
        assert store.list_runs() == []


def test_of_several_programs_for_a_task_the_first_right_one_is_shown(tmp_path: Path) -> None:
    programs = {"sum_0/1.txt": WRONG, "sum_0/2.txt": RIGHT["sum_0"], "sum_0/3.txt": "y x + z +"}
    with Store.open(tmp_path / "a.sqlite") as store:
        result, model, _ = run_tiny(store, write_programs(tmp_path / "old", programs))
        assert list_shown(model) == [{RIGHT["sum_0"]}] * len(model.asked)
        assert [row.state for row in result.known] == ["refused", "shown", "unused"]


def test_the_control_asks_for_the_same_tasks_and_shows_and_judges_nothing_of_it(tmp_path: Path) -> None:
    folder = write_programs(tmp_path / "old", {f"{name}.txt": source for name, source in RIGHT.items()})
    with Store.open(tmp_path / "a.sqlite") as store:
        result, _, _ = run_tiny(store, folder)
        control, model, events = run_tiny(store, folder, show_known=False)
        assert control.run != result.run
        assert list_shown(model) == [set()] * len(model.asked)
        assert store.read_known(control.run) == []
        assert store.read_rounds(control.run)[0][0].attempted == store.read_rounds(result.run)[0][0].attempted
        assert control.per_task.keys() == result.per_task.keys()
        assert any("neither judged nor shown" in event.message for event in events if isinstance(event, Warned))


def test_the_programs_are_part_of_the_runs_identity_and_their_place_is_not(tmp_path: Path) -> None:
    first = write_programs(tmp_path / "old", {"sum_0.txt": RIGHT["sum_0"]})
    moved = write_programs(tmp_path / "new", {"deep/sum_0/x.txt": RIGHT["sum_0"]})
    other = write_programs(tmp_path / "other", {"sum_0.txt": "y x + z +"})
    with Store.open(tmp_path / "a.sqlite") as store:
        runs = [run_tiny(store, folder)[0].run for folder in (None, first, moved, other)]
    assert len(set(runs)) == 3
    assert runs[1] == runs[2]


def test_known_goes_before_the_solutions_of_a_run(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        earlier, _, _ = run_tiny(store, None, TinyModel(), samples=12)
        solved = {each.task.id: each.source.strip() for each in earlier.experiences}
        assert {"sum_0", "sum_2"} <= solved.keys()
        own = "z x + y +" if solved["sum_0"] != "z x + y +" else "z y + x +"
        folder = write_programs(tmp_path / "old", {"sum_0.txt": own, "sum_2.txt": WRONG})
        result, model, events = run_tiny(store, folder, from_run=earlier.run)
        kept = {each.task.id: each.source.strip() for each in result.experiences}
        assert kept == solved | {"sum_0": own}, "where what is known is wrong, the run's solution stands"
        assert own in list_shown(model)[0]
        assert result.known_before == ("sum_0",)
        assert "sum_0" not in result.solved_before
        assert "sum_2" in result.solved_before
        assert any("known goes before --from: sum_0" in e.message for e in events if isinstance(e, Warned))


def test_a_place_without_a_program_for_a_task_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.sqlite") as store:
        with pytest.raises(UsageError, match="does not exist"):
            run_tiny(store, tmp_path / "absent")
        with pytest.raises(UsageError, match=r"odd\.txt: no task of this run is called so.*expected TASK"):
            run_tiny(store, write_programs(tmp_path / "old", {"odd.txt": "x"}))
        assert store.list_runs() == []


def submit(store: Store, run: str, name: str, source: str) -> bool:
    program = KnownProgram(find_submitted(store, run, name), source, PERSON, "handed in")
    return asyncio.run(submit_program(store, run, program, InProcess())).passed


def hand_in(store: Store, run: str, programs: dict[str, str]) -> None:
    assert [submit(store, run, *pair) for pair in programs.items()] == [source != WRONG for source in programs.values()]


class Watched(Mute):
    """While it answers for the n-th time, somebody works on the store from a thread of his own."""

    def __init__(self, path: Path, at: int, act: Callable[[Store, str], None]) -> None:
        super().__init__()
        self.path, self.at, self.act = path, at, act

    async def complete(self, request: Request) -> Any:
        if len(self.asked) == self.at:
            await asyncio.to_thread(self.work)
        return await super().complete(request)

    def work(self) -> None:
        with Store.open(self.path) as store:
            self.act(store, store.list_runs()[-1].info.id)


def test_what_is_submitted_is_shown_from_the_next_round_on_and_stays_unsolved_by_the_model(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    known = write_programs(tmp_path / "old", {"sum_0.txt": RIGHT["sum_0"]})
    with Store.open(path) as store:
        model = Watched(path, 3, lambda other, run: hand_in(other, run, {"sum_1": RIGHT["sum_1"], "sum_2": WRONG}))
        result, _, events = run_tiny(store, known, model, max_rounds=None, levels=1)
        rounds = [info for info, _ in store.read_rounds(result.run)]
        shown = list_shown(model)
        assert len(rounds) == 2, "a submission begins a cycle, as a solved task does"
        assert shown == [{RIGHT["sum_0"]}] * rounds[0].planned + [set(RIGHT.values())] * rounds[1].planned
        assert ("sum_1" in rounds[0].attempted, "sum_1" in rounds[1].attempted) == (True, False)
        assert (result.per_task["sum_1"].solved, result.known_before) == (False, ("sum_0",))
        assert [(row.task, row.state, row.round) for row in result.known] == [
            ("sum_0", "shown", 0),
            ("sum_1", "shown", 1),
        ]
        assert store.summarise_run(result.run).tasks == len(TASKS) - 1
        assert [event.round for event in events if isinstance(event, ProgramsGiven)] == [0, 1]


def test_what_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    def act(store: Store, run: str) -> None:
        hand_in(store, run, {"sum_1": WRONG, "sum_0": RIGHT["sum_0"]})
        with pytest.raises(UsageError, match="it was given handed in for it; nothing was changed"):
            submit(store, run, "sum_0", "y x + z +")
        with pytest.raises(UsageError, match="given task 'sun_0'; expected one of its own: max_0, "):
            submit(store, run, "sun_0", WRONG)

    path = tmp_path / "a.sqlite"
    with Store.open(path) as store:
        result, model, _ = run_tiny(store, None, Watched(path, 1, act), max_rounds=1)
        assert len(model.asked) == SETTINGS.method.samples * len(TASKS)
        with pytest.raises(UsageError, match=r"it ended \(.*\); try: a further run with --known"):
            submit(store, result.run, "sum_1", RIGHT["sum_1"])
        assert [row.state for row in result_of(store, result.run).known] == ["kept"], "no round was left to show it"
