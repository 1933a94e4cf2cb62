"""A run judged again: by a verifier that wants more, by the same one, by one that cannot say."""

from collections.abc import Sequence

import pytest
from export.stores import OLD, RUN, Said, info, write_run
from tiny_target import TARGETS, Tiny, tiny_task

from opsmith.export.reverify import as_json, reverify_run
from opsmith.export.shown import reverified_parts
from opsmith.judging.judge import IMPORT
from opsmith.judging.verifier import leave_unjudged, verify_many
from opsmith.records import Boundary, Diagnostic, Experience, Outcome, Stage, Task, Verdict
from opsmith.store.rows import experience_rows

SUM, SQUARE = tiny_task("sum_0", "x y +"), tiny_task("square_0", "x x *")
SAID = {
    "sum_0": [
        Said("y x max", True),  # kept, and wrong by the verifier of now
        Said("x y +", False),  # refused then, and right now
        Said("y x max", True),
        Said("x", False, 1),
        Said(None, False, 1, "no program"),
    ],
    "square_0": [Said("copy x a b\na b *", True)],
}


class Asked:
    """The verifier of now, in this process, which runs no author's code in the tiny language."""

    def __init__(self) -> None:
        self.programs: list[tuple[str, str]] = []

    def __call__(self, task: Task, sources: Sequence[str]) -> list[Verdict]:
        self.programs += [(task.id, source) for source in sources]
        return verify_many(task, sources)


@pytest.fixture(autouse=True)
def newer(monkeypatch):
    """The tiny language with a verifier of another version than the run's."""

    class Newer(Tiny):
        verifier = "new-2"

    monkeypatch.setitem(TARGETS, "tiny", Newer)


@pytest.fixture
def store(tmp_path):
    with write_run(tmp_path, SAID, [SUM, SQUARE], info("tiny")) as made:
        yield made


def test_what_flipped_is_found_and_the_old_verdicts_stay(store):
    before = {(table, row) for table, row in store.read_contents(RUN) if table != "reverdict"}
    asked = Asked()
    found = reverify_run(store, "model", asked)
    assert sorted(asked.programs) == [
        ("square_0", "copy x a b\na b *"),
        ("sum_0", "x"),
        ("sum_0", "x y +"),
        ("sum_0", "y x max"),
    ]
    assert (found.verifier, found.candidates, found.programs) == ((OLD, "new-2"), 5, 4)
    flips = [(flip.task, flip.before[1], flip.after[1], flip.kept) for flip in found.flips]
    lost, gained = (Outcome.PASSED, Outcome.REFUSED), (Outcome.REFUSED, Outcome.PASSED)
    assert flips == [("sum_0", *lost, True), ("sum_0", *gained, False), ("sum_0", *lost, False)]
    assert "given:" in found.flips[0].message
    assert found.lost == ["sum_0"]
    assert found.exit_code == 1
    assert {(table, row) for table, row in store.read_contents(RUN) if table != "reverdict"} == before


def test_tasks_and_rates_are_counted_by_both_verifiers(store):
    square, total = reverify_run(store, RUN, Asked()).tasks
    assert (square.task, square.judged, square.right, square.success_rate) == ("square_0", 1, (1, 1), (1.0, 1.0))
    assert (square.kept, square.solved) == ((Outcome.PASSED, Outcome.PASSED), (True, True))
    assert (total.judged, total.right, total.kept) == (4, (2, 1), (Outcome.PASSED, Outcome.REFUSED))
    assert total.success_rate == (pytest.approx(2 / 3), pytest.approx(1 / 3))  # of round 0
    assert total.solved == (True, True)  # by another sample


def test_a_second_call_judges_only_what_is_missing(store):
    first = reverify_run(store, RUN, Asked())
    asked = Asked()
    again = reverify_run(store, RUN, asked)
    assert asked.programs == []
    assert again.programs == 0
    assert (again.flips, again.tasks, again.exit_code) == (first.flips, first.tasks, 1)


def test_what_could_not_be_judged_is_said_and_tried_again(store):
    def fails(task: Task, sources: Sequence[str]) -> list[Verdict]:
        if task.id == "sum_0":
            return [
                leave_unjudged(source, Boundary.SANDBOX, Diagnostic("SANDBOX", "x", "y", "z")) for source in sources
            ]
        return verify_many(task, sources)

    found = reverify_run(store, RUN, fails)
    assert (found.flips, found.lost, found.exit_code) == ((), [], 2)
    assert {task for task, _ in found.unjudged} == {"sum_0"}
    assert found.tasks[1].kept == (Outcome.PASSED, Outcome.UNJUDGED)
    asked = Asked()
    assert reverify_run(store, RUN, asked).exit_code == 1
    assert {task for task, _ in asked.programs} == {"sum_0"}


def test_a_solution_that_the_run_was_given_is_judged_too(tmp_path):
    with write_run(tmp_path, {}, [SUM], info("tiny")) as store:
        store.put(experience_rows(RUN, Experience(SQUARE, "x", 1.0, -1, IMPORT), None, False)).result()
        found = reverify_run(store, RUN, Asked())
    assert (found.lost, found.exit_code, found.candidates) == (["square_0"], 1, 0)


def test_it_is_told_in_words_and_as_json(store):
    found = reverify_run(store, RUN, Asked())
    words = "\n".join(part for part in reverified_parts(found) if isinstance(part, str))
    assert "sum_0: sample " in words
    assert "and 1 more, the kept solution: passed, now refused at MATCH" in words
    assert "refused at MATCH, now passed" in words
    assert (
        "judged by old-1 then and new-2 now (4 different programs in this call): 3 flipped; solved then 2, now 2, of 2 tasks"
        in words
    )
    assert "no longer right, though the run kept it: sum_0" in words
    told = as_json(found)
    assert (told["lost"], told["exit_code"], told["solved"], len(told["flips"])) == (["sum_0"], 1, [2, 2], 3)
    assert told["flips"][0]["after"] == [Stage.MATCH.name, "refused"]
