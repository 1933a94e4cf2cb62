"""A problem file is read strictly, written canonically, and named by what it asks for."""

import re

import pytest
import torch
from problems.examples import RMS_NORM, SOFTMAX, TOP_TWO, read_example

from opsmith.errors import TaskError
from opsmith.problems.digest import hash_problem
from opsmith.problems.drawing import draw_data, draw_with_margins
from opsmith.problems.faults import TaskFault
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import is_problem_file, read_problem, read_problem_with_warnings
from opsmith.problems.reference import compute_expected
from opsmith.problems.shape_sets import choose_shape_sets


def test_a_file_states_everything_that_a_program_is_called_with() -> None:
    file = read_problem(RMS_NORM)
    problem = file.problem
    assert (file.name, file.group) == ("rms_norm", "norm")
    assert [tensor.name for tensor in problem.inputs] == ["x", "weight"]
    assert list(problem.sizes.items()) == [("M", 8), ("N", 300)]
    assert problem.scalars == {"eps": 1e-5}
    assert problem.accumulation == "fp32"
    assert problem.bench["odd"] == {"M": 63, "N": 511}
    assert list(choose_shape_sets(problem)) == ["base", "odd"], "built-in shape sets are those of task files"


@pytest.mark.parametrize("text", [SOFTMAX, RMS_NORM, TOP_TWO])
def test_what_is_written_reads_back_as_the_same_problem(text: str) -> None:
    file = read_problem(text)
    canonical = write_problem(file)
    assert read_problem(canonical) == file
    assert write_problem(read_problem(canonical)) == canonical
    assert is_problem_file(canonical)
    assert not is_problem_file("inputs: []\n")


def test_the_digest_is_of_the_problem_not_of_its_text() -> None:
    problem = read_example(RMS_NORM)
    assert hash_problem(problem) == hash_problem(read_example(RMS_NORM, ("{M: 8, N: 300}", "{M: 8,  N: 300}")))
    changes = [
        ("1.0e-5", "1.0e-6"),
        ("{M: 8, N: 300}", "{N: 300, M: 8}"),  # the order of arguments
        ("accumulation: fp32", "accumulation: bf16"),
        ("odd: {M: 63", "odd: {M: 65"),
        ("uniform(0.5, 1.5)", "uniform(0.5, 1)"),
        ("* weight", "* weight + 0"),
    ]
    digests = {hash_problem(read_example(RMS_NORM, change)) for change in changes}
    assert len(digests) == len(changes)
    assert hash_problem(problem) not in digests


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("dtype: bf16, shape: [M, N]}", "dtype: bf61, shape: [M, N]}", 10, "one of fp32"),
        ("shape: [N], ", "shape: [N, L], ", 8, "a size for it under `dims`: L: 64"),
        ("shape: [N], ", "shape: [N/7], ", 8, "N/7 is not an integer"),
        ("{M: 8, N: 300}", "{M: 0, N: 300}", 5, "an int from 1"),
        ("{eps: 1.0e-5}", "{x: 1.0e-5}", 9, "already the input"),
        ("{eps: 1.0e-5}", "{eps: small}", 9, "a number, such as 1.0e-5"),
        ("(x, weight, eps)", "(x, weight, epsilon)", 12, "def rms_norm(x, weight, eps): ..."),
        ("return x *", "return x x *", 13, "Python code"),
        ("{odd: {M: 7, ", "{odd: {P: 7, ", 14, "the symbol P"),
        ("accumulation: fp32\n", "", 3, "fp32 or bf16, the type to sum in"),
        ("accumulation: fp32", "accumulation: fp16", 19, "fp32 or bf16"),
        (", large: {M: 512, N: 1024}", "", 20, "at least 3"),
        ("data: normal", "data: normal +", 7, "Python code"),
        ("problem: rms_norm", "problem: rms norm", 3, "a name"),
    ],
)
def test_a_mistake_is_told_with_its_line(before: str, after: str, line: int, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_problem(RMS_NORM.replace(before, after, 1), "rms_norm.yaml")
    assert words in str(caught.value)
    assert re.search(rf"rms_norm\.yaml:{line}:\d+:", str(caught.value)), str(caught.value)


def test_what_code_of_one_language_sees_is_a_name_like_any_other() -> None:
    text = SOFTMAX.replace("name: x", "name: state").replace("softmax(x)", "softmax(state)").replace("(x,", "(state,")
    file = read_problem(text.replace("dims: {", "dims: {step: 3, ").replace("[M, N]", "[M, N]") + "scalars: {}\n")
    assert [tensor.name for tensor in file.problem.inputs] == ["state"]
    assert "step" in file.problem.sizes
    assert read_problem(write_problem(file)) == file
    _, wide = draw_with_margins(file.problem, {}, "a seed")
    assert compute_expected(file.problem, wide)[0][0].shape == (6, 40)


@pytest.mark.parametrize("group", ["linear algebra", "attention with sinks", "log-sum-exp", "in"])
def test_a_group_may_have_several_words(group: str) -> None:
    file = read_problem(f"{SOFTMAX}group: {group}\n")
    assert file.group == group
    assert read_problem(write_problem(file)) == file


@pytest.mark.parametrize("group", ["a  b", '" a"', "a/b", '"a\\nb"', "<b>", '""', "7", "x" * 101])
def test_a_group_is_words_and_nothing_else(group: str) -> None:
    with pytest.raises(TaskError, match="such as linear algebra"):
        read_problem(f"{SOFTMAX}group: {group}\n")


def test_an_unknown_key_is_a_warning_with_what_it_may_have_meant() -> None:
    _, warnings = read_problem_with_warnings(SOFTMAX + "shape: {wide: {N: 99}}\n")
    assert warnings == (
        "line 10, column 8: shape: unknown key without meaning; known: problem, group, dims, inputs, scalars, fixed, outputs, "
        "setup, reference, constraints, ties, shapes, margins, cases, accumulation, bench, source; near matches: shapes",
    )


def test_inputs_are_drawn_in_their_dtype_and_expected_in_float64() -> None:
    problem = read_example(RMS_NORM)
    declared, wide = draw_with_margins(problem, {}, "a seed")
    assert {tensor.dtype for tensor in declared.input_data.values()} == {torch.bfloat16}
    assert torch.equal(declared.input_data["x"].double(), wide.input_data["x"])
    assert compute_expected(problem, wide)[0][0].dtype is torch.float64


def test_an_expression_sees_dims_and_the_inputs_above_it() -> None:
    data = 'data: "uniform(0, 1) + torch.arange(N) * 0 + N"}, {name: shift, dtype: fp32, shape: [M], data: "-x[:, 0]"}]'
    problem = read_example(SOFTMAX, ("data: normal}]", data), ("softmax(x):", "softmax(x, shift):"))
    tensors = draw_data(problem, {"N": 11}, 0).input_data
    assert tensors["x"].shape == (6, 11)
    assert bool((tensors["x"] >= 11).all())
    assert torch.equal(tensors["shift"], -tensors["x"][:, 0])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("torch.rand(N)", "shape (6, 40) for fp32 [M, N]"),
        ("3", "int"),
        ("torch.rand(M, L)", "name 'L' is not defined"),
    ],
)
def test_data_of_another_form_is_the_authors_fault(data: str, words: str) -> None:
    problem = read_example(SOFTMAX, ("data: normal", f'data: "{data}"'))
    with pytest.raises(TaskFault, match="inputs, x, data") as caught:
        draw_data(problem, {}, 0)
    assert words in caught.value.diagnostic.block()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("x.sum(-1)", "shape (6, 40) for fp32 [M, N]"),
        ("x, x", "2 values"),
        ("x.long()", "torch.float64 for fp32"),
        ("x / missing", "name 'missing' is not defined"),
    ],
)
def test_a_reference_of_another_form_is_the_authors_fault(body: str, words: str) -> None:
    problem = read_example(SOFTMAX, ("torch.softmax(x, -1)", body))
    with pytest.raises(TaskFault, match="reference") as caught:
        compute_expected(problem, draw_with_margins(problem, {}, "a seed")[1])
    assert words in caught.value.diagnostic.block()


def test_margins_see_the_outputs_by_name() -> None:
    problem = read_example(TOP_TWO, ("data: normal", 'data: "torch.ones(M, 2 * N)"'))
    with pytest.raises(TaskFault, match="margins"):
        draw_with_margins(problem, {}, "a seed", attempts=2)
    declared, _ = draw_with_margins(read_example(TOP_TWO), {}, "a seed")
    assert declared.input_data["x"].shape == (5, 18)
