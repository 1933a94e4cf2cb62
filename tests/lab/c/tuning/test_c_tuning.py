"""Rewritings of programs in C: text in, text out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsmith import suites
from opsmith.suites import load_tasks
from opsmith.targets.c.canonical import write_canonical
from opsmith.targets.c.source import check_source
from opsmith_lab.c.tuning.digest import tuner_digest
from opsmith_lab.c.tuning.moves import apply_move, list_moves
from opsmith_lab.drawn import draw_problems, write_problems

pytest.importorskip("tree_sitter_c", reason="the parser of C is not installed: pip install 'opsmith[c]'")

PLAIN = Path(suites.__file__).parent / "kernels" / "plain"
SUMS = """
void kernel(const float *restrict x, float *restrict y, int64_t M, int64_t N)
{
    for (int64_t m = 0; m < M; m++) {
        float sum = 0.0f;
        for (int64_t n = 0; n < N; n++) {
            sum += x[m * N + n];
        }
        y[m] = sum;
    }
}
"""


def list_names(source: str) -> list[str]:
    return [move.name for move in list_moves(source)]


def apply_named(source: str, name: str, **parameters: int) -> str:
    moves = [move for move in list_moves(source) if move.name == name and parameters.items() <= move.parameters.items()]
    rewritten = apply_move(source, moves[0])
    assert rewritten is not None
    return rewritten


@pytest.mark.parametrize("path", sorted(PLAIN.glob("*.c")), ids=lambda path: path.stem)
def test_every_move_gives_another_program_that_may_be_compiled(path: Path) -> None:
    source = path.read_text()
    for move in list_moves(source):
        rewritten = apply_move(source, move)
        assert rewritten is not None, move
        assert check_source(rewritten) == ()
        assert write_canonical(rewritten) != write_canonical(source)


def test_a_sum_over_a_row_has_a_lane_for_each_partial_sum() -> None:
    assert "#pragma omp simd reduction(+ : sum)\n        for (int64_t n" in apply_named(SUMS, "vectorise-reduction")


def test_a_loop_whose_turns_need_each_other_is_left_alone() -> None:
    chained = SUMS.replace("sum += x[m * N + n];", "y[n] = y[n - 1] + x[n];").replace("y[m] = sum;", "")
    assert list_names(chained) == []


def test_rows_that_overlap_are_no_parallel_rows() -> None:
    overlapping = SUMS.replace("y[m] = sum", "for (int64_t k = 0; k < N; k++) { y[m * 2 + k] = sum; }")
    assert "interleave" not in list_names(overlapping)
    assert "interleave" in list_names(overlapping.replace("m * 2", "m * N"))


def test_a_tile_has_a_sum_for_every_place_and_keeps_the_loops_for_small_sizes() -> None:
    columns = SUMS.replace("x[m * N + n]", "x[n * M + m]")
    tiled = apply_named(columns, "tile", rows=1, columns=64)
    assert "float sum[64];" in tiled
    assert "sum[m_place] += x[n * M + m];" in tiled
    assert "} else {" in tiled
    assert "sum += x[n * M + m];" in tiled


@pytest.mark.parametrize("name", ["conv2d", "softmax", "batched_gemm"])
def test_other_names_of_variables_give_the_same_moves(name: str) -> None:
    source = (PLAIN / f"{name}.c").read_text()
    names = set(re.findall(r"\b[a-z]\w*\b(?=\s*(?:=|<|\+\+|\+=|\[|;))", source)) - {"kernel", "int64_t"}
    renamed = re.sub(r"\b[a-z]\w*\b", lambda word: f"q_{word[0]}" if word[0] in names else word[0], source)
    assert renamed != source
    own, other = list_moves(source), list_moves(renamed)
    assert [(move.name, move.line, move.parameters) for move in own] == [
        (move.name, move.line, move.parameters) for move in other
    ]


def test_a_text_that_is_no_program_has_no_moves() -> None:
    assert list_moves("void kernel( {") == []


def test_the_tuner_has_a_digest() -> None:
    assert re.fullmatch(r"[0-9a-f]{16,}", tuner_digest())


def test_a_tile_that_calls_functions_gets_their_vector_forms() -> None:
    rooted = SUMS.replace("x[m * N + n]", "x[n * M + m]").replace("y[m] = sum;", "y[m] = expf(sum);")
    assert "float expf(float);" in apply_named(rooted, "tile", rows=1, columns=64)


def test_rows_of_different_lengths_make_no_tile() -> None:
    triangle = """
    void kernel(const float *restrict x, float *restrict y, int64_t M)
    {
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = 0; j < i; j++) {
                float sum = 0.0f;
                for (int64_t k = 0; k < M; k++) {
                    sum += x[k * M + j];
                }
                y[i * M + j] = sum;
            }
        }
    }
    """
    assert [move.line for move in list_moves(triangle) if move.name == "tile"] == [5, 5]


def test_a_sum_that_is_also_asked_for_is_no_reduction() -> None:
    watched = SUMS.replace("sum += x[m * N + n];", "sum += x[m * N + n]; if (sum > 3.0f) { y[0] = 1.0f; }")
    assert "vectorise-reduction" not in list_names(watched)


def test_borders_of_a_stencil_are_asked_for_once_for_a_tile() -> None:
    tiled = apply_named((PLAIN / "conv1d.c").read_text(), "tile", rows=1, columns=64)
    assert "l_first < l_last" in tiled


def test_halves_are_read_and_written_as_whole_numbers() -> None:
    rewritten = apply_named((PLAIN / "rope.c").read_text(), "widen-halves")
    assert "widen_half(((const half_bits *)x)[(t * H + h) * 2 * D + d])" in rewritten
    assert "= narrow_half(first * c - second * s);" in rewritten


def test_a_division_by_what_stays_the_same_becomes_a_product() -> None:
    rewritten = apply_named((PLAIN / "softmax.c").read_text(), "hoist-division")
    assert "float sum_inverse = 1.0f / sum;" in rewritten
    assert "y[m * N + n] *= sum_inverse;" in rewritten


def test_the_largest_number_keeps_what_it_was_where_a_number_is_none() -> None:
    rewritten = apply_named((PLAIN / "softmax.c").read_text(), "select-extreme")
    assert "largest = larger_of(x[m * N + n], largest);" in rewritten


def test_problems_of_a_seed_are_the_same_each_time_and_others_differ() -> None:
    assert draw_problems(3) == draw_problems(3)
    assert [problem.program for problem in draw_problems(3)] != [problem.program for problem in draw_problems(4)]


@pytest.mark.parametrize("seed", range(8))
def test_drawn_problems_are_read_as_tasks_and_have_moves(seed: int, tmp_path: Path) -> None:
    for task in load_tasks([str(path) for path in write_problems(tmp_path, seed)], "c"):
        assert task.impl is not None
        assert check_source(task.impl) == ()
        assert list_moves(task.impl), task.impl
