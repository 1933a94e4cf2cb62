"""Sizes that follow from others, code that data and reference share, and where an imported problem comes from."""

import pytest
import torch
from problems.examples import CONVOLUTION, read_example

from opsmith.errors import TaskError
from opsmith.problems.derived_sizes import evaluate_size, parse_size
from opsmith.problems.digest import hash_problem
from opsmith.problems.dims import DimError
from opsmith.problems.drawing import draw_data, draw_with_margins
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.reference import compute_expected
from opsmith.targets.native.signature import make_signature
from opsmith.targets.native.statement import write_statement
from opsmith.targets.native.task import NativeOptions


def test_an_imported_problem_reads_back_as_it_was_written() -> None:
    file = read_problem(CONVOLUTION)
    assert read_problem(write_problem(file)) == file
    source = file.problem.source
    assert source is not None
    assert (source.format, source.arguments, source.sizes) == ("kernelbench", ("x", "slope"), {"H": 4096})
    assert source.text == "\nimport torch\n  # an odd indentation\n"


@pytest.mark.parametrize("text", ["a\r\nb", "  x\n \n\ty", "\n\n", "é\u2028", "no end", "two ends\n\n"])
def test_the_text_of_a_source_is_kept_to_the_last_character(text: str) -> None:
    file = read_problem(CONVOLUTION)
    assert file.problem.source is not None
    object.__setattr__(file.problem.source, "text", text)
    again = read_problem(write_problem(file)).problem.source
    assert again is not None
    assert again.text == text


def test_a_derived_size_follows_and_is_given_to_programs() -> None:
    problem = read_example(CONVOLUTION)
    assert problem.base_sizes == {"C": 3, "O": 4, "H": 9, "H_out": 5}
    assert problem.complete_sizes({"H": 33})["H_out"] == 17
    assert "int64_t H, int64_t H_out, double slope" in make_signature(problem).prototype
    statement = write_statement(problem, NativeOptions(), "convolution")
    assert "the size H_out = (H + 2*1 - 3)//2 + 1" in statement
    assert "torch.nn.Conv1d(C, O, 3, bias=False)" in statement
    assert "kernelbench" not in statement, "where a problem comes from is not shown to a model"


def test_data_and_reference_share_the_setup_at_every_size() -> None:
    problem = read_example(CONVOLUTION)
    declared, wide = draw_with_margins(problem, {"C": 2, "O": 6, "H": 12}, "a seed")
    assert declared.input_data["weight"].shape == (6, 2, 3)
    assert compute_expected(problem, wide)[0][0].shape == (6, 6)
    again = draw_data(problem, {}, 7).input_data["weight"]
    assert torch.equal(again, draw_data(problem, {}, 7).input_data["weight"])
    assert not torch.equal(again, draw_data(problem, {}, 8).input_data["weight"])


def test_hidden_sizes_vary_what_is_stated_alone() -> None:
    problem = read_example(CONVOLUTION)
    sizes = [*HiddenPool(problem, lambda sizes: sizes).list_materials("a program")]
    assert sizes
    assert all("H_out" not in chosen for chosen in sizes)
    assert all(problem.complete_sizes(chosen)["H_out"] >= 1 for chosen in sizes)


def test_where_a_problem_comes_from_is_no_part_of_what_it_asks() -> None:
    digest = hash_problem(read_example(CONVOLUTION))
    assert digest == hash_problem(read_example(CONVOLUTION, ("licence: MIT", "licence: BSD")))
    assert digest != hash_problem(read_example(CONVOLUTION, ("bias=False", "bias=False, groups=1")))
    assert digest != hash_problem(read_example(CONVOLUTION, ("2*1 - 3", "2 - 3")))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("(H + 2*1 - 3)//2 + 1", "(H + L)//2", "L is no dim above it"),
        ("(H + 2*1 - 3)//2 + 1", "H/2", "cannot read"),
        ("(H + 2*1 - 3)//2 + 1", "H - 9", "no size of at least 1: H = 9"),
        ("{H_out: (H", "{C: (H", "already the dim"),
        ("odd: {C: 5,", "odd: {H_out: 5,", "the symbol H_out"),
        ("make_model():\n", "make_model(:\n", "Python code"),
        ("format: kernelbench", "format: kernelbank", "one of kernelbench, flashinfer"),
        ("sha256: e3b0", "sha256: e3", "64 hexadecimal digits"),
        ("arguments: [x, slope]", "arguments: [x, slop]", "an input or a scalar"),
        ("weights: {weight:", "weights: {bias:", "a key of the module's state"),
        ("sizes: {H: 4096}", "sizes: {H: many}", "an int of at least 1"),
    ],
)
def test_a_mistake_in_these_sections_is_told(before: str, after: str, words: str) -> None:
    with pytest.raises(TaskError) as caught:
        read_example(CONVOLUTION, (before, after))
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["__import__('os')", "H ** 2", "H.real", "min(H)", "True", "(" * 150, "[H][0]", "1.5"])
def test_a_derived_size_is_arithmetic_and_nothing_else(text: str) -> None:
    with pytest.raises(DimError):
        parse_size(text)


def test_what_has_no_whole_value_is_no_size() -> None:
    assert evaluate_size("max(H % 4, min(N, 3), -H + 12)", {"H": 9, "N": 5}) == 3
    for text in ("H // (N - 5)", "N - H"):
        with pytest.raises(DimError, match="no size of at least 1"):
            evaluate_size(text, {"H": 9, "N": 5})
