"""The search: well-typed programs, each once, the cheapest first, without chance; it solves what is easy."""

from itertools import islice

import pytest

from opsmith.suites import load_tasks
from opsmith.targets.step import STEP
from opsmith.targets.step.sampler.search import search_programs

TASKS = {task.id: task for task in load_tasks(("index_0", "index_1", "index_2", "index_3", "gemm_1"))}


@pytest.mark.parametrize("name", TASKS)
def test_its_programs_check_and_are_all_different(name: str) -> None:
    task = TASKS[name]
    found = list(islice(STEP.enumerate_programs(task), 8))
    assert found
    assert all(STEP.check_program(task, source).errors == () for source in found)
    assert len({STEP.canonical_form(source) for source in found}) == len(found)


@pytest.mark.parametrize("name", ["index_0", "index_2", "index_3", "gemm_1"])
def test_it_finds_the_right_program_of_an_easy_task(name: str) -> None:
    task = TASKS[name]
    assert task.impl is not None
    found = [STEP.canonical_form(source) for source in islice(STEP.enumerate_programs(task), 40)]
    assert STEP.canonical_form(task.impl) in found


def test_it_is_the_same_every_time() -> None:
    task = TASKS["index_1"]
    assert list(islice(STEP.enumerate_programs(task), 20)) == list(islice(STEP.enumerate_programs(task), 20))


def test_it_ends_where_it_is_told_to() -> None:
    text = TASKS["index_1"].text
    few, more = list(search_programs(text, 3)), list(search_programs(text, 30))
    assert few == more[: len(few)]
    assert len(few) < len(more)
