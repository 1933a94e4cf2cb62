"""study3: which runs it stands for, what its arms are told, and known minds that are told apart by it."""

import random
from dataclasses import replace

import pytest

from opsmith.agents.analysis import AnalystBrief, request_analysis
from opsmith.agents.generation import GeneratorBrief, request_program
from opsmith.agents.prompt import compose_prompt, read_prompt
from opsmith.agents.repair import request_repair
from opsmith.agents.reply import read_reply
from opsmith.agents.suggestion import read_suggestion_reply
from opsmith.errors import UsageError
from opsmith.judging.verifier import verify
from opsmith.records import SHOWN_FOR, Experience
from opsmith.results.states import AttemptState
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.evaluation.analyses.feedback import LOOP, RIGHT, SAMPLES, Chain, FedModel, compare_languages
from opsmith_lab.evaluation.analyses.learning import compare_arms, say_lack_of_tasks
from opsmith_lab.evaluation.catalogue import find_experiments
from opsmith_lab.evaluation.learners import FEEDBACK_PLANTED, KEPT, MENDED, SIXTH, KnownMind
from opsmith_lab.evaluation.plan import ExperimentOptions, plan_runs
from opsmith_lab.evaluation.showing import FEEDBACK, Learned, make_demonstrations

STEP = get_target("step")
TASKS = load_tasks(("step26",))[::2]
WRONG = {task.id: f"{task.impl.strip()}\n?" for task in TASKS}
FOUND = dict.fromkeys(WRONG.values(), "refused at PARSE\nLANG line 9")
LEARNED = Learned(STEP, [Experience(TASKS[0], TASKS[0].impl, 0.5, 0)], {t.id: [WRONG[t.id]] for t in TASKS}, 0, FOUND)
[STUDY] = find_experiments("study3")


def plan(*models, **where):
    return plan_runs(STUDY, ExperimentOptions(models, where=where))


def test_every_arm_is_run_in_every_language_and_a_model_in_those_that_it_writes():
    arms = [arm.name for arm in STUDY.arms]
    runs = plan("openai/any")
    assert [run.arm.name for run in runs] == arms * 3
    assert dict.fromkeys(run.series for run in runs) == dict.fromkeys(
        f"openai/any in {x}" for x in ("c", "tvm", "step")
    )
    assert {run.settings.target for run in plan("openai/any", target="cuda")} == {"cuda"}
    assert {run.series for run in plan()} == {"embedded in step"}, "what takes hours is asked by name"
    with pytest.raises(UsageError, match="--target tvm: given with model embedded, which writes step"):
        plan("embedded", target="tvm")


def test_who_writes_nothing_from_nothing_begins_with_plain_programs():
    runs = plan("tuner")
    assert [(run.arm.name, run.is_plain, run.settings.method.from_run) for run in runs] == [
        ("improving", True, None),
        ("repeating", True, None),
    ]
    improving = plan("openai/any")[5]
    assert (improving.begins_right, improving.is_plain, improving.named_arms) == (True, False, {"from_run": "loop"})


def show_feedback(task):
    shown = make_demonstrations(FEEDBACK, LEARNED, TASKS)
    own = [each for each in shown if each.may_show(task.id)]
    return own, compose_prompt(task, own, STEP, None, 0).messages


def test_all_feedback_is_the_tasks_own_programs_below_what_verdicts_say():
    own, messages = show_feedback(TASKS[0])
    assert [each.origin for each in own] == [SHOWN_FOR + TASKS[0].id] * 2
    assert own[0].source == f"# refused at PARSE\n# LANG line 9\n{WRONG[TASKS[0].id]}"
    assert own[1].source.startswith("# right\n")
    assert len({each.task.digest for each in (*own, *(Experience(t, t.impl, 1.0, 0) for t in TASKS))}) == 2 + len(TASKS)
    shown = read_prompt(messages[1:]).examples
    assert [source.strip("\n") for _, source in shown] == [each.source.strip("\n") for each in own]
    assert len(show_feedback(TASKS[1])[0]) == 1


def ask_after(mind, before, task):
    """The messages of a prompt with what came before."""
    prompt = compose_prompt(task, [], STEP, None, 0).messages
    if before == MENDED:
        verdict = verify(task, WRONG[task.id])
        return request_repair(prompt, f"```yaml\nimpl: |\n  {WRONG[task.id]}\n```".replace("\n", "\n  "), verdict)
    if before == KEPT:
        return request_program(STEP, GeneratorBrief(task, "cycles", task.impl))
    return show_feedback(task)[1] if before == SIXTH else prompt


@pytest.mark.parametrize("mind", FEEDBACK_PLANTED)
def test_known_minds_are_told_apart_as_planted_and_nothing_else(mind):
    model, measured = KnownMind(mind, STEP, TASKS), {}
    for before in (SAMPLES, *FEEDBACK_PLANTED[mind]):
        rates = {}
        for task in TASKS:
            messages, rng = ask_after(mind, before, task), random.Random(f"{mind} {before} {task.id}")
            replies = [read_reply(STEP, task, model.answer_messages(messages, rng)).source for _ in range(16)]
            rates[task.id] = sum(reply is not None and "?" not in reply for reply in replies) / 16
        measured[before] = {RIGHT: [rates]}
    compared = compare_arms(measured, SAMPLES, RIGHT)
    assert {before: each.finding for before, each in compared.items()} == FEEDBACK_PLANTED[mind]
    assert not say_lack_of_tasks(compared.values())


def test_a_known_mind_gives_advice_too():
    model, task = KnownMind("mender", STEP, TASKS), TASKS[0]
    messages = request_analysis(STEP, AnalystBrief(task, "cycles", task.impl))
    assert read_suggestion_reply(model.answer_messages(messages, random.Random(0))).suggestion is not None


def test_a_chain_ends_with_its_right_program_and_what_was_said_before_is_missing():
    mended = Chain("a", 0, 5, {0: AttemptState.COMPILE, 2: AttemptState.CORRECT}, {})
    assert (mended.right_at, mended.asked) == (2, 3)
    assert (replace(mended, states={0: AttemptState.COMPILE}).right_at, replace(mended, states={}).asked) == (None, 5)


def make_fed(language, mended):
    """A model that is right alone in a fifth of its programs, and so often after a wrong one; 12 tasks, 10 samples."""
    wrong, right = {0: AttemptState.COMPILE}, {0: AttemptState.CORRECT}
    alone, chains = [], []
    for task in map(str, range(12)):
        alone += [Chain(task, 0, 1, right if number < 2 else wrong, {}) for number in range(10)]
        after = {**wrong, 1: AttemptState.CORRECT}
        chains += [Chain(task, 0, 5, after if number < mended else wrong, {}) for number in range(10)]
    return FedModel(f"openai/any in {language}", {}, {SAMPLES: [alone], LOOP: [chains]})


def test_feedback_that_helps_in_one_language_alone_is_told_from_that_in_the_others():
    models = [make_fed("c", 9), make_fed("tvm", 1), make_fed("step", 9)]
    assert [model.compared[MENDED].finding for model in models] == ["higher", "lower", "higher"]
    compared = {name: (beside, before, each) for name, beside, before, each in compare_languages(models)}
    assert {name: each.finding for name, (_, _, each) in compared.items()} == {
        "openai/any in tvm": "lower",
        "openai/any in step": "equal",
    }
    assert compared["openai/any in tvm"][:2] == ("c", MENDED)
    assert compared["openai/any in tvm"][2].difference.value == pytest.approx(-0.8)
