"""What a generator is told beside program and suggestion: references of other languages, the user's files and rules."""

import pytest
from optimised_store import add_optimisation, write_functional

from opsmith.agents.prompt import ReferenceProgram
from opsmith.errors import UsageError
from opsmith.learn.briefs import BriefSource, read_changes
from opsmith.learn.references import find_reference
from opsmith.learn.start import given_experiences
from opsmith.records import Suggestion
from opsmith.results.bests import list_best
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target

(STEP_TASK,) = load_tasks(["attn_0"])
(C_TASK,) = load_tasks(["attn_0"], "c")
(KERNEL,) = load_tasks(["softmax"], "c")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Of a run in the tiny language, with two optimisation rounds."""
    path = tmp_path_factory.mktemp("briefs") / "opsmith.sqlite"
    run = write_functional(path)
    with Store.open(path) as opened:
        add_optimisation(opened, run)
        yield opened, run


def test_the_own_program_of_the_same_problem_in_another_language_is_a_reference(store):
    assert find_reference(C_TASK, "step", store[0]) == ReferenceProgram("step", STEP_TASK.impl)
    assert find_reference(STEP_TASK, "c", store[0]) == ReferenceProgram("c", C_TASK.impl)


def test_a_problem_that_the_other_language_does_not_state_has_no_reference(store):
    assert find_reference(KERNEL, "step", store[0]) is None


def test_a_place_that_is_none_is_refused(store):
    with pytest.raises(UsageError, match="no target, no run and no folder of a library"):
        find_reference(C_TASK, "nowhere", store[0])
    with pytest.raises(UsageError, match="language of the tasks themselves"):
        BriefSource(Settings(reference="c"), get_target("c"), store[0], [C_TASK])


def test_a_library_gives_the_operator_whose_problem_is_the_same(store, tmp_path):
    digest = get_target("step").problem_digest(STEP_TASK)
    (tmp_path / "manifest.json").write_text(
        '{"run": {"target": "step"}, "operators": [{"problem": "x", "source": "no"},'
        f' {{"problem": "{digest}", "source": "return E0"}}]}}'
    )
    assert find_reference(C_TASK, str(tmp_path), store[0]) == ReferenceProgram("step", "return E0")
    assert find_reference(KERNEL, str(tmp_path), store[0]) is None
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(UsageError, match="not that of a library"):
        find_reference(C_TASK, str(tmp_path), store[0])


def test_a_brief_holds_what_the_settings_name(store, tmp_path):
    (tmp_path / "round-2.md").write_text("now tile")
    settings = Settings(reference="step", instructions=str(tmp_path), deny=("goto",), objective="time")
    source = BriefSource(settings, get_target("c"), store[0], [C_TASK])
    first, second = (source.make_brief(C_TASK, "x", Suggestion("do"), number, ()) for number in (1, 2))
    assert first.reference == ReferenceProgram("step", STEP_TASK.impl)
    assert (first.instructions, second.instructions) == ("", "now tile")
    assert "- goto" in first.rules
    refusal = source.refuse_program("goto x;")
    assert refusal is not None
    assert not refusal.passed
    assert source.refuse_program("x;") is None


def test_a_plain_brief_holds_nothing_of_that(store):
    brief = BriefSource(Settings(), get_target("c"), store[0], [C_TASK]).make_brief(C_TASK, "x", None, 1, ())
    assert (brief.reference, brief.memory, brief.instructions, brief.sources, brief.rules) == (None, (), "", (), "")
    assert brief.has_example


def test_the_rounds_of_a_stored_run_are_remembered(store):
    changes = read_changes(*store, "time")
    assert {change.pair.ratio > 1.04 for change in changes} == {True}
    assert {change.is_reversed for change in changes} == {True, False}
    assert len({change.task.id for change in changes}) == 2


def test_what_was_optimised_is_taken_over_with_its_gain(store):
    kept = {row.experience.task.id: row.experience for row in store[0].read_experiences(store[1])}
    best = {row.experience.task.id: row.experience for row in list_best(*store)}
    gained = {name for name, experience in best.items() if experience.gain is not None}
    assert len(gained) == 2
    assert all(best[name].source != kept[name].source and best[name].gain > 1.5 for name in gained)
    assert all(best[name] == kept[name] for name in kept.keys() - gained)
    given = given_experiences(store[1], store[0], ())
    assert {experience.task.id: experience for experience in given} == best


def test_a_language_without_such_prompts_is_refused_before_anything_is_asked(store):
    with pytest.raises(UsageError, match="no prompt for making right programs better"):
        BriefSource(Settings(), get_target("tiny"), store[0], store[0].read_tasks(store[1]))
