"""The most similar task is the one whose declared types and functions are the most like the asked one's."""

import doctest

import pytest

from opsmith.agents import similarity
from opsmith.agents.similarity import most_similar_first, score_documents
from opsmith.records import Experience
from opsmith.suites import load_tasks

TASKS = {task.id: task for task in load_tasks(["step26"])}


def nearest(name: str) -> list[str]:
    others = [Experience(task, "return E0", 0.5, 0) for task in TASKS.values() if task.id != name]
    return [item.task.id for item in most_similar_first(TASKS[name], others)]


@pytest.mark.parametrize("name", ["attn_0", "norm_1", "bmm_0", "gemm_2", "rope_1"])
def test_the_nearest_of_the_papers_tasks_are_of_the_same_group(name: str) -> None:
    group = TASKS[name].group
    siblings = sum(task.group == group for task in TASKS.values()) - 1
    assert {TASKS[other].group for other in nearest(name)[:siblings]} == {group}


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common, rare = score_documents("fp32 Multihot", ["fp32 a", "fp32 b", "Multihot c", "fp32 d"])[0::2]
    assert rare > 2 * common > 0


def test_a_document_without_a_common_word_scores_nothing() -> None:
    assert score_documents("a", ["b", "a"])[0] == 0.0
    assert score_documents("a", []) == []
    assert score_documents("a", [""]) == [0.0]


def test_equal_scores_leave_the_hardest_first() -> None:
    easy, hard = (Experience(TASKS["norm_0"], "return E0", rate, 0) for rate in (0.9, 0.1))
    assert most_similar_first(TASKS["attn_0"], [easy, hard]) == (hard, easy)


def test_the_example() -> None:
    assert doctest.testmod(similarity).failed == 0
