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
