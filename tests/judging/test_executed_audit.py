"""`opsmith check` on targets whose candidates are executed: real processes, answers in several encodings."""

import json
from dataclasses import replace

import pytest
from harmful import SMALL, needs_isolation
from tiny_target import TINY_PYTHON

from opsmith.judging.audit import findings_from_json
from opsmith.judging.encodings import read_arrays
from opsmith.judging.pool import Pool

pytestmark = needs_isolation

SUM = {"x": [1, 5, 9, 12], "y": [3, 7, 2, 8]}
ADDS = "def solve(x, y):\n    return x + y\n"


@pytest.fixture(scope="module")
def check():
    """What an audit finds: check -> (state, what was found), the worst last."""
    with Pool(2, sandbox=SMALL) as pool:

        def found(target="tiny_target:TINY_PYTHON", impl=ADDS, inputs=SUM, want=(4, 12, 11, 20)):
            text = json.dumps({"inputs": inputs, "want": list(want)})
            task = replace(TINY_PYTHON.read_task(text, "python_0"), target=target, impl=impl)
            findings = findings_from_json(pool.audit(task).result())
            return {finding.check: (finding.state.value, finding.tried, finding.found) for finding in findings}

        yield found


def states(found):
    return {check: state for check, (state, *_) in found.items()}


FINE = dict.fromkeys(("data", "program", "reference", "answers", "tolerance", "inputs"), "fine")


@pytest.mark.parametrize("target", ["tiny_target:TINY_PYTHON", "encoding_targets:VECTORS"])
def test_a_right_task_is_fine_in_every_encoding_that_can_be_read(check, target):
    found = check(target)
    assert states(found) == FINE
    assert found["answers"][1] == "6 refused"
    assert found["inputs"][1] == "2 matter"


@pytest.mark.parametrize(
    ("impl", "words"),
    [("def solve(x, y):\n    return x - y\n", "refused at MATCH"), ("def solve(x, y) return x", "refused at PARSE")],
)
def test_a_wrong_impl_is_a_fault_and_the_rest_is_said_to_be_unchecked(check, impl, words):
    found = check(impl=impl)
    assert states(found) == {"data": "fine", "program": "faulty", "answers": "not checked"}
    assert words in found["program"][2]


def test_without_an_impl_nothing_but_the_trials_can_be_checked(check):
    assert states(check(impl=None)) == {"data": "fine", "program": "not checked", "answers": "not checked"}


def test_trials_that_cannot_be_made_are_the_authors_fault_and_a_failing_target_is_not(check):
    assert states(check(want=(1, 2))) == {"data": "faulty"}
    found = check("failing_target:python_encode_inputs")
    assert states(found) == {"data": "not checked"}
    assert "failing_target.py:" in found["data"][2]
    assert states(check("failing_target:python_compare_outputs"))["program"] == "not checked"


def test_a_comparison_that_takes_anything_is_a_fault(check):
    found = check("encoding_targets:CARELESS")
    assert (found["answers"][0], found["tolerance"][0]) == ("faulty", "faulty")
    found = check("encoding_targets:LOOSE")
    assert (found["answers"][0], found["tolerance"][0]) == ("fine", "faulty")


def test_an_output_that_is_always_the_same_is_a_fault(check):
    found = check(impl="def solve(x, y):\n    return 0\n", want=(0, 0, 0, 0))
    assert (found["answers"][0], found["inputs"][0]) == ("faulty", "faulty")


def test_an_input_that_a_program_may_ignore_is_a_fault(check):
    found = check(impl="def solve(x, y):\n    return x * x\n", want=(1, 25, 81, 144))
    assert found["inputs"][:2] == ("faulty", "y drawn anew, everything else kept")
    assert states(found) == FINE | {"inputs": "faulty"}


def test_a_single_trial_shows_little_and_that_is_said(check):
    found = check(inputs={"x": [1], "y": [3]}, want=[4])
    assert found["inputs"][0] == "not checked"
    assert found["answers"][:2] == ("faulty", "the output = the mean of the first trial")


def test_data_that_are_drawn_without_a_seed_are_a_fault(check):
    found = check("encoding_targets:UNSEEDED")
    assert states(found) == FINE | {"reference": "faulty"}
    assert "without a seed" in found["reference"][2]


def test_what_an_opaque_encoding_hides_is_said(check):
    found = check("encoding_targets:OPAQUE")
    assert states(found) == FINE | {"tolerance": "not checked", "inputs": "not checked"}
    assert "no JSON, .npy or .npz" in found["tolerance"][2]


def test_a_target_s_own_audit_gets_real_verdicts_and_has_the_last_word(check):
    found = check("encoding_targets:WITH_AUDIT")
    assert found["inputs"] == ("note", "return x, return y", "['refused', 'refused']")
    assert states(found) == FINE | {"inputs": "note"}


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"a": "text"}', b"[[1], [2, 3]", b"[" * 100_000, b"null", b"\x93NUMPY", b"PK\x03\x04", b"[1e999999, {}]"],
)  # fmt: skip
def test_bytes_that_are_no_numbers_are_opaque(data):
    assert read_arrays(data) is None


@pytest.mark.parametrize("text", ["3", "[1, 2]", "[[1.5, 2.0]]", "true", '{"a": [1], "b": 2.5}', "[[1], [2, 3]]"])
def test_json_is_written_as_it_was_read(text):
    found = read_arrays(text.encode())
    assert found is not None
    assert found.write(found.arrays).decode() == text
