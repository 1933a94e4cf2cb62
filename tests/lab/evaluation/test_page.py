"""The page of a result, from observations made by hand; and estimates over seeds, against the counts they come from."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from opsmith.records import Task, Usage
from opsmith.report.rendering import render_svg
from opsmith.results.metrics import GroupScore
from opsmith.results.result import RoundResult, RunResult, TaskResult
from opsmith.store.queries import Tally
from opsmith_lab.evaluation.analyses import ANALYSES
from opsmith_lab.evaluation.analyses.curves import make_points
from opsmith_lab.evaluation.charts import draw_chart
from opsmith_lab.evaluation.experiment import Arm, Experiment
from opsmith_lab.evaluation.measure import divide_solved
from opsmith_lab.evaluation.page import ResultsOrigin, write_page
from opsmith_lab.evaluation.reporting import report_study
from opsmith_lab.evaluation.study import ObservedRun, Study

TASKS = tuple(Task(name, "tiny_target:TINY", "") for name in ("a_0", "a_1", "b_0"))
EXPERIMENT = Experiment.model_validate({
    "name": "hand",
    "title": "Made by hand",
    "shows": "How a page reads.",
    "analysis": "methods",
    "relative_to": "single",
    "model": [{"name": "openai/some-model"}],
    "arm": [{"name": "single"}, {"name": "adaptive"}],
    "paper": [{"place": "Table 9", "measure": "pass@n", "arm": "adaptive", "model": "openai/other", "value": "2/3"}],
    "notes": ["A note with `code` and <b>."],
})  # fmt: skip
# round, task, right of 8: the single model solves a_0 (and a_1 with seed 1), adaptive rounds solve a_1 later
SINGLE = {0: [(0, "a_0", 4), (0, "a_1", 0), (0, "b_0", 0)], 1: [(0, "a_0", 2), (0, "a_1", 2), (0, "b_0", 0)]}
ADAPTIVE = {
    0: [(0, "a_0", 4), (0, "a_1", 0), (0, "b_0", 0), (1, "a_1", 1), (1, "b_0", 0)],
    1: [(0, "a_0", 2), (0, "a_1", 2), (0, "b_0", 0), (1, "b_0", 0)],
}
MADE = ResultsOrigin("opsmith experiment hand --model openai/some-model", "2026-01-31", "0.1.0")


def observed(arm: str, seed: int, counts: list[tuple[int, str, int]], language_model: bool = True) -> ObservedRun:
    solved = {task: number for number, task, right in reversed(counts) if right}
    rounds = tuple(
        RoundResult(
            number, number, "none" if number == 0 else "H", number, 3, (), sum(n <= number for n in solved.values())
        )
        for number in sorted({number for number, _, _ in counts})
    )
    per_task = {t.id: TaskResult(t.id, t.id[0], t.id in solved, solved.get(t.id), 0.0, 8, 100, False) for t in TASKS}
    usage = Usage(len(counts) * 8, len(counts) * 800, len(counts) * 80, 0, None if arm == "single" else 0.5)
    model = "openai/some-model" if language_model else "embedded"
    result = RunResult(
        f"run-{arm}-{seed}", model, language_model, "max rounds", True, rounds, per_task, (), GroupScore(3, len(solved), None, None),
        {}, usage, Usage(), 100.0, {"repaired": 2 + seed, "corrupted": 1}, 1.0, (),
    )  # fmt: skip
    tokens: dict[int, dict[str, int]] = {}
    for number, task, _ in counts:
        tokens.setdefault(number, {})[task] = 100 * (number + 1)
    tallies = tuple(Tally(number, task, 0.7, right, 8) for number, task, right in counts)
    settings = {"samples": 8, "temperatures": [0.7], "agents": arm}
    return ObservedRun(Arm(name=arm), "openai/some-model", seed, result, tallies, tokens, usage, settings)


def study(language_model: bool = True, stopped: str = "") -> Study:
    every = [observed("single", seed, counts, language_model) for seed, counts in SINGLE.items()]
    every += [observed("adaptive", seed, counts, language_model) for seed, counts in ADAPTIVE.items()]
    return Study(EXPERIMENT, None, TASKS, tuple(every), stopped)  # type: ignore[arg-type]


def test_a_page_of_results(golden: Callable[[str, str], None]) -> None:
    made = study()
    golden("experiment_page.md", write_page(report_study(made), ANALYSES["methods"](made), MADE, ("hand.svg",)))


def test_a_mark_and_an_unfinished_run_are_said_at_the_top() -> None:
    made = study(language_model=False, stopped="max cost")
    head = write_page(report_study(made), ANALYSES["methods"](made), MADE, ()).split("## ", maxsplit=1)[0]
    assert "**Embedded model: a program sampler, not a language model." in head
    assert "**Not complete: it stopped (max cost)." in head


def test_what_the_guardian_did_is_counted_per_run() -> None:
    """Tasks of a target that cannot tell their class are in none, and that is said."""
    made = study()
    text = write_page(report_study(made), ANALYSES["classes"](made), MADE, ())
    assert "| some-model | adaptive | repaired | 2.5 |\n| some-model | adaptive | corrupted | 1 |" in text
    assert "in no class (no program of their own, or the target cannot tell): a\\_0, a\\_1, b\\_0" in text


def test_values_over_seeds_are_means_of_each() -> None:
    made = study()
    tasks = [task.id for task in TASKS]
    single, adaptive = (made.share_solved("openai/some-model", arm, tasks) for arm in ("single", "adaptive"))
    assert single is not None
    assert adaptive is not None
    assert single.seeds == pytest.approx((1 / 3, 2 / 3))
    assert single.value == pytest.approx(1 / 2)
    assert adaptive.seeds == pytest.approx((2 / 3, 2 / 3))
    assert (single.tasks, single.samples) == (3, 48)
    rate = made.estimate_pass_at(1, "openai/some-model", "adaptive", tasks)
    assert rate is not None
    assert rate.seeds == pytest.approx(((4 / 8 + 1 / 8) / 3, (2 / 8 + 2 / 8) / 3))
    assert made.estimate_pass_at(9, "openai/some-model", "single", tasks) is None


def test_no_right_answer_of_sixteen_is_no_proof_that_there_is_none() -> None:
    made = study()
    for found in (made.estimate_pass_at(1, "openai/some-model", "single", ["b_0"]),
                  made.share_solved("openai/some-model", "single", ["b_0"])):  # fmt: skip
        assert found is not None
        assert (found.value, found.low) == (0.0, 0.0)
        assert found.high is not None
        assert found.high > 0.1


def test_a_ratio_is_paired_over_tasks_and_the_one_over_samples_stands_beside_it_by_name() -> None:
    """Both arms solve the same 20 tasks of 26: samples could have come out otherwise, which tasks are hard could not."""
    counts = [(8, 8)] * 20 + [(8, 0)] * 6
    paired, over_samples = divide_solved([counts] * 3, [counts] * 3)
    assert paired is not None
    assert over_samples is not None
    assert (paired.value, paired.seeds) == (1.0, (1.0, 1.0, 1.0))
    assert over_samples.low is not None
    assert over_samples.high is not None
    assert over_samples.low < 1 < over_samples.high
    assert paired.low is not None
    assert over_samples.low < paired.low < 1
    assert divide_solved([counts[:4]], [counts[:4]])[0] == replace(
        paired, low=None, high=None, tasks=4, samples=64, seeds=(1.0,)
    )
    page = write_page(report_study(study()), ANALYSES["methods"](study()), MADE, ())
    assert "| ratio to single | over samples |" in page
    assert "adaptive 1.33 (n = 3)" in page, "three tasks are too few to draw anew"


def test_the_lines_of_a_learning_curve_join_its_rounds_in_their_order() -> None:
    """A task that takes a shorter prompt later turns the curve back; it does not make it fall."""
    turned = replace(observed("adaptive", 0, ADAPTIVE[0]), tokens={0: {"a_0": 900, "a_1": 900}, 1: {"a_1": 100}})
    chart = ANALYSES["curves"](replace(study(), observed=(turned,))).figures[""]
    assert [point["x"] for point in chart.points] == [900, 500]
    (line,) = re.findall(r'<path d="M([\d.,L]+)" stroke', render_svg(draw_chart(chart)))
    places = [tuple(map(float, place.split(","))) for place in line.split("L")]
    assert places[0][0] > places[1][0], "to the left"
    assert places[0][1] > places[1][1], "and up"


def test_a_solved_task_keeps_the_length_of_the_prompt_that_solved_it() -> None:
    found = make_points(observed("adaptive", 0, ADAPTIVE[0]), [task.id for task in TASKS])
    assert [point.tokens for point in found] == pytest.approx([100, (100 + 200 + 200) / 3])
    assert [point.label for point in found] == ["None", "1: H₁"]
    assert [point.solved for point in found] == [1, 2]
    assert [point.pareto for point in found] == [True, True]
