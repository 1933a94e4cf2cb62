"""How rows get onto the disk. One thread, one transaction for all that waits (group commit).

Rows of one `put` are committed together or not at all, and no later than those of any later `put`. Adding a row that
is there changes nothing. What may pass is waited for with the store's patience, and replies that wait are kept
elsewhere meanwhile (`unsaved`). After any other error, or when patience is over, nothing more is written: every future,
later ones too, raises StoreError.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any

from sqlalchemy import Table
from sqlalchemy.exc import DataError, IntegrityError

from opsmith.errors import StoreError
from opsmith.store.database import Database, Overwrite, Row
from opsmith.store.patience import PassingError, Patience, Stubborn
from opsmith.store.unsaved import Unsaved

log = logging.getLogger("opsmith.store")

_Job = tuple[Sequence[Row], "Future[None]"]
_BATCH = 2000  # puts in one transaction, at most
_CLOSE_S = 30.0  # for a database that does not answer at all
_OF_THE_ROWS = (ValueError, OverflowError, TypeError, DataError, IntegrityError)  # no database would take them


class Writer:
    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._writing = Stubborn(patience)
        self._jobs: deque[_Job] = deque()  # what is being committed is taken out afterwards
        self._wake = threading.Condition()
        self._closing = False
        self._error: StoreError | None = None
        self._unsaved = Unsaved(database.name)
        self._is_of_the_rows = False  # the error: such rows are kept nowhere, since they would fail again
        self._thread = threading.Thread(target=self._write_jobs, name="opsmith-store", daemon=True)
        self._thread.start()

    def put(self, rows: Sequence[Row]) -> Future[None]:
        """The future is done when the rows are committed."""
        future: Future[None] = Future()
        with self._wake:
            if self._closing:
                future.set_exception(StoreError(f"store {self._database.name}: it is closed"))
            else:
                self._jobs.append((rows, future))
                self._wake.notify()
        return future

    @property
    def trouble(self) -> str:
        """What it waits for; "": it does not wait."""
        return self._writing.trouble

    def close(self) -> bool:
        """Commit what waits, then end; False when the database does not answer at all."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            log.warning("store %s: no answer within %.0f s; it is left alone", self._database.name, _CLOSE_S)
            self._keep_replies()
            self._unsaved.report_rows()
        return not self._thread.is_alive()

    def _write_jobs(self) -> None:
        while batch := self._take_batch():
            self._commit_batch(batch)
            with self._wake:
                for _ in batch:
                    self._jobs.popleft()
        self._unsaved.report_rows()

    def _take_batch(self) -> list[_Job]:
        """What waits; empty when there is nothing left to do."""
        with self._wake:
            while not self._jobs and not self._closing:
                self._wake.wait()
            return list(islice(self._jobs, _BATCH))

    def _commit_batch(self, batch: list[_Job]) -> None:
        if self._error is None:
            try:
                self._writing.try_patiently(lambda: self._write_rows([row for rows, _ in batch for row in rows]))
            except StoreError as error:
                self._error = error
        if self._error is None:
            self._unsaved.forget_rows()
        else:
            self._keep_replies()
        for _, future in batch:
            if not future.set_running_or_notify_cancel():
                continue
            if self._error is None:
                future.set_result(None)
            else:
                future.set_exception(self._error)

    def _write_rows(self, rows: Sequence[Row]) -> None:
        """One transaction, one statement per table; rows that are there already are left as they are, or as they shall
        be from now on (`Overwrite`)."""
        try:
            with self._database.open_transaction() as connection:
                for table, values in _by_table(rows):
                    if isinstance(table, Overwrite):
                        connection.execute(table.make_statement(values[0]), [*map(table.name_values, values)])
                    else:
                        connection.execute(self._database.insert_new(table), values)
        except StoreError:
            raise
        except Exception as error:  # whatever it is: if this thread died, everybody would wait for ever
            self._is_of_the_rows = isinstance(error, _OF_THE_ROWS)
            problem = self._database.explain_error(error)
            if isinstance(problem, PassingError):
                self._keep_replies()
            raise problem from error

    def _keep_replies(self) -> None:
        """Replies that wait are kept elsewhere: the process may be killed before they can be stored."""
        if not self._is_of_the_rows:
            with self._wake:
                waiting = [row for rows, _ in self._jobs for row in rows]
            self._unsaved.keep_rows(waiting)


def _by_table(rows: Sequence[Row]) -> list[tuple[Table | Overwrite, list[dict[str, Any]]]]:
    """Tables and their rows in one order for all writers, so that no two of them wait for each other."""
    groups: dict[Table | Overwrite, list[dict[str, Any]]] = {}
    for table, values in rows:
        groups.setdefault(table, []).append(values)
    for table, all_values in groups.items():
        names = [column.name for column in table.primary_key if column.name in all_values[0]]
        all_values.sort(key=lambda values: [values[name] for name in names])
    return sorted(groups.items(), key=lambda pair: pair[0].name)
