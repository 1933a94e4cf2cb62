"""The text of a native task: a problem, where it comes from, and options."""

import pytest

from opsmith.errors import UsageError
from opsmith.problems.files.reading import read_problem
from opsmith.suites import load_tasks
from opsmith.targets.native.task import NativeOptions, read_native_task, read_options, write_native_task

TEXT = """\
problem: row_sum
dims: {M: 3, N: 5}
inputs:
  - {name: x, dtype: fp32, shape: [M, N], data: normal}
outputs:
  - {name: y, dtype: fp32, shape: [M]}
reference: |
  def row_sum(x):
      return x.sum(-1)
"""


@pytest.mark.parametrize("options", [NativeOptions(), NativeOptions(("-O2", "-ffast-math")), NativeOptions(threads=2)])
def test_a_text_reads_back_as_problem_and_options(options):
    problem, read = read_native_task(write_native_task(TEXT, "", options))
    assert (problem, read) == (read_problem(TEXT).problem, options)


def test_default_options_are_no_part_of_the_text():
    assert write_native_task(TEXT, "", NativeOptions()) == TEXT


def test_a_task_of_another_target_gives_its_problem():
    task = load_tasks(["norm_0"])[0]
    problem, options = read_native_task(write_native_task(task.text, "step", NativeOptions(threads=2)))
    assert [output.name for output in problem.outputs]
    assert not problem.reference
    assert options.threads == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"thread": 2}, "known: flags, threads"),
        ({"threads": "two"}, "a number such as 2"),
        ({"threads": 0}, "from 1 to 64"),
        ({"flags": "-march=native"}, "given '-march=native'"),
        ({"flags": "-O2 '"}, "expected flags such as -O2"),
    ],
)
def test_options_that_are_none_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        read_options(words)
