"""Programs in C that try everything while they run: each ends as it says, and the next verdict is right.

A program whose attack succeeds writes wrong outputs, so that `passes` says that it was denied. What lies outside is
neither read nor changed, and nobody is left behind.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler

from languages.c.fixture_programs import FIXTURES, load_c_task
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome, Verdict
from opsmith.running.sandbox import Sandbox
from opsmith.suites import task_files

pytestmark = needs_compiler
HEADER = re.compile(r"// hostile: .+(?:;|,) (?P<ends>passes|refused at [A-Z ]+?(?: or .+?)?)(?P<only> \(.+\))?\n")
RIGHT = (task_files("kernels")[0].parent / "plain" / "row_sum.c").read_text("utf-8")
SECRET = "TOP-SECRET"
SMALL = Sandbox(memory=768 << 20)


@dataclass(frozen=True)
class HostileProgram:
    """A program and how its verdict ends."""

    name: str
    source: str

    @property
    def ends(self) -> list[str]:
        """Stages at which it may be refused; `passes` among them: it may pass."""
        header = HEADER.match(self.source)
        assert header is not None, self.name
        return [word for word in re.split(r" or |refused at ", header["ends"]) if word]

    @property
    def marks(self) -> str:
        """What it needs: a processor, threads."""
        header = HEADER.match(self.source)
        return (header["only"] or "") if header is not None else ""

    def judge(self, pool: Pool, folder: Path) -> Verdict:
        return pool.verify(
            load_c_task("kernels/row_sum", "2 threads" in self.marks), self.source.replace("@CANARY@", str(folder))
        )


PROGRAMS = [HostileProgram(path.stem, path.read_text("utf-8")) for path in sorted((FIXTURES / "hostile").glob("*.c"))]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    """It starts with what a user's environment may hold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSMITH_API_KEY", SECRET)
        with Pool(1, trial_deadline=2.0, sandbox=SMALL) as shared:
            for has_threads in (False, True):
                assert shared.verify(load_c_task("kernels/row_sum", has_threads), RIGHT).passed
            yield shared


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Path]:
    """A folder in which nothing may change."""
    (tmp_path / "secret").write_text(SECRET)
    status = (tmp_path / "secret").stat()
    yield tmp_path
    assert os.listdir(tmp_path) == ["secret"]
    after = (tmp_path / "secret").stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (status.st_mode, status.st_mtime_ns, 1)
    assert (tmp_path / "secret").read_text() == SECRET


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_hostile_program_ends_as_it_says_and_the_next_verdict_is_right(
    pool: Pool, canary: Path, program: HostileProgram
) -> None:
    if "x86-64" in program.marks and platform.machine() != "x86_64":
        pytest.skip("its calls are numbered as on x86-64")
    before = list_processes()
    verdict = program.judge(pool, canary)
    assert SECRET not in verdict.message
    assert verdict.charged_to is Boundary.CANDIDATE, verdict.message
    assert describe_end(verdict) in program.ends, verdict.message
    assert pool.verify(load_c_task("kernels/row_sum", False), RIGHT).passed
    assert list_processes() <= before


def describe_end(verdict: Verdict) -> str:
    assert verdict.outcome is not Outcome.UNJUDGED, verdict.message
    return "passes" if verdict.passed else verdict.stage.name


def list_processes() -> set[int]:
    """Those of this process's nurseries, and all below them."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    processes, waiting = set(), [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        processes.update(below)
        waiting += below
    return processes
