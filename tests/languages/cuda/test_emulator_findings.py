"""What the emulator finds: each planted mistake at its line, every time, and the same kernel, mended, runs."""

from __future__ import annotations

import pytest
import torch

from languages.cuda.emulated_kernels import needs_emulator, run_kernels, share_folder
from languages.cuda.planted_mistakes import MISTAKES, Planted

pytestmark = needs_emulator
Answers = dict[str, list[list[torch.Tensor]] | str]


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Of all kernels, the wrong ones twice: one process runs them all, each after others that went wrong."""
    folder = share_folder(tmp_path_factory)
    rows = {mistake.name: (mistake.source, mistake.call) for mistake in MISTAKES}
    rows |= {f"{mistake.name} mended": (mistake.mended, mistake.call) for mistake in MISTAKES}
    rows |= {f"{mistake.name} again": (mistake.source, mistake.call) for mistake in MISTAKES}
    return dict(zip(rows, run_kernels(list(rows.values()), folder), strict=True))


def name_mistake(mistake: Planted) -> str:
    return mistake.name


@pytest.mark.parametrize("mistake", MISTAKES, ids=name_mistake)
def test_a_planted_mistake_is_found_at_its_line(answers: Answers, mistake: Planted) -> None:
    finding = answers[mistake.name]
    assert isinstance(finding, str), "no finding"
    assert any(finding.startswith(f"line {line}: ") for line in mistake.lines), finding
    assert all(words in finding for words in mistake.words), finding
    assert "; try: " in finding or "__trap" in finding
    assert answers[f"{mistake.name} again"] == finding


@pytest.mark.parametrize("mistake", MISTAKES, ids=name_mistake)
def test_the_mended_kernel_computes_what_it_should(answers: Answers, mistake: Planted) -> None:
    outputs = answers[f"{mistake.name} mended"]
    assert not isinstance(outputs, str), outputs
    assert mistake.expected is not None
    for row in outputs:
        torch.testing.assert_close(row[0], mistake.expected)


def test_all_kinds_of_mistakes_are_planted() -> None:
    assert len(MISTAKES) >= 25
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
