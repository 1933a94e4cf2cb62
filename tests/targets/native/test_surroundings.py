"""What memory holds that a program has not written: junk of a kind, what another call has left, and nothing known."""

from __future__ import annotations

import random

import pytest
import torch

from opsmith.targets.native.surroundings import draw_junk, draw_left_bytes, draw_old_output

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtype", FLOATS)
def test_junk_is_of_its_kind_in_every_width(dtype: torch.dtype) -> None:
    source = random.Random(1)
    large, negative, none = (
        torch.frombuffer(bytearray(draw_junk(source, kind)), dtype=dtype) for kind in (123, 251, 255)
    )
    assert bool((large > 3e4).all())
    assert bool((negative < -3e4).all())
    assert bool(none.isnan().all())
    assert all(len(junk.view(torch.uint8).unique()) > 1 for junk in (large, negative, none))


def test_an_old_output_is_never_the_right_one_throughout() -> None:
    right, others = bytes(range(64)) * 4, [bytes(reversed(range(64))) * 4]
    drawn = [draw_old_output(random.Random(seed), right, others) for seed in range(40)]
    assert all(len(old) == len(right) for old in drawn)
    assert sum(old == right for old in drawn) < 4  # a turn may end where it began
    assert any(old[:8] == right[:8] and old != right for old in drawn)
    assert others[0] in drawn
    assert bytes(len(right)) in drawn


def test_a_heap_in_use_holds_zeros_or_what_arrays_hold() -> None:
    array = memoryview(b"0123456789abcdef" * 8)
    drawn = {draw_left_bytes(random.Random(seed), [array])[:16] for seed in range(40)}
    assert bytes(16) in drawn
    assert drawn - {bytes(16)} <= {bytes(array[place : place + 16]) for place in range(0, 112, 8)}
