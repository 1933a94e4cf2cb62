"""C as a target, up to what needs a compiler: who refuses a program, where builds lie, and what happens without gcc."""

from __future__ import annotations

import pytest

from opsmith.records import Stage, Task
from opsmith.running.toolchain import NO_COMPILER
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith.targets.c import C
from opsmith.targets.native import build
from opsmith.targets.native.programs import open_cache

PROGRAM = """#include <math.h>
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) y[i] = expf(x[i]);
}
"""


@pytest.fixture(scope="module")
def task() -> Task:
    return load_tasks(["kernels/softmax"], "c")[0]


def test_what_no_compiler_should_see_is_refused_at_parse(task: Task) -> None:
    checked = C.check_program(task, PROGRAM.replace("math.h", "stdio.h"))
    assert (checked.stage, checked.errors[0].line) == (Stage("PARSE"), 1)
    assert C.check_program(task, PROGRAM).stage == Stage.RUN


def test_programs_that_differ_in_names_are_tried_at_the_same_sizes(task: Task) -> None:
    renamed = PROGRAM.replace("i ", "place ").replace("[i]", "[place]").replace("i++", "place++")
    first, second = (C.check_program(task, source).program for source in (PROGRAM, renamed))
    assert first == second


def test_without_a_compiler_one_sentence_says_so(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_toolchain", lambda: None)
    result = C.build_program(task, PROGRAM)
    assert (dict(result.artefacts), result.errors, result.failure) == ({}, (), NO_COMPILER)


def test_builds_are_kept_where_the_variable_says(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSMITH_BUILDS", str(tmp_path / "builds"))
    assert open_cache.__wrapped__()._folder == tmp_path / "builds"
    monkeypatch.delenv("OPSMITH_BUILDS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert open_cache.__wrapped__()._folder == tmp_path / "opsmith" / "builds"


def test_the_name_c_finds_it() -> None:
    assert get_target("c") is C
