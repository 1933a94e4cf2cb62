"""Code that data and reference share, and where an imported problem comes from."""

import pytest
import torch
from problems.examples import CONVOLUTION, read_example

from opsmith.errors import TaskError
from opsmith.problems.digest import hash_problem
from opsmith.problems.drawing import draw_data, draw_with_margins
from opsmith.problems.files.canonical import write_problem
from opsmith.problems.files.reading import read_problem
from opsmith.problems.hidden_sizes import HiddenPool
from opsmith.problems.reference import compute_expected
from opsmith.records import Scrutiny
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


def test_a_model_is_shown_the_setup_and_not_where_the_problem_comes_from() -> None:
    problem = read_example(CONVOLUTION)
    statement = write_statement(problem, NativeOptions(), "convolution")
    assert "torch.nn.Conv1d(C, O, 3, bias=False)" in statement
    assert "kernelbench" not in statement


def test_data_and_reference_share_the_setup_at_every_size() -> None:
    problem = read_example(CONVOLUTION)
    declared, wide = draw_with_margins(problem, {"C": 2, "O": 6, "H": 12, "H_out": 6}, "a seed")
    assert declared.input_data["weight"].shape == (6, 2, 3)
    assert compute_expected(problem, wide)[0][0].shape == (6, 6)
    again = draw_data(problem, {}, 7).input_data["weight"]
    assert torch.equal(again, draw_data(problem, {}, 7).input_data["weight"])
    assert not torch.equal(again, draw_data(problem, {}, 8).input_data["weight"])


def test_hidden_sizes_of_a_problem_with_setup_run() -> None:
    problem = read_example(CONVOLUTION)
    pool = HiddenPool(problem, lambda sizes, seed: draw_data(problem, sizes, seed).sizes)
    sizes = [*pool.list_materials(Scrutiny("a secret"))]
    assert sizes
    assert all(chosen["H_out"] == (chosen["H"] - 1) // 2 + 1 for chosen in sizes)


def test_where_a_problem_comes_from_is_no_part_of_what_it_asks() -> None:
    digest = hash_problem(read_example(CONVOLUTION))
    assert digest == hash_problem(read_example(CONVOLUTION, ("licence: MIT", "licence: BSD")))
    assert digest != hash_problem(read_example(CONVOLUTION, ("bias=False", "bias=False, groups=1")))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
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
