"""A crash or an access outside of an array is told with its line, in the words of the task, the same on every run."""

from __future__ import annotations

import pytest
import torch
from targets.native.programs import PROBLEMS, needs_compiler, request_build

from opsmith.records import Diagnostic
from opsmith.targets.native import explain
from opsmith.targets.native.explain import FailedProgram, explain_failure
from opsmith.targets.native.sanitized import CallData
from opsmith.targets.native.sanitizer_report import ArrayLabel, ReportReader

M, N = 3, 5
HEAD = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\nstatic float table[8]; "
OPEN = "void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {\n"


def fail(body: str) -> FailedProgram:
    """A program whose body begins on line 5."""
    source = f"{HEAD}{OPEN}{body}\n}}\n"
    data = torch.arange(M * N, dtype=torch.float32).numpy().tobytes()
    calls = [CallData([data], [len(data)], [M, N])] * 2
    return FailedProgram(PROBLEMS["softmax"], source, request_build("").flags, calls)


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
def test_a_bound_is_told_by_formula_and_number() -> None:
    (finding,) = explain_failure(fail("y[M * N] = 1;"))
    assert finding.expected == "an index below M * N = 15"


@needs_compiler
def test_undefined_behaviour_is_told_with_line_and_column() -> None:
    finding = explain_failure(fail("int m = M, n = N, big = 2147483647 - m + n;\n y[0] = big;"))[0]
    assert finding.given == "signed integer overflow: 2147483644 + 5 cannot be represented in type 'int'"
    assert (finding.line, finding.column, finding.expected) == (5, 19, "a result that the type holds")


@needs_compiler
def test_the_words_are_the_same_on_every_run() -> None:
    failed = fail("y[0] = x[M * N + 1000] + table[M + 9];")
    assert explain_failure(failed) == explain_failure(failed)


@needs_compiler
def test_what_sanitizers_do_not_see_is_not_explained() -> None:
    assert explain_failure(fail("for (int64_t i = 0; i < M * N; i++) y[i] = x[i];")) == ()


@needs_compiler
def test_a_machine_without_sanitizers_gives_no_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "write_commands", lambda *_: [["-fsanitize=none-such"]])
    assert explain_failure(fail("y[M * N] = 1;")) == ()


def read_text(messages: str) -> tuple[Diagnostic, ...]:
    return ReportReader("", "kernel.c", (ArrayLabel("input x", "M", 4, True),)).read_report(messages)


@pytest.mark.parametrize(
    "messages",
    [
        "",
        "opsmith array 0",
        "opsmith array 9999 ffffffffffffffff 999999999999999\n==1==ERROR: AddressSanitizer: SEGV on address 0x" + "f" * 99,
        "==1==ERROR: AddressSanitizer: \x1b[31m\n is located 5 bytes after 7-byte region",
        "kernel.c:9999999:1: runtime error: \x1b]0;title\x07",
        "==1==ERROR: AddressSanitizer: stack-overflow\n    #0 0x1 in kernel kernel.c:0\n",
    ],
)  # fmt: skip
def test_a_forged_report_breaks_nothing(messages: str) -> None:
    for finding in read_text(messages):
        assert str(finding).isprintable()
