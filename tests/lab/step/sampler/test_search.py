"""The search: well-typed programs, each once, the cheapest first, without chance; it solves what is easy."""

from functools import cache
from itertools import islice

import pytest

from opsmith.suites import load_tasks
from opsmith.targets.step import STEP
from opsmith_lab.step.sampler.search import search_programs

TASKS = {task.id: task for task in load_tasks(("index_0", "index_1", "index_2", "index_3", "gemm_1"))}
EASY = ("index_0", "index_2", "index_3", "gemm_1")


@cache
def list_first(name: str) -> list[str]:
    """The first programs of a task: of an easy one as many as it takes to find its own."""
    return list(islice(STEP.enumerate_programs(TASKS[name]), 40 if name in EASY else 8))


@pytest.mark.parametrize("name", TASKS)
def test_its_programs_check_and_are_all_different(name: str) -> None:
    task = TASKS[name]
    found = list_first(name)
    assert found
    assert all(STEP.check_program(task, source).errors == () for source in found)
    assert len({STEP.canonical_form(source) for source in found}) == len(found)


@pytest.mark.parametrize("name", EASY)
def test_it_finds_the_right_program_of_an_easy_task(name: str) -> None:
    task = TASKS[name]
    assert task.impl is not None
    assert STEP.canonical_form(task.impl) in map(STEP.canonical_form, list_first(name))


def test_it_is_the_same_every_time() -> None:
    assert list(islice(STEP.enumerate_programs(TASKS["index_1"]), 8)) == list_first("index_1")


def test_it_ends_where_it_is_told_to() -> None:
    text = TASKS["index_1"].text
    few, more = list(search_programs(text, 3)), list(search_programs(text, 30))
    assert few == more[: len(few)]
    assert len(few) < len(more)
