"""Slots: arrays never overlap, inputs never come twice, and what was put there is known without looking."""

import pytest
from problems.examples import SOFTMAX, read_example

from opsmith.measuring.grain import is_mixable, measure_grain
from opsmith.measuring.schedule import PairProtocol, Side, plan_turns
from opsmith.measuring.slots import POISON, InputMixer, SlotLayout
from opsmith.targets.native.layout import ALIGNMENT, DrawLayout

PROBLEM = read_example(SOFTMAX)
LAYOUT = SlotLayout(DrawLayout((4096,), (4096,), (8, 128)))
DRAWS = [[bytes((number,)) * 4096] for number in (1, 2, 3, 4)]
SLOTS = 8
SIZES = {"M": 8, "N": 128}


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
    mixer = InputMixer(PROBLEM, LAYOUT, SIZES, DRAWS)
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
    InputMixer(PROBLEM, LAYOUT, SIZES, DRAWS).fill_slots(memory, turn)
    for slot in range(2 * SLOTS):
        (output,) = LAYOUT.list_outputs(slot)
        expected = POISON if slot in turn.poisoned else 0
        assert set(memory[output]) == {expected}
    assert turn.side in Side


@pytest.mark.parametrize(
    ("data", "entries"),
    [
        ("normal", 1),
        ('"torch.rand(M, N) < 0.7"', 1),
        ('"torch.randint(0, M, (M, N))"', 1),
        ('"torch.rand(M, N).argsort(-1) * 0.375 - N"', 128),
        ('"torch.rand(M, 1) * torch.ones(M, N)"', 0),
        ('"torch.rand(M, N).argsort(0)"', 0),
        ('"torch.rand(M, N).cumsum(-1) + x"', 0),
    ],
)
def test_what_is_drawn_together_is_of_one_draw(data: str, entries: int) -> None:
    problem = read_example(SOFTMAX, ("data: normal", f"data: {data}"))
    (tensor,) = problem.tensors
    assert measure_grain(problem, tensor, SIZES) == 4 * entries
    assert is_mixable(problem) is bool(entries)
