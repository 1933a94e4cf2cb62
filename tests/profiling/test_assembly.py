"""Innermost loops are read from assembly: their lines, their instructions, and no loop that holds another."""

from __future__ import annotations

from opsmith.profiling.assembly import MachineLoop, list_innermost_loops

TEXT = """\
\t.file 1 "kernel.c"
kernel:
\t.loc 1 7 27
.L3:
\tvxorps\t%xmm1, %xmm1, %xmm1
\t.loc 1 9 31
.L5:
\tvaddss\t(%rax), %xmm1, %xmm1
\t.loc 1 10 17 discriminator 3
\taddq\t$4, %rax
\tjne\t.L5
\tvmovss\t%xmm1, (%rdi)
\tjg\t.L3
.L7:
\tret
\tjmp\t.L7
\t.string "\\tjne\\t.L5"
"""


def test_a_loop_that_holds_another_or_the_end_of_the_function_is_none() -> None:
    body = ("vaddss\t(%rax), %xmm1, %xmm1", "addq\t$4, %rax", "jne\t.L5")
    assert list_innermost_loops(TEXT) == [MachineLoop(10, 10, body)]
    assert list_innermost_loops(TEXT)[0].mnemonics == ("vaddss", "addq", "jne")


def test_a_text_that_is_no_assembly_has_no_loops() -> None:
    assert list_innermost_loops("") == []
    assert list_innermost_loops(".L1:\n\tjmp\t.L1\n") == []  # of no line
