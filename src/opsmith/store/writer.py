"""How do rows get onto the disk? One thread, one transaction for all that waits (group commit).

Rows of one `put` are committed together or not at all, and no later than those of any later `put`. Adding a row that
is there changes nothing. What may pass is waited for with the store's patience; after any other error, or when patience
is over, nothing more is written: every future, later ones too, raises StoreError. Replies that patience did not suffice
for are kept elsewhere (`unsaved`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Table
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError
from opsmith.store import unsaved
from opsmith.store.database import Database, Row
from opsmith.store.patience import PassingError, Patience, Stubborn

_Job = tuple[Sequence[Row], "Future[None]"]
_BATCH = 2000  # puts in one transaction, at most


class Writer:
    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._writing = Stubborn(patience)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._error: StoreError | None = None
        self._unsaved: list[Row] = []
        self._thread = threading.Thread(target=self._work, name="opsmith-store", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """The future is done when the rows are committed."""
        future: Future[None] = Future()
        if not self._thread.is_alive():
            future.set_exception(StoreError(f"store {self._database.name}: it is closed"))
        else:
            self._jobs.put((rows, future))
        return future

    @property
    def trouble(self) -> str:
        """What it waits for; "": it does not wait."""
        return self._writing.trouble

    def close(self) -> None:
        """Commit what waits, then end."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        self._commit_all()
        unsaved.keep(self._database.name, self._unsaved)

    def _commit_all(self) -> None:
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
        rows = [row for rows, _ in batch for row in rows]
        if self._error is None:
            try:
                self._writing.try_(lambda: self._write(rows))
            except StoreError as error:
                self._error = error
        if isinstance(self._error, PassingError):
            self._unsaved += unsaved.paid(rows)
        for _, future in batch:
            if not future.set_running_or_notify_cancel():
                continue
            if self._error is None:
                future.set_result(None)
            else:
                future.set_exception(self._error)

    def _write(self, rows: Sequence[Row]) -> None:
        """One transaction, one statement per table; rows that are there already are left as they are."""
        try:
            with self._database.writing() as connection:
                for table, values in _by_table(rows):
                    connection.execute(self._database.insert(table), values)
        except (SQLAlchemyError, OSError, ValueError) as error:  # ValueError: half a surrogate pair is no UTF-8
            raise self._database.explain(error) from error


def _by_table(rows: Sequence[Row]) -> list[tuple[Table, list[dict[str, Any]]]]:
    """Tables and their rows in one order for all writers, so that no two of them wait for each other."""
    found: dict[Table, list[dict[str, Any]]] = {}
    for table, values in rows:
        found.setdefault(table, []).append(values)
    for table, all_values in found.items():
        names = [column.name for column in table.primary_key if column.name in all_values[0]]
        all_values.sort(key=lambda values: [values[name] for name in names])
    return sorted(found.items(), key=lambda pair: pair[0].name)
