"""What gcc's vectoriser writes of loops becomes remarks by line: why not, how wide, in which order, in which steps."""

from __future__ import annotations

import pytest

from opsmith.targets.native.loop_dump import LoopRemark, read_loop_dump

STRIDED = """\

;; Function kernel (kernel, funcdef_no=0, decl_uid=4095, cgraph_uid=1, symbol_order=0)

Analyzing loop at kernel.c:6
kernel.c:6:31: missed:   not vectorized: multiple nested loops.
kernel.c:6:31: missed: couldn't vectorize loop

Analyzing loop at kernel.c:8
kernel.c:8:35: missed:   step unknown.
Creating dr for *_5
analyze_innermost: success.
\tbase_address: (const float *) a_34(D) + (sizetype) m_43 * 4
\tstep: (ssizetype) ((long unsigned int) M_27(D) * 4)
\tbase alignment: 4
\tbase_object: *(const float *) a_34(D) + (sizetype) m_43 * 4
Creating dr for *_11
\tstep: 4
\tbase_object: *b_35(D)
kernel.c:8:35: note:   using an in-order (fold-left) reduction.
kernel.c:8:35: missed:  cost model: the vector iteration cost = 3512 divided by the scalar iteration cost = 52 is greater\
 or equal to the vectorization factor = 16.
kernel.c:8:35: missed:  not vectorized: vectorization not profitable.
kernel.c:8:35: note:  ***** Analysis  failed with vector mode V16SF
kernel.c:8:35: missed:  not vectorized: control flow in loop.
"""
VECTORISED = """\
Analyzing loop at kernel.c:7
kernel.c:7:31: note:   using an in-order (fold-left) reduction.
kernel.c:7:31: note:  ***** Analysis succeeded with vector mode V16SF
kernel.c:7:31: optimized: loop vectorized using 64 byte vectors
kernel.c:7:31: optimized: loop vectorized using 32 byte vectors
"""


def test_the_first_width_says_why_and_steps_are_told_where_neighbours_are_not_read() -> None:
    nest, loop = read_loop_dump(STRIDED, {"a": 4, "b": 4})
    assert nest == LoopRemark(6, is_nest=True)
    reason = "not worth it by its estimate: 16 rounds at once cost 3512, one by one 16 x 52 = 832"
    assert loop == LoopRemark(8, is_in_order=True, reasons=(reason,), steps={"a": "M * 4"})


def test_a_vectorised_loop_has_the_widest_of_its_widths_and_no_reason() -> None:
    assert read_loop_dump(VECTORISED, {}) == (LoopRemark(7, 64, is_in_order=True),)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("statement clobbers memory: _17 = expf (_16);", "line 9 calls expf, of which it knows no vector form here"),
        (
            "  not vectorized: relevant stmt not supported: largest_48 = fmaxf (_9, largest_58);",
            "line 9 calls fmaxf, of which it knows no vector form here",
        ),
        ("  failed: evolution of base is not affine.", "line 9: an address follows from data"),
        ("  reduction used in loop.", "what it accumulates is used in the same round"),
        ("  not vectorized: something new.", "the compiler says: something new."),
    ],
)
def test_each_message_has_words(message: str, reason: str) -> None:
    [remark] = read_loop_dump(f"Analyzing loop at kernel.c:8\nkernel.c:9:3: missed: {message}\n", {})
    assert len(remark.reasons) == 1
    assert remark.reasons[0].startswith(reason)


@pytest.mark.parametrize("text", ["", "no dump", "Analyzing loop at kernel.c:x\n", "\0\ufffd"])
def test_a_text_of_another_form_has_no_remarks(text: str) -> None:
    assert read_loop_dump(text, {}) == ()
