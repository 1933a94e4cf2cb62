"""Answers that need no computing, for every form of outputs, and inputs mixed out of two trials."""

import io
import json

import numpy as np
import pytest

from opsmith.judging.encodings import read_arrays
from opsmith.judging.lazy_answers import lazy_answers, mixed_inputs, moved_answer


def pack(value: object) -> bytes:
    return json.dumps(value).encode()


def pack_arrays(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(array) for name, array in arrays.items()})
    return file.getvalue()


def test_of_opaque_outputs_there_are_four() -> None:
    answers = dict(lazy_answers(b"\xffab", b"first", b"other", b"input"))
    assert answers == {
        "nothing": b"",
        "zero bytes": b"\0\0\0",
        "its inputs": b"input",
        "the outputs of another trial": b"other",
    }


def test_every_output_is_replaced_by_what_needs_no_computing() -> None:
    right = pack({"y": [3.0, 5.0], "z": [[1, 2], [3, 4]]})
    first, other = pack({"y": [1.0, 2.5], "z": [[9, 9], [9, 8]]}), pack({"y": [7.0, 8.0], "z": [[0, 0], [0, 1]]})
    answers = dict(lazy_answers(right, first, other, pack({"x": [6.0, 4.0], "long": [1.0] * 3, "one": 2})))
    values = {name: None if data is None else json.loads(data) for name, data in answers.items()}
    z = [[1, 2], [3, 4]]
    assert values["y = zeros"] == {"y": [0.0, 0.0], "z": z}
    assert values["y = ones"] == {"y": [1.0, 1.0], "z": z}
    assert values["y = the mean of the first trial"] == {"y": [1.75, 1.75], "z": z}
    assert values["y = the value of another trial"] == {"y": [7.0, 8.0], "z": z}
    assert values["y = input x"] == {"y": [6.0, 4.0], "z": z}
    assert values["y = input one"] == {"y": [2.0, 2.0], "z": z}
    assert values["y = input long"] is None
    assert values["y = output z"] is None
    assert values["z = output y"] == {"y": [3.0, 5.0], "z": [[3, 5], [3, 5]]}
    assert values["z = the mean of the first trial"] == {"y": [3.0, 5.0], "z": [[9, 9], [9, 9]]}
    assert len(values) == 2 * 8


def test_an_output_without_a_name_and_a_mean_of_what_is_finite() -> None:
    right, first = io.BytesIO(), io.BytesIO()
    np.save(right, np.array([1.0, 2.0]))
    np.save(first, np.array([np.inf, 4.0]))
    answers = dict(lazy_answers(right.getvalue(), first.getvalue(), b"junk", b"junk"))
    assert list(answers) == ["the output = zeros", "the output = ones", "the output = the mean of the first trial"]
    mean = read_arrays(answers["the output = the mean of the first trial"] or b"")
    assert mean is not None
    assert mean.arrays[""].tolist() == [4.0, 4.0]
    first.seek(0)
    np.save(first, np.array([np.inf, np.nan]))
    answers = dict(lazy_answers(right.getvalue(), first.getvalue(), b"", b""))
    assert answers["the output = the mean of the first trial"] == answers["the output = zeros"]


@pytest.mark.parametrize(
    ("right", "moved"),
    [
        ({"y": [3.0, -5.0]}, {"y": [3.5, -4.5]}),
        ({"y": [3, -50]}, {"y": [8, -45]}),
        ({"y": [3, 1]}, {"y": [4, 2]}),
        ({"y": [0.0, 0.0], "z": [4]}, {"y": [0.0, 0.0], "z": [5]}),
        ({"y": [True, False]}, None),
        ({"y": [0.0]}, None),
        ("no numbers", None),
    ],
)
def test_numbers_are_moved_by_a_tenth_of_the_largest(right: object, moved: object) -> None:
    answer = moved_answer(pack(right))
    assert (None if answer is None else json.loads(answer)) == moved


def test_small_whole_numbers_of_every_type_are_moved_by_one() -> None:
    answer = read_arrays(moved_answer(pack_arrays(y=np.array([1, 2], np.uint8), z=np.array([1.0, np.inf]))) or b"")
    assert answer is not None
    assert (answer.arrays["y"].tolist(), answer.arrays["y"].dtype) == ([2, 3], np.uint8)
    assert answer.arrays["z"].tolist() == [1.1, np.inf]


def test_an_input_is_taken_from_a_trial_that_has_other_numbers_in_that_shape() -> None:
    own = {"x": [1, 2], "y": [3], "n": [5]}
    others = [own, {"x": [1, 2, 3], "y": [3]}, {"x": [8, 9], "n": [5]}]
    mixed = mixed_inputs(pack(own), [*map(pack, others), b"junk"])
    assert mixed == {"x": pack({"x": [8, 9], "y": [3], "n": [5]}), "y": None, "n": None}
    assert mixed_inputs(b"junk", [pack(own)]) == {}


def test_what_holds_no_numbers_is_not_read() -> None:
    for data in (pack({"y": ["a"]}), pack({}), b"PK\3\4", b"\x93NUMPY", b"{", pack_arrays(y=np.array([1j]))):
        assert read_arrays(data) is None
    rows = read_arrays(pack([[1, 2], [3]]))
    assert rows is not None
    assert {name: array.tolist() for name, array in rows.arrays.items()} == {"0": [1, 2], "1": [3]}
    assert rows.with_array("1", np.array([7.9])) == pack([[1, 2], [7]])
