"""Inputs mixed by the library that goes to other machines are bit for bit those that numpy mixes where they are checked."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from targets.native.programs import needs_compiler

from opsmith.measuring.slots import NumpyMixer
from opsmith.targets.native.calls import LibraryMixer
from opsmith.targets.native.driver import MIXER_SOURCE
from opsmith.targets.native.layout import DrawLayout
from opsmith.timing.inputs import InputArray, SlotLayout, draw_noises, weigh_sum

pytestmark = needs_compiler
COUNT = 70_000  # entries: more than a piece
TYPES = {"fp32": np.float32, "fp64": np.float64, "fp16": np.float16}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixer")
    (folder / "mixer.c").write_text("#include <stdint.h>\n" + MIXER_SOURCE, "utf-8")
    flags = ["-O3", "-march=native", "-std=gnu17", "-ffp-contract=fast", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "mixer.c", "-o", "mixer.so"], cwd=folder, check=True, timeout=60)
    return folder / "mixer.so"


def make_draw(number: int) -> list[bytes]:
    entries = np.random.default_rng(number).standard_normal(COUNT)
    upper = (entries.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    rows = np.random.default_rng(number).random((200, 96)).argsort(-1)
    arrays = [
        *(entries.astype(dtype) for dtype in TYPES.values()),
        upper,
        entries.astype(np.float32),
        entries > 0,
        rows,
    ]
    return [array.tobytes() for array in (*arrays, entries[:8])]


ARRAYS = [
    *(InputArray(COUNT * width, width, width, 1, sums=dtype) for dtype, width in (("fp32", 4), ("fp64", 8))),
    *(InputArray(COUNT * 2, 2, 2, 1, sums=dtype) for dtype in ("fp16", "bf16")),
    InputArray(COUNT * 4, 4, 4, 0xFFFF),
    InputArray(COUNT, 1, 1),
    InputArray(200 * 96 * 8, 8, 96 * 8, columns=96),
    InputArray(64, 8),
]


def test_a_library_mixes_what_numpy_mixes(library: Path) -> None:
    layout = SlotLayout(DrawLayout(tuple(array.size for array in ARRAYS), (8,), ()))
    draws, noises = [make_draw(number) for number in range(4)], draw_noises(ARRAYS, 7)
    here = NumpyMixer(layout, ARRAYS, draws, noises)
    there = LibraryMixer(layout, ARRAYS, draws, noises).load_library(library)
    for number in range(3):
        recipe = here.draw_recipe(random.Random(number))
        pairs = zip(here.mix_inputs(recipe), there.mix_inputs(recipe), strict=True)
        assert [place for place, (ours, theirs) in enumerate(pairs) if ours != theirs] == []


@pytest.mark.parametrize("chance", [0, 1 << 40, (1 << 64) - 1])
def test_the_weights_of_a_sum_keep_its_variance(chance: int) -> None:
    weights = weigh_sum(chance)
    assert sum(weight * weight for weight in weights) == pytest.approx(1.0)
    assert min(weights) > 0.25
