"""Words of a runtime become findings with their line; words of a program stay words."""

from __future__ import annotations

import pytest

from opsmith.records import Diagnostic
from opsmith.targets.gpu.faults import locate_fault

SOURCE = "// launch add grid=(M) block=(32) args=(x)\nkernel add\n  tile[i] = x[i];\n"


def make_finding(given: str) -> Diagnostic:
    return Diagnostic("RUN", "odd sizes", given, "outputs")


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        (
            "EmulatorFinding: line 3: race on shared memory: thread 5 writes tile[5]; try: __syncthreads()",
            Diagnostic("RUN", "odd sizes", "race on shared memory: thread 5 writes tile[5]", "outputs", "__syncthreads()", 3, None, "tile[i] = x[i];"),
        ),
        (
            "PlanFault: line 1: launch add: given 1536 threads; expected at most 1024; try: more blocks",
            Diagnostic("RUN", "odd sizes, launch add", "1536 threads", "at most 1024", "more blocks", 1, None, "// launch add grid=(M) block=(32) args=(x)"),
        ),
        ("line 2: a barrier", Diagnostic("RUN", "odd sizes", "a barrier", "outputs", "", 2, None, "kernel add")),
    ],
)  # fmt: skip
def test_words_of_a_runtime_are_taken_apart(words: str, finding: Diagnostic) -> None:
    assert locate_fault(SOURCE, make_finding(words)) == finding


@pytest.mark.parametrize(
    "words", ["", "ValueError: no", "line 3", "line 0: x", "line 99: x", "line 99999999999: x", "see line 3: x"]
)
def test_other_words_are_left_as_they_are(words: str) -> None:
    assert locate_fault(SOURCE, make_finding(words)) == make_finding(words)
