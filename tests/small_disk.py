"""A store whose disk is full until somebody makes room."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlalchemy import event

from opsmith.store import Store


class SmallDisk:
    """While it lasts, the store's file cannot grow beyond some pages."""

    def __init__(self, store: Store, pages: int = 60) -> None:
        self._pages = pages
        self.engine = store._database.engine
        event.listen(self.engine, "connect", self._limit)
        self.engine.dispose()

    def _limit(self, connection: object, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self._pages}")  # type: ignore[attr-defined]

    def make_room(self) -> None:
        event.remove(self.engine, "connect", self._limit)
        self.engine.dispose()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
