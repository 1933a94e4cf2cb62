"""Dims and types: normal forms, printing, and errors with words."""

import pickle
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsmith.problems.dims import Dim, DimError, make_literal, make_symbol, parse_dim
from opsmith.targets.step.language.types import (
    StepTypeError,
    element_shape,
    parse_dims,
    parse_stream,
    parse_type,
    tensor_shape,
)

SIZES = {"M": 3, "N": 2, "K": 2, "D": 4, "E": 2}


@pytest.mark.parametrize(
    ("left", "right"),
    [("N*K", "K*N"), ("2*(3*M)", "6*M"), ("1*M", "M"), ("4*(D/4)", "D"), ("M*N//N", "M"), (" ( M ) * 2 ", "2*M")],
)
def test_equal_monomials_are_equal(left, right):
    assert parse_dim(left) == parse_dim(right)
    assert hash(parse_dim(left)) == hash(parse_dim(right))


@pytest.mark.parametrize(("left", "right"), [("M*M", "M"), ("3", "M"), ("M", "N"), ("M/2", "M")])
def test_different_monomials_differ_whatever_the_sizes(left, right):
    assert parse_dim(left) != parse_dim(right)


@pytest.mark.parametrize("text", ["", "M+1", "M-N", "M**2", "2 3", "(M", "M)", "M*", "-1", "0", "M.N", "9" * 400])
def test_what_is_no_dim_is_refused_with_its_text(text):
    with pytest.raises(DimError):
        parse_dim(text)


def test_a_dim_without_a_whole_value_says_why():
    with pytest.raises(DimError, match="D/3 is not an integer: D = 16"):
        parse_dim("D/3").value({"D": 16})
    with pytest.raises(DimError, match="the size of E is not known"):
        parse_dim("E").value({"D": 16})


def test_products_are_bounded():
    with pytest.raises(DimError, match="64 factors"):
        prod([make_symbol("M")] * 65)


DIMS = st.recursive(
    st.sampled_from([make_symbol("M"), make_symbol("N"), make_symbol("D"), make_literal(2), make_literal(3)]),
    lambda inner: st.builds(lambda a, b, up: a * b if up else a / b, inner, inner, st.booleans()),
    max_leaves=6,
)


@given(DIMS)
def test_a_printed_dim_reads_back(dim: Dim):
    assert parse_dim(str(dim)) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim


@pytest.mark.parametrize(
    ("text", "dims", "shape"),
    [
        ("fp32", ["M", "N"], (2, 3)),
        ("Buffer(fp32, [D, K])", ["M", "N"], (2, 3, 2, 4)),
        ("Multihot(fp32, E)", ["N", "M"], (3, 2, 2)),
        ("Buffer(Multihot(fp32,E),[K])", ["M"], (3, 2, 2)),
        ("Buffer(fp32, [M*N])", [1], (1, 6)),
    ],
)
def test_the_tensor_of_a_stream_has_reversed_dims_then_the_element(text, dims, shape):
    assert tensor_shape(parse_type(text), parse_dims(dims), SIZES) == shape
    assert element_shape(parse_type(text), SIZES) == shape[len(dims) :]


def test_equality_of_types_is_structural_and_ordered():
    assert parse_type("Buffer(fp32, [M, N])") != parse_type("Buffer(fp32, [N, M])")
    assert parse_type("Buffer(fp32,[N*K])") == parse_type("Buffer(fp32, [K*N])")
    assert parse_type("Buffer(fp32, [E])") != parse_type("Multihot(fp32, E)")
    assert parse_type(["fp32", "int32"]) != parse_type(["int32", "fp32"])
    assert parse_type(["fp32"]) == parse_type("fp32")


@pytest.mark.parametrize(
    ("given_type", "words"),
    [
        ("float", "expected one of fp32"),
        ("Buffer(fp32)", "two arguments"),
        ("Buffer(fp32, D)", r"try: Buffer\(fp32, \[D\]\)"),
        ("Buffer(Buffer(fp32, [D]), [K])", "no Buffer in a Buffer"),
        ("Buffer(fp32, [])", "at least one dim"),
        ("Multihot(Buffer(fp32, [D]), E)", "number type first"),
        ([["fp32", "fp32"], "fp32"], "a type as text"),
        (7, "a type as text"),
    ],
)
def test_a_wrong_type_says_what_was_expected(given_type, words):
    with pytest.raises(StepTypeError, match=words):
        parse_type(given_type)


@pytest.mark.parametrize("dims", [None, "M", [], [True], [None], [1.5], ["M+1"], [0]])
def test_wrong_dims_are_refused(dims):
    with pytest.raises(StepTypeError):
        parse_dims(dims)


@pytest.mark.parametrize("text", ["fp32 [M]", "[fp32, Buffer(fp32, [D])] [M, N]", "Multihot(fp32, E) [1, M*N]"])
def test_a_printed_stream_type_reads_back(text):
    assert str(parse_stream(text)) == text
