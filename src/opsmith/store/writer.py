"""How do rows get onto the disk? One thread, one transaction for all that waits (group commit).

Rows of one `put` are committed together or not at all, and no later than those of any later `put`. Adding a row that
is there changes nothing. After an error nothing more is written: every future, later ones too, raises StoreError.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError

Row = tuple[Table, dict[str, Any]]
_Job = tuple[Sequence[Row], "Future[None]"]
_BATCH = 2000  # puts in one transaction, at most


class Writer:
    def __init__(self, engine: Engine, path: str) -> None:
        self._engine = engine
        self._path = path
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._error: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="opsmith-store", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """The future is done when the rows are committed."""
        future: Future[None] = Future()
        if not self._thread.is_alive():
            future.set_exception(StoreError(f"store {self._path}: it is closed"))
        else:
            self._jobs.put((rows, future))
        return future

    def close(self) -> None:
        """Commit what waits, then end."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, last = [job], False
            while len(batch) < _BATCH and not last:
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                last = following is None
                batch += [following] if following is not None else []
            self._commit(batch)
            if last:
                return

    def _commit(self, batch: list[_Job]) -> None:
        if self._error is None:
            try:
                with self._engine.begin() as connection:
                    _insert(connection, [row for rows, _ in batch for row in rows])
            except (SQLAlchemyError, OSError, ValueError) as error:  # ValueError: half a surrogate pair is no UTF-8
                self._error = explain(error, self._path)
        for _, future in batch:
            if not future.set_running_or_notify_cancel():
                continue
            if self._error is None:
                future.set_result(None)
            else:
                future.set_exception(self._error)


def explain(error: Exception, path: str) -> StoreError:
    """A database's error as one message for a person."""
    cause = str(getattr(error, "orig", None) or error)
    remedies = {
        "locked": "another program holds it; end that one, then run the same command again",
        "full": "the disk is full; make room, then run the same command again: nothing that was received is lost",
        "readonly": "it cannot be written; give write permission or choose another --out",
        "unable to open": "the folder does not exist or cannot be written; choose another --out",
        "not a database": "this file is not an opsmith store; choose another --out",
        "disk I/O": "the disk refused; check it, then run the same command again",
    }
    remedy = next((text for words, text in remedies.items() if words in cause), "run the same command again")
    return StoreError(f"store {path}: {cause}; {remedy}")


def _insert(connection: Connection, rows: Sequence[Row]) -> None:
    """One statement per table; rows that are there already are left as they are."""
    by_table: dict[Table, list[dict[str, Any]]] = {}
    for table, values in rows:
        by_table.setdefault(table, []).append(values)
    for table, values_of_all in by_table.items():
        connection.execute(insert(table).on_conflict_do_nothing(), values_of_all)
