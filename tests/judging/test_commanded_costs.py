"""The cycles of programs that a language's own commands build and run, asked through the pool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from opsmith.errors import UsageError, VerifierError
from opsmith.judging.pool import Pool
from opsmith.records import Task
from opsmith.running import sandbox
from opsmith.scaffold.project import COMMAND, write_project
from opsmith.suites import read_task_file

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as shared:
        yield shared


def make_task(folder: Path, *edits: tuple[str, str]) -> Task:
    """The row sum in the language that `opsmith init --command` writes, its file with lines replaced by patterns."""
    write_project(folder / "chip", kind=COMMAND)
    file = folder / "chip/language.toml"
    text = file.read_text()
    for pattern, new in edits:
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
        assert count == 1, pattern
    file.write_text(text)
    return read_task_file(folder / "chip/problems/row_sum.yaml", str(file))


def test_a_right_program_costs_what_its_run_says_at_the_stated_sizes(pool: Pool, tmp_path: Path) -> None:
    task = make_task(tmp_path)
    cost = pool.cost(task, task.impl or "")
    assert cost["cycles"] > 48 * 300 / 64
    assert cost["at"] == "base"
    assert cost["profile"]


def test_a_run_that_says_lines_and_no_cycles_has_these_alone(pool: Pool, tmp_path: Path) -> None:
    task = make_task(tmp_path, (r"^cycles = .*$", ""))
    cost = pool.cost(task, task.impl or "")
    assert cost["cycles"] is None
    assert "cycles of" in cost["profile"]


def test_a_run_that_says_nothing_has_no_cost(pool: Pool, tmp_path: Path) -> None:
    task = make_task(tmp_path, (r"^cycles = .*$", ""), (r"^\[profile\](.*\n)+?\n", "\n"))
    with pytest.raises(UsageError, match="no line of its run says cycles"):
        pool.cost(task, task.impl or "")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("vsum", "vsun", "unknown instruction 'vsun'"), ("fst   y, s2, f0", "fst   z, s2, f0", "no output z")],
)
def test_a_program_that_does_not_run_has_none(pool: Pool, tmp_path: Path, old: str, new: str, words: str) -> None:
    task = make_task(tmp_path)
    with pytest.raises(UsageError, match=f"cost of task .*row_sum: .*{words}"):
        pool.cost(task, (task.impl or "").replace(old, new))


def test_tools_that_cannot_be_started_are_not_the_program_s_fault(pool: Pool, tmp_path: Path) -> None:
    task = make_task(tmp_path, (r'^commands = \[\["\{python\}", ', 'commands = [["/bin/nothing-here", '))
    with pytest.raises((UsageError, VerifierError), match="nothing-here"):
        pool.cost(task, task.impl or "")
