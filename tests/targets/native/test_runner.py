"""The runner in a process of its own: what it answers for right programs, for damage and for what programs depend on."""

from __future__ import annotations

import faulthandler
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from targets.native.programs import needs_compiler, request_build

from opsmith.targets.native.build import build_variants
from opsmith.targets.native.layout import (
    PASSES,
    Damage,
    DrawLayout,
    LayoutError,
    TrialLayout,
    read_inputs,
    read_outputs,
    write_damage,
    write_inputs,
    write_outputs,
)
from opsmith.targets.native.runner import run_artefacts
from opsmith.targets.native.variants import choose_variants

COUNT = 10
DRAW = DrawLayout((4 * COUNT,), (4 * COUNT,), (2, 5))
LAYOUT = TrialLayout((DRAW, DRAW))
FIRST, SECOND = (struct.pack(f"{COUNT}f", *range(start, start + COUNT)) for start in (1, 101))
INPUTS = write_inputs(LAYOUT, [FIRST, SECOND])
HEAD = """#include <stdint.h>
#include <stdlib.h>
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N) {
"""
COPY = HEAD + "  for (int64_t i = 0; i < M * N; i++) y[i] = x[i];\n"


def write_variants(source: str, folder: Path) -> dict[str, Path]:
    libraries = build_variants(request_build(source), choose_variants(1))
    assert isinstance(libraries, Mapping), libraries
    for name, data in libraries.items():
        (folder / f"{name}.so").write_bytes(data)
    return {name: folder / f"{name}.so" for name in libraries}


def run_forked(source: str, folder: Path) -> bytes | int:
    """The answer, or the status of a process that gave none."""
    paths, (ours, theirs) = write_variants(source, folder), os.pipe()
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        try:
            os.write(theirs, run_artefacts(paths, INPUTS))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return answer or status


def run_passes(source: str, folder: Path) -> list[list[bytes]]:
    """The output of each draw in each pass."""
    answer = run_forked(source, folder)
    assert isinstance(answer, bytes), answer
    passes = read_outputs(LAYOUT, answer)
    assert not isinstance(passes, Damage)
    size = LAYOUT.outputs_size // len(LAYOUT.draws)  # each draw has one output, of one size
    return [[bytes(pass_[place : place + size]) for place in range(0, len(pass_), size)] for pass_ in passes]


@needs_compiler
def test_every_pass_answers_each_draw_in_its_place(tmp_path: Path) -> None:
    assert run_passes(COPY + "}", tmp_path) == [[FIRST, SECOND]] * len(PASSES)


@needs_compiler
@pytest.mark.parametrize(
    "body",
    [
        "  y[0] = x[M * N];\n}",  # behind the input
        "  y[0] = x[-1];\n}",  # before it
        "  float *row = malloc(64);\n  y[0] = row[3];\n  free(row);\n}",
        "  float *row = realloc(malloc(64), 4096);\n  y[0] = row[900];\n  free(row);\n}",
        "  static float calls;\n  y[0] = calls++;\n}",
        "  static float before;\n  y[0] = before;\n  before = x[0];\n}",
    ],
)
def test_what_is_not_an_input_makes_passes_differ(body: str, tmp_path: Path) -> None:
    passes = run_passes(COPY + body, tmp_path)
    assert passes[0] != passes[1]


@needs_compiler
def test_what_an_output_held_before_a_call_makes_passes_differ(tmp_path: Path) -> None:
    passes = run_passes(COPY.replace("i = 0", "i = 1") + "}", tmp_path)
    assert passes[0] != passes[2]  # pass 1 may find what pass 0 has left


@needs_compiler
@pytest.mark.parametrize("body", ["  float z[8];\n  y[0] = z[M];\n}", "  float z[N];\n  y[0] = z[M];\n}"])
def test_local_arrays_begin_with_a_value_of_the_variant(body: str, tmp_path: Path) -> None:
    passes = run_passes(COPY + body, tmp_path)
    assert passes[0] == passes[1] != passes[2]


@needs_compiler
@pytest.mark.parametrize(("place", "damage"), [("M * N", (True, 0)), ("M * N + 2", (True, 8)), ("-3", (False, 8))])
def test_a_write_beside_an_output_is_damage(place: str, damage: tuple[bool, int], tmp_path: Path) -> None:
    answer = run_forked(COPY + f"  y[{place}] = 1;\n}}", tmp_path)
    assert isinstance(answer, bytes)
    assert read_outputs(LAYOUT, answer) == Damage(0, 0, 0, *damage)


@needs_compiler
@pytest.mark.parametrize(
    "body", ["  ((float *)x)[0] = 1;\n}", "  y[M * N + 16] = 1;\n}", "  y[0] = x[M * N + 16];\n}", "  y[-1024] = 1;\n}"]
)
def test_inputs_and_guards_kill_who_writes_there(body: str, tmp_path: Path) -> None:
    assert run_forked(COPY + body, tmp_path) == -11


@needs_compiler
def test_a_helper_with_a_name_of_libc_is_the_programs_own(tmp_path: Path) -> None:
    source = "float index(float value) { return value + 1; }\n" + HEAD + "  y[0] = index(x[0]);\n}"
    assert struct.unpack_from("f", run_passes(source, tmp_path)[0][0]) == (2.0,)


def test_inputs_read_back_as_they_were_written() -> None:
    layout = TrialLayout((DrawLayout((3, 4), (8,), (7, 0.1)), DrawLayout((5, 1), (2,), (1, -2.5))), threads=2)
    arrays = [b"abc", b"defg", b"hijkl", b"m"]
    read, views = read_inputs(memoryview(write_inputs(layout, arrays)))
    assert read == layout
    assert [bytes(view) for row in views for view in row] == arrays


OUTPUTS = write_outputs([FIRST, SECOND] * len(PASSES))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"junk",
        OUTPUTS[:-1],
        OUTPUTS + b"x",
        b"x" * len(OUTPUTS),
        write_damage(Damage(9, 0, 0, True, 1)),
        write_damage(Damage(0, 2, 0, True, 1)),
        write_damage(Damage(0, 0, 1, True, 1)),
        write_damage(Damage(0, 0, 0, True, -7)),
    ],
)
def test_an_answer_that_is_none_is_told_apart(answer: bytes) -> None:
    with pytest.raises(LayoutError):
        read_outputs(LAYOUT, answer)


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 4000,
        b'{"threads": 1, "draws": [[[-9], [], []]]}',
        b'{"threads": 1, "draws": [[[1e9], [], []]]}',
        b'{"threads": 1, "draws": [[[999999999999], [], []]]}',
        b'{"threads": 1, "draws": 7}',
        b"",
    ],
)
def test_inputs_that_a_tasks_author_forged_are_refused(header: bytes) -> None:
    """They are read in our own process too, to explain a failure."""
    for length in (len(header), 1 << 40, -5):
        with pytest.raises((ValueError, TypeError, KeyError, RecursionError)):
            read_inputs(memoryview(struct.pack("<q", length) + header + bytes(100)))
