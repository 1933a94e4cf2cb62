"""A compiler as it is, behind a language file: C programs with a `main`, on standard input and output."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from opsmith.judging.pool import Pool
from opsmith.records import Outcome, Task, Verdict
from opsmith.running import sandbox
from opsmith.running.toolchain import NO_COMPILER, find_toolchain
from opsmith.suites import load_tasks

pytestmark = [
    pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing()),
    pytest.mark.skipif(find_toolchain() is None, reason=NO_COMPILER),
]

LANGUAGE = r"""
name = "filter"
version = "1"
comment = "//"
source = "program.c"
prompt = "C: main reads all inputs from the standard input and writes all outputs; sizes are its arguments."

[compile]
commands = [["gcc", "-O2", "-c", "{source}"], ["gcc", "program.o", "-o", "program", "-lm"]]
outputs = ["program"]
diagnostics = '^(?P<file>[\w.]+):(?P<line>\d+):(?P<column>\d+): error: (?P<message>.*)$'

[run]
command = ["./program", "{sizes}"]
arrays = "stdio"

[toolchain]
readable = ["/usr"]
"""
PROGRAM = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
  long rows = atol(words[1]), columns = atol(words[2]);
  float *x = malloc(rows * columns * sizeof *x);
  if (fread(x, sizeof *x, rows * columns, stdin) != (size_t)(rows * columns)) return 2;
  for (long row = 0; row < rows; row++) {
    double sum = 0;
    for (long column = 0; column < columns; column++) sum += x[row * columns + column];
    float y = sum;
    fwrite(&y, sizeof y, 1, stdout);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    file = tmp_path_factory.mktemp("filter") / "filter.toml"
    file.write_text(LANGUAGE)
    return load_tasks(["row_sum"], str(file))[0]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(2) as pool:
        yield pool


def judge(pool: Pool, task: Task, old: str = "", new: str = "") -> Verdict:
    assert old in PROGRAM
    return pool.verify(task, PROGRAM.replace(old, new))


def test_a_right_program_passes(pool: Pool, task: Task) -> None:
    verdict = judge(pool, task)
    assert verdict.passed, verdict.message


@pytest.mark.parametrize(
    ("old", "new", "stage", "words"),
    [
        ("double sum = 0;", "double sum = none;", "COMPILE", "'none' undeclared"),
        ("float y = sum;", "float y = undefined_here(sum);", "COMPILE", "undefined_here"),
        ("return 0;", 'fprintf(stderr, "fault"); return 7;', "RUN", "ended with status 7: fault"),
        ("return 0;", "abort();", "RUN", "killed by signal"),
        ("return 0;", "fwrite(x, 1, 1, stdout); return 0;", "RUN", "193 bytes on the standard output in place of 192"),
        ("return 0;", 'return fopen("/etc/passwd", "r") ? 0 : 9;', "RUN", "status 9"),
        ("return 0;", "extern int fork(void); return fork() < 0 ? 9 : 0;", "RUN", "status 9"),
        ("double sum = 0;", "double sum = 1;", "MATCH", "output y"),
        ("columns = atol(words[2])", "columns = 1000", "RUN", "status 2"),
    ],
)
def test_a_wrong_one_is_refused(pool: Pool, task: Task, old: str, new: str, stage: str, words: str) -> None:
    verdict = judge(pool, task, old, new)
    assert verdict.outcome is Outcome.REFUSED
    assert verdict.stage.name == stage, verdict.message
    assert words in verdict.message


def test_a_toolchain_that_is_not_here_leaves_programs_unjudged(pool: Pool, tmp_path: Path) -> None:
    file = tmp_path / "absent.toml"
    file.write_text(LANGUAGE.replace('["gcc", "-O2"', '["gcc-of-nobody", "-O2"'))
    verdict = pool.verify(load_tasks(["row_sum"], str(file))[0], PROGRAM)
    assert verdict.outcome is Outcome.UNJUDGED
    assert "gcc-of-nobody: no such program on the path" in verdict.message
