"""Slots: arrays never overlap, inputs never come twice, and what was put there is known without looking."""

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from problems.examples import SOFTMAX, read_example

from opsmith.measuring.grain import is_fresh, list_inputs, measure_grain
from opsmith.measuring.slots import NumpyMixer
from opsmith.problems.problem import Problem
from opsmith.targets.native.layout import DrawLayout
from opsmith.timing.engine import PairProtocol, Side, plan_turns
from opsmith.timing.inputs import ALIGNMENT, POISON, InputArray, SlotLayout, draw_noises

PROBLEM = read_example(SOFTMAX)
LAYOUT = SlotLayout(DrawLayout((4096,), (4096,), (8, 128)))
DRAWS = [[bytes((number,)) * 4096] for number in (1, 2, 3, 4)]
SLOTS = 8
SIZES = {"M": 8, "N": 128}


def make_mixer(problem: Problem, draws: list[list[bytes]]) -> NumpyMixer:
    inputs = list_inputs(problem, SIZES)
    return NumpyMixer(LAYOUT, inputs, draws, draw_noises(inputs, 1))


def test_arrays_are_aligned_and_lie_apart_at_differing_places_of_their_pages() -> None:
    layout = SlotLayout(DrawLayout((4096, 4, 12), (8192, 4), ()))
    sizes = (*layout.arrays.inputs, *layout.arrays.outputs)
    ends = [place + size for place, size in zip(layout.places, sizes, strict=True)]
    assert all(place % ALIGNMENT == 0 for place in layout.places)
    assert all(end < place for end, place in zip(ends, layout.places[1:], strict=False))
    assert ends[-1] < layout.stride
    assert len({place % 4096 for place in layout.places}) == len(layout.places)


def test_the_recipe_of_a_checked_slot_is_what_lies_in_it() -> None:
    memory = memoryview(bytearray(2 * SLOTS * LAYOUT.stride))
    mixer = make_mixer(PROBLEM, DRAWS)
    inputs = []
    for turn in plan_turns(PairProtocol(1, 6), SLOTS, seed=3):
        recipes = mixer.fill_slots(memory, turn)
        assert set(recipes) == turn.checked
        for slot, recipe in recipes.items():
            start = slot * LAYOUT.stride
            inputs.append(bytes(memory[start : start + 4096]))
            assert mixer.mix_inputs(recipe) == [inputs[-1]]
    assert len(inputs) == 12
    assert len(set(inputs)) == len(inputs)


def test_poison_lies_where_the_turn_says_and_nowhere_else() -> None:
    memory = memoryview(bytearray(2 * SLOTS * LAYOUT.stride))
    turn = plan_turns(PairProtocol(1, 1, warm_ups=0), SLOTS, seed=5)[0]
    make_mixer(PROBLEM, DRAWS).fill_slots(memory, turn)
    for slot in range(2 * SLOTS):
        (output,) = LAYOUT.list_outputs(slot)
        expected = POISON if slot in turn.poisoned else 0
        assert set(memory[output]) == {expected}
    assert turn.side in Side


@pytest.mark.parametrize(
    ("data", "grain"),
    [
        ("normal", InputArray(4096, 4, 4, 0xFFFF, sums="fp32")),
        ('"uniform(0.5, 1.5)"', InputArray(4096, 4, 4, 0xFFFF)),
        ('"torch.rand(M, N) < 0.7"', InputArray(4096, 4, 4)),
        ('"torch.randint(0, M, (M, N))"', InputArray(4096, 4, 4)),
        ('"torch.rand(M, N).argsort(-1) * 0.375 - N"', InputArray(4096, 4, 512, columns=128)),
        ('"torch.rand(M, 1) * torch.ones(M, N)"', InputArray(4096, 4)),
        ('"torch.rand(M, N).argsort(0)"', InputArray(4096, 4)),
        ('"torch.rand(M, N).cumsum(-1)"', InputArray(4096, 4)),
    ],
)
def test_what_may_be_drawn_anew_is_read_from_the_text_of_an_input(data: str, grain: InputArray) -> None:
    problem = read_example(SOFTMAX, ("data: normal", f"data: {data}"))
    (tensor,) = problem.tensors
    assert measure_grain(problem, tensor, SIZES) == grain
    assert is_fresh(problem) is grain.is_fresh


@pytest.mark.parametrize(
    ("dtype", "data", "mask"),
    [("int8", "randint(-128, 128)", 0xFF), ("int8", "randint(0, 64)", 0x3F), ("int8", "randint(-8, 8)", 0)],
)
def test_whole_numbers_stay_within_their_range(dtype: str, data: str, mask: int) -> None:
    problem = read_example(
        SOFTMAX, ("dtype: fp32, shape: [M, N], data: normal", f"dtype: {dtype}, shape: [M, N], data: '{data}'")
    )
    assert measure_grain(problem, problem.tensors[0], SIZES).mask == mask


def draw_rows(data: str) -> list[NDArray[np.float32]]:
    """The arrays of some calls, as rows."""
    problem = read_example(SOFTMAX, ("data: normal", f"data: {data}"))
    draws = [[np.arange(1024, dtype=np.float32) + 1024 * number + 1] for number in range(4)]
    mixer = make_mixer(problem, [[array.tobytes() for array in draw] for draw in draws])
    generator = random.Random(5)
    recipes = [mixer.draw_recipe(generator) for _ in range(50)]
    return [np.frombuffer(mixer.mix_inputs(recipe)[0], np.float32).reshape(8, 128) for recipe in recipes]


def test_no_row_comes_twice_though_there_are_few_draws() -> None:
    for data in ("normal", '"torch.rand(M, N).argsort(-1)"'):
        rows = [row.tobytes() for array in draw_rows(data) for row in array]
        assert len(set(rows)) == len(rows)


def test_numbers_are_some_that_were_drawn_but_for_their_low_bits() -> None:
    drawn = np.arange(1024) + 1 + 1024 * np.arange(4)[:, None]
    for array in draw_rows('"uniform(1, 4097)"'):
        distances = np.abs(array.reshape(-1, 1) / drawn.reshape(1, -1) - 1)
        assert distances.min(axis=1).max() < 1 / 64
        assert np.count_nonzero(distances.min(axis=1)) > 1000


def make_entries(dtype: str) -> tuple[list[InputArray], list[list[bytes]]]:
    """Draws of a normal distribution."""
    entries = np.random.default_rng(3).standard_normal((4, 1 << 14))
    if dtype == "bf16":
        drawn = [(row.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for row in entries]
    else:
        drawn = [row.astype({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[dtype]) for row in entries]
    width = drawn[0].itemsize
    return [InputArray(width << 14, width, width, 1, sums=dtype)], [[row.tobytes()] for row in drawn]


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_sums_of_normal_numbers_are_normal_and_no_number_of_a_draw(dtype: str) -> None:
    arrays, draws = make_entries(dtype)
    layout = SlotLayout(DrawLayout((arrays[0].size,), (8,), ()))
    mixer = NumpyMixer(layout, arrays, draws, draw_noises(arrays, 1))
    mixed = np.frombuffer(mixer.mix_inputs(mixer.draw_recipe(random.Random(4)))[0], f"u{arrays[0].width}")
    numbers = read_floats(mixed, dtype)
    ranks = np.sort(numbers)[[372, 2600, 8192, 13784, 16012]]  # of -2, -1, 0, 1 and 2
    assert np.abs(ranks - np.arange(-2, 3)).max() < 0.1
    repeated = [np.count_nonzero(read_floats(np.frombuffer(draw[0], mixed.dtype), dtype) == numbers) for draw in draws]
    assert max(repeated) < len(numbers) / 50


def read_floats(entries: NDArray[np.uint64], dtype: str) -> NDArray[np.float64]:
    if dtype == "bf16":
        return (entries.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return entries.view({"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[dtype]).astype(np.float64)


def test_an_input_that_follows_from_another_is_taken_from_where_that_one_is() -> None:
    arrays = [InputArray(4 << 12, 4, 4), InputArray(2 << 12, 2, 2, leader=0), InputArray(4, 4, 4, 0xFFFF)]
    numbers = [np.arange(1 << 12) + (number << 12) for number in range(4)]
    draws = [[row.astype(np.uint32).tobytes(), row.astype(np.uint16).tobytes(), bytes(4)] for row in numbers]
    layout = SlotLayout(DrawLayout(tuple(array.size for array in arrays), (8,), ()))
    mixer = NumpyMixer(layout, arrays, draws, draw_noises(arrays, 1))
    first, second, _ = mixer.mix_inputs(mixer.draw_recipe(random.Random(4)))
    assert np.array_equal(np.frombuffer(first, np.uint32), np.frombuffer(second, np.uint16))


def test_rows_hold_the_entries_of_one_row_in_another_order() -> None:
    seen = set()
    for array in draw_rows('"torch.rand(M, N).argsort(-1)"'):
        starts = np.sort(array, axis=-1)[:, 0] - 1
        assert np.array_equal(np.sort(array, axis=-1), starts[:, None] + 1 + np.arange(128))
        seen |= set(starts.tolist())
    assert seen == set(range(0, 4096, 128))


def test_where_nothing_is_drawn_anew_every_call_has_a_draw_of_its_own() -> None:
    problem = read_example(SOFTMAX, ("data: normal", 'data: "torch.rand(M, N).cumsum(-1)"'))
    mixer = make_mixer(problem, DRAWS)
    assert mixer.most_calls == len(DRAWS)
    assert [mixer.mix_inputs(mixer.draw_recipe(random.Random(), call)) for call in range(4)] == DRAWS
