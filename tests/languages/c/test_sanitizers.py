"""What sanitizers see of each kind of mistake is told with its line, the same on every run."""

from __future__ import annotations

import platform
from dataclasses import replace

import pytest
from targets.native.programs import needs_compiler
from targets.native.test_explain import fail

from opsmith.targets.native.explain import LIMITS, explain_failure

CASES = {
    "reading behind": ("for (int64_t i = 0; i <= M * N; i++) y[i % 5] = x[i];", "reads 4 bytes, right behind the end of input x"),
    "far behind": ("y[0] = x[M * N + 1000];", "reads 4 bytes, 4000 bytes behind the end of input x"),
    "very far behind": ("y[0] = x[M * N + (1 << 22)];", "reads, 16777216 bytes behind the end of input x"),
    "writing before": ("y[M - 5] = 0;", "writes 4 bytes, 8 bytes before the start of output y"),
    "writing an input": ("((float *)x)[2] = 0;", "writes in input x, which is not to be written"),
    "copying too much": ("memcpy(y, x, 4 * M * N + 4);", "reads 64 bytes, right behind the end of input x"),
    "own memory": (
        "float *own = malloc(4 * N);\n own[N] = 1; y[0] = own[0]; free(own);",
        "writes 4 bytes, right behind the end of the 20 bytes that line 5 allocates",
    ),
    "freed memory": ("float *own = malloc(4);\n free(own);\n y[0] = own[0];", "reads 4 bytes of memory that was freed"),
    "a variable": (
        "float own[4]; float *p = own;\n for (int64_t i = 0; i < N; i++) p[i] = i;\n y[0] = own[M];",
        "writes 4 bytes, behind the end of own, the variable of line 5",
    ),
    "a global": ("y[0] = table[N + M];", "reads 4 bytes, right behind the end of table, the array of line 4"),
    "a null pointer": ("float *own = malloc(1l << 40);\n own[0] = 1; y[0] = own[0];", "writes through a null pointer"),
    "freeing twice": ("float *own = malloc(4);\n own[0] = x[0]; y[0] = own[0];\n free(own);\n free(own);", "frees memory that is free already"),
    "division": ("y[0] = N / (M - 3);", "an integer division by 0"),
    "recursion": ("volatile char big[1 << 20];\n big[M] = 1; kernel(x, y, M + big[0], N + big[1]);", "takes more stack"),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("case", CASES)
def test_an_access_is_told_with_its_line(case: str) -> None:
    body, words = CASES[case]
    first = explain_failure(fail(body))[0]
    assert words in first.given
    assert first.kind == "RUN"
    assert first.where == "run with sanitizers"
    assert first.line is not None
    assert first.line >= 4
    assert first.text
    assert first.remedy


@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a flag of x86")
def test_a_direction_flag_that_is_left_set_is_told_and_an_access_under_it_is_what_it_is() -> None:
    """Two calls: after the first one nothing of ours would be where it is looked for."""
    read, setting = "for (int64_t i = 0; i < M * N; i++) y[i] = x[i];", "__writeeflags(__readeflags() | 0x400);"
    for body, words in (
        (f"{read} {setting}", "returns with the direction flag set"),
        (f"{setting} y[0] = x[M - 5];", "reads 4 bytes, 8 bytes before the start of input x"),
        (f"{setting} ((float *)x)[2] = 0;", "writes in input x, which is not to be written"),
    ):
        failed = fail(body)
        (finding,) = explain_failure(replace(failed, source=f"#include <immintrin.h>\n{failed.source}"))
        assert words in finding.given


@needs_compiler
def test_the_words_are_the_same_on_every_run() -> None:
    failed = fail("y[0] = x[M * N + 1000] + table[M + 9];")
    assert explain_failure(failed) == explain_failure(failed)


@needs_compiler
@pytest.mark.parametrize(
    "body",
    [
        "for (;;) memset(malloc(1 << 26), 1, 1 << 26);",
        "for (volatile int on = 1; on;) y[0] = 1;",
        "exit(0);",
    ],
)
def test_a_program_that_takes_all_it_can_is_stopped_and_not_explained(body: str) -> None:
    tight = replace(LIMITS, cpu_seconds=2, seconds=20.0, resident=512 << 20)
    assert explain_failure(fail(body), tight) == ()
