"""Expressions of launch plans: their value at sizes is that of the same text in Python."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.targets.gpu.expressions import LARGEST, ExpressionError, evaluate, parse_expression

SIZES = {"M": 5, "N": 7, "K": 1000}
PYTHON = {
    "cdiv": lambda dividend, divisor: -(-dividend // divisor),
    "next_pow2": lambda number: 1 << max(0, math.ceil(math.log2(max(number, 1)))),
    "min": min,
    "max": max,
}

texts = st.recursive(
    st.sampled_from(["M", "N", "K", "0", "3", "16"]),
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*", "//", "%", " + ", " // "]), parts).map("".join),
        parts.map("({})".format),
        parts.map("-{}".format),
        parts.map("next_pow2({})".format),
        st.tuples(st.sampled_from(["cdiv", "min", "max"]), parts, parts).map(lambda words: "{}({}, {})".format(*words)),
    ),
    max_leaves=8,
)


@given(texts)
def test_an_expression_has_the_value_that_python_gives_it(text: str) -> None:
    try:
        expected = eval(text, dict(PYTHON), SIZES)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match=r"where .* is 0"):
            evaluate(text, SIZES)
    else:
        assert evaluate(text, SIZES) == expected
        assert evaluate(str(parse_expression(text)), SIZES) == expected


@given(texts)
def test_the_canonical_text_is_its_own(text: str) -> None:
    canonical = str(parse_expression(text))
    assert str(parse_expression(canonical)) == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("(M)*(N+1)", "M * (N + 1)"),
        ("M-(N-1)", "M - (N - 1)"),
        ("(M-N)-1", "M - N - 1"),
        ("M*(N//2)", "M * (N // 2)"),
        ("cdiv( N ,0256)", "cdiv(N, 256)"),
        ("-(M+1)*2", "-(M + 1) * 2"),
    ],
)
def test_only_needed_brackets_are_written(text: str, canonical: str) -> None:
    assert str(parse_expression(text)) == canonical


def test_division_by_zero_and_numbers_beyond_all_sense_are_said() -> None:
    with pytest.raises(ExpressionError, match=r"M // \(N - 7\), where N - 7 is 0"):
        evaluate("M // (N - 7)", SIZES)
    with pytest.raises(ExpressionError, match=f"at most {LARGEST}"):
        evaluate("*".join(["K"] * 40), SIZES)


def test_a_long_expression_has_a_value_too() -> None:
    text = "+".join(["M"] * 100)
    assert evaluate(str(parse_expression(text)), SIZES) == 500


def test_names_are_those_of_dims() -> None:
    assert list(parse_expression("cdiv(N, 4) + min(M, N) * 2").names) == ["N", "M", "N"]
