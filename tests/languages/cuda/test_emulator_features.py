"""What the emulator runs: right kernels over every feature compute what torch does, in every pass."""

from __future__ import annotations

import pytest
import torch

from languages.cuda.emulated_kernels import needs_emulator, run_kernels, share_folder
from languages.cuda.right_kernels import RIGHT, Right
from opsmith.problems.precision import widen_floats

pytestmark = needs_emulator
Answers = dict[str, list[list[torch.Tensor]] | str]


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    folder = share_folder(tmp_path_factory)
    outputs = run_kernels([(kernel.source, kernel.call) for kernel in RIGHT], folder, draws=2)
    return dict(zip([kernel.name for kernel in RIGHT], outputs, strict=True))


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_a_right_kernel_computes_what_torch_does(answers: Answers, kernel: Right) -> None:
    outputs = answers[kernel.name]
    assert not isinstance(outputs, str), outputs
    for row in outputs:
        actual, expected = (widen_floats(tensor) for tensor in (row[0], kernel.expected))
        assert row[0].dtype is kernel.expected.dtype
        torch.testing.assert_close(actual, expected, rtol=kernel.tolerance, atol=kernel.tolerance, equal_nan=True)
