"""study-learning: what its arms show, known minds, and what is told apart."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from pydantic import ValidationError

from opsmith.agents.prompt import compose_prompt
from opsmith.agents.reply import read_reply
from opsmith.errors import UsageError
from opsmith.records import SHOWN_FOR, Experience
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.analyses.learning import RIGHT, compare_arms
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.learners import PLANTED, KnownMind
from opsmith_lab.evaluation.plan import ExperimentOptions, plan_runs
from opsmith_lab.evaluation.showing import DEMONSTRATIONS, NOTHING, Learned, make_demonstrations

STEP = get_target("step")
TASKS = load_tasks(("step26",))[::2]
LEARNED = Learned(
    STEP,
    [Experience(task, task.impl, (place + 1) / 20, 0, "source") for place, task in enumerate(TASKS)],
    {task.id: [f"{task.impl}\n?", "no"] for task in TASKS[1:]},
    0,
)


def show(shows, task):
    """The demonstrations that a task's prompt has in an arm, and the prompt."""
    demonstrations = [] if shows == NOTHING else make_demonstrations(shows, LEARNED, TASKS)
    own = [each for each in demonstrations if each.may_show(task.id)]
    return own, compose_prompt(task, own, STEP, None, 0)


@pytest.mark.parametrize("shows", DEMONSTRATIONS)
def test_an_arm_shows_as_many_tokens_and_nothing_of_the_task_that_is_asked(shows):
    for task in TASKS[:4]:
        true, own = show("true", task)[1], show(shows, task)
        assert own[1].input_tokens == pytest.approx(true.input_tokens, rel=0.01)
        assert {each.task.id for each in own[0]} == {each.id for each in TASKS} - {task.id}
        assert all(each.source != task.impl for each in own[0])
        assert {each.origin for each in own[0]} == {SHOWN_FOR + task.id}
        assert {each.task.digest for each in own[0]}.isdisjoint(each.digest for each in TASKS), "it counts as unsolved"


def test_what_is_shown_is_what_its_arm_says():
    task, right = TASKS[0], {(each.prompt_text, each.impl) for each in TASKS}
    shown = {shows: [(each.task.prompt_text, each.source) for each in show(shows, task)[0]] for shows in DEMONSTRATIONS}
    assert set(shown["true"]) == set(shown["all renamed"]) == right - {(task.prompt_text, task.impl)}
    assert not set(shown["shuffled"]) & right
    assert {text for text, _ in shown["shuffled"]} == {text for text, _ in shown["true"]}
    assert Counter(source for _, source in shown["shuffled"]) == Counter(source for _, source in shown["true"])
    assert all(source.endswith("?") for _, source in shown["refused"])
    assert all("step.Map(" not in source for _, source in shown["renamed"])
    assert "You write programs in STeP" in shown["manual"][0][0]


def test_where_nothing_was_refused_another_tasks_program_stands():
    few = Learned(STEP, LEARNED.experiences[:3], {}, 0)
    own = [each for each in make_demonstrations("refused", few, TASKS) if each.may_show(TASKS[0].id)]
    assert {each.source for each in own} == {TASKS[1].impl, TASKS[2].impl}
    assert [each.source for each in own] != [TASKS[1].impl, TASKS[2].impl]
    with pytest.raises(UsageError, match="2 tasks were solved; expected 3"):
        make_demonstrations("true", Learned(STEP, LEARNED.experiences[:2], {}, 0), TASKS)


def test_operators_have_other_names_both_ways_and_the_manual_too():
    names = LEARNED.names
    system = show("true", TASKS[0])[1].messages[0].content
    renamed = names.exchange(system)
    assert "step.Map(" in system
    assert "step.Map(" not in renamed
    assert len(renamed) == len(system)
    assert names.exchange(renamed) == system
    assert names.select_invented(renamed) == names
    assert not names.select_invented(system).invented


def ask_mind(mind, shows, samples=16):
    """By task, the share of right answers."""
    model, names, rates = KnownMind(mind, STEP, TASKS), LEARNED.names, {}
    for task in TASKS:
        prompt = show(shows, task)[1]
        rng = random.Random(f"{mind} {shows} {task.id}")
        messages = prompt.messages
        if shows == "all renamed":
            messages = [replace(each, content=names.exchange(each.content)) for each in messages]
        replies = Counter(model.answer_messages(messages, rng) for _ in range(samples))
        if shows == "all renamed":
            replies = {names.exchange(reply): count for reply, count in replies.items()}
        sources = {read_reply(STEP, task, reply).source.strip("\n"): count for reply, count in replies.items()}
        rates[task.id] = sources.get(task.impl.strip("\n"), 0) / samples
    return rates


@pytest.mark.parametrize("mind", PLANTED)
def test_known_minds_are_told_apart_as_planted_and_nothing_else(mind):
    measured = {shows: {RIGHT: [ask_mind(mind, shows)]} for shows in (*DEMONSTRATIONS, NOTHING)}
    compared = compare_arms(measured, "true", RIGHT)
    assert {arm: each.finding for arm, each in compared.items()} == PLANTED[mind]


def test_arms_whose_operators_are_no_names_are_left_out():
    [experiment] = find_experiments("study-learning")
    arms = [arm.name for arm in experiment.arms]
    named, unnamed = (
        [run.arm.name for run in plan_runs(experiment, ExperimentOptions(tasks=tasks, where=where))]
        for tasks, where in (((), {}), (("kernels/softmax",), {"target": "c"}))
    )
    assert named == arms
    assert unnamed == [name for name in arms if "renamed" not in name]


@pytest.mark.parametrize(("arm", "words"), [
    ({"name": "b", "shows": "true"}, "expected learns_from and shows, both or neither"),
    ({"name": "b", "shows": "hope", "learns_from": "a"}, "given 'hope'; expected one of true, shuffled"),
    ({"name": "b", "shows": "true", "learns_from": "c"}, "names 'c', which is no run of an arm before it"),
])  # fmt: skip
def test_an_arm_that_shows_nothing_that_there_is_is_refused(arm, words):
    with pytest.raises(ValidationError, match=words):
        Experiment(
            name="x", title="x", shows="x", analysis="learning", model=[{"name": "embedded"}], arm=[{"name": "a"}, arm]
        )
