"""Counts of cachegrind are read by line of the program's own source; nothing of other files is taken for it."""

from __future__ import annotations

from opsmith.profiling.cachegrind import read_counts

COUNTS = """\
desc: D1 cache:         49152 B, 64 B, 12-way associative
events: Ir D1mr
fl=./csu/../csu/libc-start.c
fn=main
7 900 9
fl=/tmp/opsmith-commands-x/kernel.c
fn=kernel
7 10 1
8 20 2
fi=/usr/include/math.h
8 500 5
fe=kernel.c
7 1 0
fl=other_kernel.c
7 77 7
summary: 1508 24
"""


def test_lines_of_the_source_are_summed_over_its_functions() -> None:
    by_line = read_counts(COUNTS, "kernel.c")
    assert {line: dict(row) for line, row in by_line.items()} == {7: {"Ir": 11, "D1mr": 1}, 8: {"Ir": 20, "D1mr": 2}}


def test_a_text_without_counts_has_none() -> None:
    assert read_counts("", "kernel.c") == {}
    assert read_counts("fl=kernel.c\n7 10\n", "kernel.c") == {7: {}}
