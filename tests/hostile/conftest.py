"""One warm worker for the whole corpus."""

import sys
from collections.abc import Iterator

import pytest

from hostile.corpus import task_of
from opsmith.verification.pool import Pool

TASKS = ("powers_0", "shares_0", "pairs_0", "expert_2")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.platform != "linux":
        for item in items:
            if "warm" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason="the memory of a worker is read from /proc"))


@pytest.fixture(scope="session")
def warm() -> Iterator[Pool]:
    """A pool of one worker that has judged every task of the corpus."""
    with Pool(1, deadline=30.0) as pool:
        for name in TASKS:
            task = task_of(name)
            assert pool.verify(task, task.impl or "").passed
        yield pool
