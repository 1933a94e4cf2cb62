"""Worker processes that tests share: starting some takes longer than most verdicts. A plugin of pytest.

Not for a test of limits, of names that only it can import, or of what a pool does at its end: it is marked `cold`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opsmith.judging.pool import Pool


@pytest.fixture(scope="session")
def shared_pool() -> Iterator[Pool]:
    from opsmith.judging.pool import Pool

    with Pool(2) as pool:
        yield pool


@pytest.fixture
def warm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that judge find workers that run already."""
    import opsmith.api  # before the pool is patched: these modules keep the real one
    import opsmith.executors.local  # noqa: F401

    if request.node.get_closest_marker("cold"):
        return
    shared = request.getfixturevalue("shared_pool")
    monkeypatch.setattr("opsmith.judging.pool.Pool", lambda *_, **__: nullcontext(shared))


class SharedPool:
    """The shared pool, for a run that would close its own."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def close(self) -> None:
        """The next test needs it."""


@pytest.fixture
def warm_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, warm: None) -> None:
    """The same for runs in this process."""
    if not request.node.get_closest_marker("cold"):
        shared = SharedPool(request.getfixturevalue("shared_pool"))
        monkeypatch.setattr("opsmith.executors.local.Pool", lambda *_, **__: shared)
