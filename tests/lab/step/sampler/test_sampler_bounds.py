"""The sampler's work and memory on tasks of any size, counted and never timed; and what the bounds leave as it was."""

import hashlib
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from lab.step.sampler.unseen import AXES, CROWD, FAMILIES, LARGE
from opsmith.agents.prompt import compose_prompt
from opsmith.judging.verifier import verify
from opsmith.records import Experience, Outcome, Stage
from opsmith.suites import load_tasks
from opsmith.targets.step import STEP, spec_of
from opsmith_lab.models.sampling import PromptSampler, sample_programs
from opsmith_lab.step.sampler import StepSampler, coerce, moves, policy, search
from opsmith_lab.step.sampler.moves import Enumerator
from opsmith_lab.step.sampler.policy import MAX_LEARNED, StepPolicy
from opsmith_lab.step.sampler.records import list_arguments
from opsmith_lab.step.sampler.shelf import Shelf
from opsmith_lab.step.sampler.task import KINDS, MAX_MOVES, SamplerTask

PEAK = 700  # MiB of a process
MAX_ENDINGS = 81  # ways to end at one state
TEXTS_OF_THE_26 = "fc6c7defd7943297"  # two programs a task for each of the seeds 0, 1, 2, before there were any bounds


@pytest.fixture
def work(monkeypatch):
    """Counts of moves scored and of types looked at."""
    counts = {"scored": 0, "types": 0}
    score, reachable = policy._Tree._score_move, coerce._search_kinds

    def count_scores(self, state, move):
        counts["scored"] += 1
        return score(self, state, move)

    def count_types(*arguments):
        for found in reachable(*arguments):
            counts["types"] += 1
            yield found

    monkeypatch.setattr(policy._Tree, "_score_move", count_scores)
    monkeypatch.setattr(coerce, "_search_kinds", count_types)
    return counts


def test_the_texts_of_the_bundled_tasks_are_what_they_were_before_the_bounds():
    digest = hashlib.sha256()
    for seed in range(3):
        for task in load_tasks(("step26",)):
            digest.update("\0".join(sample_programs(task, 2, 1.0, seed)).encode())
    assert digest.hexdigest()[:16] == TEXTS_OF_THE_26


@pytest.mark.parametrize("task", FAMILIES, ids=lambda task: task.id)
def test_the_unseen_families_are_solvable_and_long(task):
    assert verify(task, task.impl).outcome is Outcome.PASSED
    assert task.impl.count("step.") >= 12


@pytest.mark.parametrize("task", [*FAMILIES, *LARGE], ids=lambda task: task.id)
def test_a_draw_from_a_cold_start_does_bounded_work(task, work):
    learner = StepSampler().fit_policy([])
    for seed in range(1 if task in FAMILIES else 2):
        policy._explored.clear()
        work.update(scored=0, types=0)
        program = learner.sample_program(task, 1.0, random.Random(seed))
        assert {error.kind for error in STEP.check_program(task, program).errors} <= {"OUT"}
        assert work["scored"] <= moves.WORK + MAX_MOVES * MAX_ENDINGS
        assert work["types"] <= 2 * KINDS


def test_a_draw_is_the_same_whatever_was_forgotten(monkeypatch):
    kept = [StepSampler().fit_policy([]).sample_program(CROWD, 1.0, random.Random(seed)) for seed in range(3)]
    monkeypatch.setattr(policy, "_explored", Shelf(0))
    assert [StepSampler().fit_policy([]).sample_program(CROWD, 1.0, random.Random(seed)) for seed in range(3)] == kept


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="a process's own peak stands in Linux's /proc")
def test_a_process_stays_small_over_many_large_tasks():
    """Every family and the largest tasks, one after another, as a worker would meet them.

    Its own peak counts: `ru_maxrss` of a process that a large one started has that one's in it.
    """
    code = """
import re, sys
from pathlib import Path
from lab.step.sampler.unseen import FAMILIES, LARGE
from opsmith_lab.models.sampling import sample_programs
for task in (*FAMILIES[1::2], *LARGE):
    assert len(sample_programs(task, 1, 1.0)) == 1
assert "torch" not in sys.modules
print(int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""
    here = Path(__file__).parents[3]  # `lab` is a package of the tests
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here)
    assert int(done.stdout) < PEAK


def test_what_is_known_of_tasks_is_dropped_when_it_takes_too_much(monkeypatch):
    shelf = Shelf(2 << 20)
    monkeypatch.setattr(policy, "_explored", shelf)
    for task in FAMILIES[:4]:
        StepSampler().fit_policy([]).sample_program(task, 1.0, random.Random(0))
        assert shelf.size <= shelf.room


def test_long_demonstrations_are_learned_from_in_part():
    shown = [(task.text, task.impl) for task in FAMILIES] * 2
    learner = StepPolicy(shown)
    assert len(learner._owners) > 300
    assert len(learner._logit.offsets) <= MAX_LEARNED
    assert learner.weigh_features(FAMILIES[0].text)


def test_demonstrations_of_unseen_tasks_change_the_samples():
    first, other = FAMILIES[0], FAMILIES[1]
    shown = [Experience(other, other.impl, 0.1, 0)]
    ask = [compose_prompt(first, experiences, STEP, None, 0).messages for experiences in ((), shown)]
    bare, taught = (PromptSampler(STEP, 0.0).sample_replies(messages, 1.0, 0, 4) for messages in ask)
    assert bare != taught


def test_where_arguments_are_too_many_those_of_unused_and_new_streams_remain():
    problem = SamplerTask(spec_of(CROWD.text))
    streams = Enumerator(problem).start_program().streams
    newest, takes = len(streams) - 1, next(fn.takes for fn in problem.fns if len(fn.takes) == 3)
    every = list(list_arguments(problem, takes, streams, newest, 0, 10_000))
    few = list(list_arguments(problem, takes, streams, newest, 0b111, 40))
    assert len(every) == 8**3 - 7**3
    assert 0 < len(few) <= 40
    assert set(few) < set(every)
    assert all(newest in args and min(args) > 2 for args in few)


def test_no_state_has_more_moves_than_its_share():
    enumerator = Enumerator(SamplerTask(spec_of(CROWD.text)))
    state, total = enumerator.start_program(), 0
    while state.moves and total <= moves.WORK:
        total += len(state.moves)
        state = enumerator.apply_move(state, state.moves[-1])
        if len(state.streams) - state.inputs == enumerator.task.limit:
            break
    assert total <= moves.WORK
    assert len(state.streams) - state.inputs == enumerator.task.limit


def test_the_way_to_one_type_is_the_one_that_the_whole_table_has():
    problem = SamplerTask(spec_of(AXES.text))
    for start in problem.inputs:
        for fields, by_dims in problem.find_table(start).items():
            for dims, options in list(by_dims.items())[:20]:
                found = problem.find_ways(start, fields, dims)
                assert found == options[: len(found)]


@pytest.mark.parametrize("task", [FAMILIES[0], CROWD, AXES], ids=lambda task: task.id)
def test_the_search_holds_few_programs_that_wait(task, monkeypatch):
    monkeypatch.setattr(search, "MAX_WAITING", 200)
    monkeypatch.setattr(search, "MAX_SETS", 20_000)
    found = list(islice(STEP.enumerate_programs(task), 4))
    assert all(STEP.check_program(task, source).stage == Stage.RUN for source in found)
