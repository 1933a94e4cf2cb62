"""One warm worker for the whole corpus."""

import sys
from collections.abc import Iterator

import pytest

from hostile.corpus import task_of
from opsmith.judging.pool import Pool

TASKS = ("powers_0", "shares_0", "pairs_0", "expert_0", "expert_2", "bmm_0")
collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]  # memory is measured in /proc


@pytest.fixture(scope="session")
def warm() -> Iterator[Pool]:
    """A pool of one worker that has judged every task of the corpus."""
    with Pool(1, deadline=30.0) as pool:
        for name in TASKS:
            task = task_of(name)
            assert pool.verify(task, task.impl or "").passed
        yield pool
