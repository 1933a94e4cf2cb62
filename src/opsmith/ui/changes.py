"""Has the store changed? One number, asked of SQLite without reading any row."""

from __future__ import annotations

import sqlite3
import threading

from opsmith.errors import StoreError


class Changes:
    """Thread-safe. Changes by any process, this one included, are seen: the connection is used for nothing else."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, check_same_thread=False)

    def version(self) -> int:
        """A number that is another one after every commit."""
        try:
            with self._lock:
                number: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise StoreError(f"store {self.path}: {error}; is the file still there?") from error
        return number

    def close(self) -> None:
        with self._lock:
            self._connection.close()
