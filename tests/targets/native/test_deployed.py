"""A program as a user runs it: what it asks of others, and what it gives where nothing of ours is."""

from __future__ import annotations

from pathlib import Path

import pytest
from targets.native.programs import PROBLEMS, needs_compiler, request_build
from targets.native.test_runner import COPY, FIRST, HEAD, LAYOUT, SECOND

from opsmith.running.compiler import Artefact
from opsmith.targets.native.build import build_library
from opsmith.targets.native.cache import BuildCache
from opsmith.targets.native.deployed import RESULTS, DeployedProgram, build_host, run_deployed
from opsmith.targets.native.imports import check_imports
from opsmith.targets.native.layout import write_inputs
from opsmith.targets.native.signature import make_signature
from opsmith.targets.programs import DeployedEnd

pytestmark = needs_compiler
RIGHT = (FIRST + SECOND) * RESULTS


def build_program(source: str) -> bytes:
    artefact = build_library(request_build(source))
    assert isinstance(artefact, Artefact), artefact
    return artefact.data


def run_program(source: str, folder: Path) -> list[bytes] | DeployedEnd:
    host = build_host(make_signature(PROBLEMS["softmax"]), "", BuildCache(folder))
    inputs = write_inputs(LAYOUT, [FIRST, SECOND])
    return run_deployed(DeployedProgram(build_program(source), host), [b"", inputs], 30.0)


@pytest.mark.parametrize(
    ("body", "is_right"),
    [
        ("}", True),
        ("  static long calls;\n  if (++calls > 30) y[0] = 0;\n}", False),
        ("  static float *last;\n  if (last == y) y[0] = 0;\n  last = y;\n}", False),
        ("  char *z = malloc(2000);\n  y[0] = z[999] + x[0] - 1;\n  z[999] = 1;\n  free(z);\n}", False),
    ],
)
def test_calls_as_a_user_makes_them_tell_who_depends_on_more_than_inputs(
    body: str, is_right: bool, tmp_path: Path
) -> None:
    left_out, outputs = run_program(COPY + body, tmp_path)
    assert left_out == b""
    assert (outputs == RIGHT) is is_right


def test_a_program_that_ends_its_process_is_told_with_its_trial(tmp_path: Path) -> None:
    ended = run_program(COPY + "  static long calls;\n  if (++calls > 30) abort();\n}", tmp_path)
    assert isinstance(ended, DeployedEnd)
    assert (ended.trial, ended.finding.given) == (1, "a process that ended: signal 6")


@pytest.mark.parametrize(
    ("before", "body", "names"),
    [
        ("#include <math.h>\n", "  y[0] = erff(expf(x[0]));\n  free(malloc(8));\n  qsort(y, 0, 4, 0);\n}", []),
        ("", "  y[0] = getenv(\"HOME\") ? 1 : 0;\n}", ["getenv"]),
        ("long syscall(long, ...);\n", "  y[0] = syscall(39);\n}", ["syscall"]),
    ],
)  # fmt: skip
def test_what_a_program_asks_of_others_is_read_in_its_file(before: str, body: str, names: list[str]) -> None:
    findings = check_imports(build_program(before + HEAD + body))
    assert [finding.given for finding in findings] == [f"a use of {name}" for name in names]
