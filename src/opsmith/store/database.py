"""What does a store need of its database? `sqlite` and `postgresql` are the two; nothing else knows which one it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Table

from opsmith.errors import StoreError
from opsmith.store.patience import PassingError

Row = tuple[Table, dict[str, Any]]
LONGEST_NAME = 120  # characters of a run's id in a file's name


class Database(Protocol):
    name: str  # for messages; without a password
    engine: Engine  # for reading
    is_file: bool  # made by this program, in the file `name`

    def prepare(self, connection: Connection) -> None:
        """In a transaction: from here on no other process makes or changes tables."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction of the one writer; it holds every lock of this process, or raises StoreError."""
        ...

    def insert(self, table: Table) -> Any:
        """A statement that adds rows and leaves those alone that are there."""
        ...

    def lock(self, run: str) -> AbstractContextManager[None]:
        """Hold a run, so that no other process works on it; given back when the process ends, however it does."""
        ...

    def is_held(self, run: str) -> bool: ...

    def version(self) -> int:
        """A number that is another one after every commit, whoever made it."""
        ...

    def explain(self, error: Exception) -> StoreError:
        """An error as one message for a person; a PassingError where waiting may help."""
        ...

    def close(self) -> None: ...


Remedies = Sequence[tuple[str, str, str]]  # (words of the message, what to wait for or "", what to try)
AGAIN = "then run the same command again"


def explained(name: str, cause: str, remedies: Remedies) -> StoreError:
    """The first remedy whose words stand in `cause`."""
    known = ((waits_for, text) for words, waits_for, text in remedies if words in cause)
    waits_for, remedy = next(known, ("", "run the same command again"))
    trouble = f"store {name}: {' '.join(cause.split())}"
    message = f"{trouble}; {remedy}"
    return PassingError(message, trouble, waits_for) if waits_for else StoreError(message)


def file_name(run: str) -> str:
    """A run's id as a part of a file's name. Ids that this program gives stay as they are; a store of somebody else may
    hold `../../x`.

    >>> file_name("gpt-4o-s0-1f2e3d4c5b"), file_name("../../x")
    ('gpt-4o-s0-1f2e3d4c5b', 'x')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", run)[:LONGEST_NAME].lstrip(".-") or "run"


def busy(name: str, run: str) -> StoreError:
    return StoreError(f"store {name}: run {run} is being worked on by another process; wait for it")
