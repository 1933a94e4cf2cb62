"""How much is streamed: the elements of all streams of a task's own program, as a function of the sizes."""

from collections import Counter

from opsmith.suites import STEP_SUITES, load_tasks
from opsmith.targets.step import STEP


def elements_of(task):
    """`D*N + 2*M*N`: inputs and every result of every application; `?0.1` is what expert 1 of Partition 0 receives."""
    graph = STEP.check_program(task, task.impl).program.report.graph
    counts = Counter(str(product(kind.dims)) for kind in graph.types)
    return " + ".join(_term(size, count) for size, count in sorted(counts.items()))


def _term(size, count):
    return size if count == 1 else str(count) if size == "1" else f"{count}*{size}"


def product(dims):
    total = dims[0]
    for dim in dims[1:]:
        total *= dim
    return total


def test_the_elements_streamed_are_those_on_record(golden):
    rows = [f"{task.id}: {elements_of(task)}\n" for suite in STEP_SUITES for task in load_tasks([suite])]
    golden("stream_elements.txt", "".join(rows))


def test_the_products_of_bmm_are_streamed_one_by_one():
    """In bmm_2 through functions of scalars too, which is why its `large` shape set is smaller than that of the others."""
    elements = {task.id: elements_of(task) for task in load_tasks()}
    assert [task for task, total in elements.items() if "D*K*M*N" in total] == ["bmm_1", "bmm_2"]
    assert " + 3*D*K*M*N + " in elements["bmm_2"]
