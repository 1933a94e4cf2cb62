"""What tests of other machines share: a worker and a room for measuring."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from opsmith.judging.pool import Pool
from opsmith.measuring.loop import TimingRoom


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1, trial_deadline=5.0) as shared:
        yield shared


@pytest.fixture(scope="module")
def room() -> Iterator[TimingRoom]:
    with TimingRoom() as shared:
        yield shared
