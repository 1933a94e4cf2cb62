"""The best program is the one that the full grade says to be faster over all sizes and slower at none, else the start."""

from dataclasses import replace

import pytest
from optimised_store import FASTER, add_optimisation, write_functional
from speed_store import make_measurement, make_report, spread

from opsmith.learn.afterwards import list_solved_programs
from opsmith.measuring.claims import Claim
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import CYCLES, Candidate
from opsmith.report.optimised import tabulate_gains
from opsmith.report.record import list_records
from opsmith.report.story_picture import tell_story
from opsmith.results.bests import choose_best, find_best, grade_programs, list_best
from opsmith.results.optimisation import read_optimisation
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows

SIZES = ("small", "odd", "large")
START = "start"


def measure(program, ratios, claims=(Claim.FASTER,) * 3, grade=MeasuringGrade.FULL):
    """Beside the task's own program, at as many sizes as there are ratios; None: the clocks contradict each other."""
    for shape_set, ratio, claim in zip(SIZES, ratios, claims, strict=False):
        claimed = claim if grade is MeasuringGrade.FULL else None
        if ratio is None:
            report = SpeedReport(make_measurement(program, shape_set, None, None, grade, None, "the clocks"), None)
        else:
            report = make_report(program, shape_set, 1.0, ratio, grade, claimed)
        yield StoredSpeed("task", None, report)


def name_best(*speeds):
    best = choose_best(grade_programs([speed for program in speeds for speed in program], START).values())
    return None if best is None else best.program


def test_the_best_has_the_highest_mean_over_all_sizes():
    assert name_best(measure("even", (2.0, 2.0, 2.0)), measure("large", (1.1, 1.2, 4.0))) == "even"


@pytest.mark.parametrize(
    ("ratios", "claims", "reason"),
    [
        ((3.0, 0.5, 3.0), (Claim.FASTER, Claim.SLOWER, Claim.FASTER), "slower at odd"),
        ((3.0, None, 3.0), (Claim.FASTER, None, Claim.FASTER), "no figure at odd: the clocks"),
        ((1.01, 1.02, 1.0), (Claim.NO_DIFFERENCE,) * 3, "no difference shown"),
        ((2.0, 2.0, 2.0), (Claim.IN_PROCESS,) * 3, "no difference shown"),
    ],
)
def test_a_program_that_is_slower_somewhere_or_not_claimed_to_be_faster_stays_out(ratios, claims, reason):
    speeds = [*measure("fast", ratios, claims), *measure("fast", (8.8,) * 3, grade=MeasuringGrade.SCREEN)]
    assert name_best(speeds) is None
    assert grade_programs(speeds, START)["fast"].explain_lack() == reason
    assert name_best(speeds, measure("modest", (1.1, 1.1, 1.1))) == "modest"


def test_a_grade_that_was_interrupted_is_none():
    speeds = [*measure("fast", (3.0, 3.0)), *measure("fast", (8.8,) * 3, grade=MeasuringGrade.SCREEN)]
    assert name_best(speeds) is None
    assert grade_programs(speeds, START) == {}


def test_what_stands_beside_the_tasks_own_program_says_nothing_of_another_start():
    speeds = [*measure("fast", (3.0, 3.0, 3.0)), *measure(START, (4.0, 4.0, 4.0))]
    assert name_best(speeds) is None


def test_counted_figures_are_compared_without_a_grade_or_a_claim():
    def count(program, partner, cycles, ratio):
        counted = replace(make_measurement(program, "base", 1.0, ratio, MeasuringGrade.SCREEN, None), objective=CYCLES)
        points = {
            "time": spread(cycles, 0.0),
            "ratio": replace(counted.ratio, partner=partner, precise=spread(ratio, 0.0)),
        }
        return StoredSpeed("task", None, SpeedReport(replace(counted, **points), None))

    speeds = [count("child", START, 80.0, 1.25), count("grandchild", "child", 60.0, 4 / 3)]
    grades = grade_programs(speeds, START, ("cycles",))
    assert choose_best(grades.values()).program == "grandchild"
    assert grades["grandchild"].gain.value == pytest.approx(100 / 60)


@pytest.fixture
def store(tmp_path):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as opened:
        add_optimisation(opened, run)
        yield opened, run


def test_every_room_gives_the_best_program_of_an_optimised_run(store):
    opened, run = store
    (start,) = [row for row in opened.read_experiences(run) if row.experience.task.id == "sum_0"]
    best = find_best(opened, run, start.experience.task.digest)
    assert best.experience.source == start.experience.source + " # best"
    assert (best.experience.gain, best.sample != start.sample) == (pytest.approx(1.75), True)
    story = tell_story(opened, run, "sum_0")
    assert (story.solution.source, story.start.source) == (best.experience.source, start.experience.source)
    assert best.experience.source in {program.source for program in list_solved_programs(opened, run, ())}


def test_a_gain_that_the_full_grade_refused_is_nowhere_a_gain(store):
    opened, run = store
    (start,) = [row.experience for row in opened.read_experiences(run) if row.experience.task.id == "sum_0"]
    refused = make_measurement(
        Candidate(start.source + " # best").id, "small", None, None, MeasuringGrade.FULL, None, "no"
    )
    refused = replace(refused, sought_partner=Candidate(start.source).id)
    equal = make_report(Candidate(start.source + FASTER).id, "small", 1.0, 1.0, claim=Claim.NO_DIFFERENCE).measurement
    equal = replace(equal, ratio=replace(equal.ratio, partner=Candidate(start.source).id))
    for measured in (refused, equal):  # the leader and the next one
        opened.put(speed_rows(run, StoredSpeed("sum_0", None, SpeedReport(measured, None)))).result()
    assert [row.experience.source for row in list_best(opened, run) if row.experience.task.id == "sum_0"] == [
        start.source
    ]
    result = read_optimisation(opened, run)
    (line,) = [line for line in list_records(tabulate_gains(result)) if line["task"] == "sum_0"]
    assert (line["gain"], "no figure at small: no" in line["claim"]) == (None, True)
    (task,) = [task for task in result.tasks if task.task == "sum_0"]
    assert [step.to_start for step in task.steps if (step.row.source or "").endswith("# best")] == [None]
    assert task.published == 1.0
    assert "sum_0" not in {program.task.id for program in list_solved_programs(opened, run, ()) if program.partner}


def test_a_run_that_was_stopped_before_its_full_grade_gives_what_it_began_with(tmp_path):
    run = write_functional(tmp_path / "opsmith.sqlite")
    with Store.open(tmp_path / "opsmith.sqlite") as opened:
        add_optimisation(opened, run, with_grade=False)
        best = {row.experience.task.id: row.experience for row in list_best(opened, run)}["sum_0"]
        assert (FASTER in best.source, best.source.endswith("# best")) == (False, False)
        records = list_records(tabulate_gains(read_optimisation(opened, run)))
        (line,) = [line for line in records if line["task"] == "sum_0"]
        assert (line["gain"], line["claim"]) == (None, "not graded in full")
