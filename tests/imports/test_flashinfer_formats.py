"""Whatever a text of FlashInfer Trace says, it is a model or an error that names the place."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imports.definitions import RMS_NORM, make_workload

from opsmith.errors import TaskError
from opsmith.imports.flashinfer.formats import (
    Definition,
    FlashinferSolution,
    Trace,
    Workload,
    read_json,
    read_model,
    write_model,
)

SOLUTION: dict[str, Any] = {
    "name": "s",
    "definition": "d",
    "author": "a",
    "spec": {"language": "cpp", "target_hardware": ["cpu"], "entry_point": "main.cpp::run"},
    "sources": [{"path": "main.cpp", "content": "// nothing"}],
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def test_what_is_written_reads_back_as_the_same_model() -> None:
    for model, data in ((Definition, RMS_NORM), (FlashinferSolution, SOLUTION)):
        read = read_model(model, data)
        assert read_model(model, read_json(write_model(read))) == read
    trace = read_model(Trace, make_workload(RMS_NORM, {"batch_size": 3}))
    assert read_model(Trace, read_json(write_model(trace))) == trace


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5000, "Exceeds the limit"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": 1', "Expecting"),
        ("", "Expecting value"),
    ],
)
def test_a_text_that_is_no_json_says_why(text: str, words: str) -> None:
    with pytest.raises(TaskError, match=words):
        read_json(text, "x.json")


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("axes", "batch_size"), {"type": "free"}, "axes.batch_size"),
        (("axes", "hidden_size", "value"), 10**30, "axes.hidden_size.const.value"),
        (("axes", "hidden_size", "value"), -1, "greater than or equal to 1"),
        (("axes", "hidden_size", "value"), 2.5, "valid integer"),
        (("axes", "hidden_size", "value"), True, "given True"),
        (("inputs", "weight", "shape"), "hidden_size", "inputs.weight.shape"),
        (("inputs", "weight", "shape"), ["nothing"], "its axis 'nothing' is none of batch_size, hidden_size"),
        (("outputs",), {}, "outputs: given a mapping of 0"),
        (("outputs",), {"weight": {"shape": None, "dtype": "float32"}}, "an input and an output of one name"),
        (("reference",), None, "reference: given None"),
        (("name",), ["a"], "name: given a list of 1"),
        (("tags",), ["x" * 5000], "at most 200 characters"),
    ],
)
def test_a_wrong_definition_names_the_key(keys: tuple[str, ...], value: object, words: str) -> None:
    data = json.loads(json.dumps(RMS_NORM))
    place = data
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    with pytest.raises(TaskError) as caught:
        read_model(Definition, data, "rms.json")
    assert words in str(caught.value)
    assert str(caught.value).startswith("rms.json: no Definition: ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sources": [{"path": "../main.cpp", "content": ""}]}, "expected one within the solution"),
        ({"sources": [{"path": "/etc/passwd", "content": ""}]}, "expected one within the solution"),
        ({"sources": [{"path": "other.cpp", "content": ""}]}, "'main.cpp' is none of the sources"),
        ({"sources": SOLUTION["sources"] * 2}, "two of one path"),
        ({"spec": {**SOLUTION["spec"], "entry_point": "run"}}, "spec.entry_point"),
    ],
)
def test_a_wrong_solution_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(TaskError, match="no Solution") as caught:
        read_model(FlashinferSolution, {**SOLUTION, **change})
    assert words in str(caught.value)


@given(data=ANY_JSON, key=st.sampled_from([*RMS_NORM, "axes.hidden_size", "inputs.weight", "inputs.weight.shape"]))
@settings(max_examples=150, deadline=None)
def test_any_value_at_any_key_is_a_model_or_a_message(data: object, key: str) -> None:
    definition = json.loads(json.dumps(RMS_NORM))
    *path, last = key.split(".")
    place = definition
    for step in path:
        place = place[step]
    place[last] = data
    for model in (Definition, Workload, FlashinferSolution, Trace):
        with contextlib.suppress(TaskError):
            assert read_model(model, definition) is not None
