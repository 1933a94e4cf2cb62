"""Memory of slow and fast: what gained or, reversed, lost; of other tasks; the same for the same rows."""

from opsmith.measuring.intervals import Interval
from opsmith.records import Outcome, Stage, Suggestion, Task
from opsmith.results.lineage import Lineage, OptimisationStep, OptimisedProgram
from opsmith.results.memory import choose_pairs, list_changes, remember_step
from opsmith.store.steps import StepRow

TASKS = {name: Task(name, "c", f"problem: {name}") for name in ("a", "b", "c", "d")}
START = OptimisedProgram("start", "slow();", None, (1.0,))


def make_step(task: str, ratio: float, what: str = "tile by 64", number: int = 0, width: float = 0.01):
    source = f"{task}{number}();"
    row = StepRow(
        f"{task}-{number}", 1, task, 0.4, number, Suggestion(what), source, source, Stage.MATCH, Outcome.PASSED
    )
    program = OptimisedProgram(source, source, row.sample, (ratio,))
    return OptimisationStep(row, START, (Interval(ratio, ratio - width, ratio + width),), program)


def make_changes(*steps: OptimisationStep):
    names = sorted({step.row.task for step in steps})
    lineages = {name: Lineage(name, START, tuple(step for step in steps if step.row.task == name)) for name in names}
    return list_changes(TASKS, lineages)


def test_a_gain_is_a_pair_and_a_loss_one_that_is_turned_around():
    gain, loss = make_changes(make_step("a", 1.5), make_step("b", 0.5))
    assert (gain.pair.before, gain.pair.after, gain.pair.ratio) == ("slow();", "a0();", 1.5)
    assert (loss.pair.before, loss.pair.after, loss.pair.ratio) == ("b0();", "slow();", 2.0)
    assert gain.pair.title == "tile by 64"
    assert loss.is_reversed
    assert loss.pair.title == "not: tile by 64"
    assert "2.00 times as dear" in loss.pair.description


def test_what_changed_little_or_within_the_noise_is_not_remembered():
    for ratio, width in ((1.04, 0.001), (0.9, 0.001), (1.2, 0.3), (0.8, 0.3)):
        assert remember_step(TASKS["a"], make_step("a", ratio, width=width)) is None


def test_a_program_that_was_wrong_or_not_measured_is_not_remembered():
    step = make_step("a", 1.5)
    assert remember_step(TASKS["a"], OptimisationStep(step.row, START, (None,), None)) is None


def test_pairs_are_of_other_tasks_and_as_different_as_there_are():
    changes = make_changes(
        make_step("a", 3.0), make_step("a", 2.9, "unroll", 1), make_step("b", 2.0), make_step("c", 1.5, "vectorise")
    )
    assert [pair.task_id for pair in choose_pairs(changes, TASKS["d"], 2)] == ["a", "c"]
    assert [pair.task_id for pair in choose_pairs(changes, TASKS["a"], 3)] == ["b", "c"]
    assert [pair.title for pair in choose_pairs(changes, TASKS["d"], 3)] == ["tile by 64", "vectorise", "unroll"]


def test_gains_come_before_losses_and_no_memory_is_empty():
    changes = make_changes(make_step("a", 0.1), make_step("b", 1.1, "unroll"))
    assert [pair.task_id for pair in choose_pairs(changes, TASKS["c"], 2)] == ["b", "a"]
    assert choose_pairs(changes, TASKS["c"], 0) == ()


def test_the_choice_depends_on_the_rows_alone():
    steps = [make_step(task, ratio) for task, ratio in (("a", 1.5), ("b", 1.5), ("c", 1.5))]
    choices = [choose_pairs(make_changes(*order), TASKS["d"], 2) for order in (steps, steps[::-1])]
    assert choices[0] == choices[1]


def test_programs_of_another_language_are_not_remembered():
    other = Task("d", "step", "inputs: []")
    assert choose_pairs(make_changes(make_step("a", 1.5)), other, 2) == ()
