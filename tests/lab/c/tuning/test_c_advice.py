"""Advice on rewriting C: rules over loops and remarks, for programs whose names say nothing."""

import pytest

from opsmith.suites import load_tasks
from opsmith.targets.c.canonical import write_canonical
from opsmith.targets.c.renaming import rename_variables
from opsmith_lab.c.tuning.advice import list_advice
from opsmith_lab.c.tuning.evidence import read_evidence
from opsmith_lab.c.tuning.moves import apply_move, list_moves

KERNELS = load_tasks(("kernels",), "c")
PRODUCT = """\
#include <stdint.h>

void kernel(const float *restrict a, const float *restrict b, float *restrict y, int64_t M, int64_t N, int64_t K)
{
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++) {
                sum += a[m * K + k] * b[k * N + n];
            }
            y[m * N + n] = sum;
        }
    }
}
"""
SUM = """\
#include <stdint.h>

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
REMARKS = "line 7, innermost, depth 2: for (...) {\n  vectorised, 64 bytes\n  in-order reduction\n"
ROOFLINE = "at large:\n  memory-bound: the bytes take longer at best\n  share of the limit: 0.8\n"


def name_moves(source: str, profiles: dict[str, str] | None = None) -> list[str]:
    return [advice.moves[-1] for advice in list_advice(source, profiles or {})]


def test_a_product_of_matrices_is_to_be_tiled_along_what_lies_side_by_side() -> None:
    first = list_advice(PRODUCT, {})[0]
    assert first.moves == ("tile",)
    assert first.line == 5
    assert first.parameters == {"rows": 8, "columns": 32}
    assert "side by side" in first.why


def test_rows_are_not_tiled_where_a_vector_would_be_gathered_over_them() -> None:
    advice = {each.moves: each.gain for each in list_advice(SUM, {})}
    assert advice["vectorise-reduction",] > 3
    assert advice["tile",] < 1


def test_what_the_compiler_says_is_the_reason() -> None:
    advice = next(each for each in list_advice(SUM, {"remarks": REMARKS}) if each.moves == ("vectorise-reduction",))
    assert "the compiler says of line 7: vectorised, 64 bytes; in-order reduction" in advice.why


def test_no_more_is_promised_than_the_limit_leaves() -> None:
    advice = list_advice(SUM, {"roofline": ROOFLINE})
    assert max(each.gain for each in advice) == pytest.approx(1.25)
    assert "memory-bound at 80 % of the limit" in advice[0].why


def test_loops_for_small_sizes_only_are_not_worth_a_try() -> None:
    tile = next(move for move in list_moves(PRODUCT) if move.name == "tile")
    tiled = apply_move(PRODUCT, tile)
    assert tiled is not None
    advice = [each for each in list_advice(tiled, {}) if each.moves[-1] == "tile"]
    assert advice
    assert all("small sizes only" in each.why for each in advice)


def test_texts_that_are_no_profiles_and_no_programs_say_nothing() -> None:
    evidence = read_evidence({"remarks": "line seven, innermost", "roofline": "share of the limit: unknown"})
    assert not evidence.remarks
    assert evidence.share is None
    assert list_advice("no program {", {}) == ()


@pytest.mark.parametrize("task", KERNELS, ids=lambda task: task.id)
def test_renamed_programs_are_the_same_program_and_get_the_same_advice(task) -> None:
    renamed = rename_variables(task.impl, 3)
    assert renamed != task.impl
    assert write_canonical(renamed) == write_canonical(task.impl)
    assert rename_variables(task.impl, 3) == renamed
    assert name_moves(renamed) == name_moves(task.impl)
