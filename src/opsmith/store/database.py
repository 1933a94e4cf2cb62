"""What a store needs of its database. `sqlite` and `postgresql` are the two; nothing else knows which one it is."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Table, Update, and_, bindparam

from opsmith.errors import StoreError
from opsmith.models.keys import redact_secrets
from opsmith.records import printable
from opsmith.store.patience import PassingError


@dataclass(frozen=True)
class Overwrite:
    """In place of a row's table: the values are put over those of the row that has its key."""

    table: Table

    @property
    def name(self) -> str:
        return f"{self.table.name} (over)"  # no table is called so

    @property
    def primary_key(self) -> Any:
        return self.table.primary_key

    def make_statement(self, names: Iterable[str]) -> Update:
        """`names`: of the values, those of the key among them."""
        keys = {column.name for column in self.primary_key}
        is_meant = and_(*(self.table.c[name] == bindparam(f"key_{name}") for name in sorted(keys)))
        return self.table.update().where(is_meant).values({name: bindparam(name) for name in names if name not in keys})

    def name_values(self, values: dict[str, Any]) -> dict[str, Any]:
        """The statement's parameters."""
        keys = {column.name for column in self.primary_key}
        return {f"key_{name}" if name in keys else name: value for name, value in values.items()}


Row = tuple[Table | Overwrite, dict[str, Any]]
MAX_WORDS = 300  # characters of what is wrong with a file
LONGEST_NAME = 120  # characters of a run's id in a file's name


class Database(Protocol):
    name: str  # for messages; without a password
    engine: Engine  # for reading
    is_file: bool  # made by this program, in the file `name`

    def hold_tables(self, connection: Connection) -> None:
        """In a transaction: from here on no other process makes or changes tables."""

    def open_transaction(self) -> AbstractContextManager[Connection]:
        """A transaction of the one writer; it holds every lock of this process, or raises StoreError."""

    def hold_writers(self, connection: Connection) -> None:
        """In a transaction: from here to its end no other process adds anything that has a text."""

    def insert_new(self, table: Table) -> Any:
        """A statement that adds rows and leaves those alone that are there."""

    def lock(self, run: str) -> AbstractContextManager[None]:
        """Hold a run, so that no other process works on it; given back when the process ends, however it does."""

    def is_held(self, run: str) -> bool: ...

    def version(self) -> int:
        """A number that is another one after every commit, whoever made it."""

    def find_damage(self) -> str:
        """What is wrong with a file, in words, after reading all of it; "": nothing, or a server looks after that.

        Raises StoreError when it cannot be read now, which is no damage.
        """

    def explain_error(self, error: Exception) -> StoreError:
        """An error as one message for a person; a PassingError where waiting may help."""

    def close(self) -> None: ...


Remedies = Sequence[tuple[str, str, str]]  # (words of the message, what to wait for or "", what to try)
AGAIN = "then run the same command again"


def explain_cause(name: str, cause: str, remedies: Remedies) -> StoreError:
    """The first remedy whose words stand in `cause`."""
    matching = ((waits_for, text) for words, waits_for, text in remedies if words in cause)
    waits_for, remedy = next(matching, ("", "run the same command again"))
    trouble = f"store {name}: {' '.join(cause.split())}"
    message = f"{trouble}; {remedy}"
    return PassingError(message, trouble, waits_for) if waits_for else StoreError(message)


def damage_error(name: str, damage: str, expected: str) -> StoreError:
    """The error of a file that no command helps which reads it again."""
    damage = printable(" ".join(redact_secrets(damage).split()))[:MAX_WORDS]  # a key is gone before anything is cut
    recover = (
        f"`sqlite3 {shlex.quote(name)} .recover | sqlite3 NEW.sqlite` (where sqlite3 has .recover) saves what it can"
    )
    tries = f"keep a copy; {recover}, --out NEW.sqlite opens that; or begin anew with another --out"
    return StoreError(f"store {name}: it is damaged: given {damage}; expected {expected}; try: {tries}")


def file_name(run: str) -> str:
    """A run's id as a part of a file's name. Ids that this program gives stay as they are; a store of somebody else may
    hold `../../x`.

    >>> file_name("gpt-4o-s0-1f2e3d4c5b"), file_name("../../x")
    ('gpt-4o-s0-1f2e3d4c5b', 'x')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", run)[:LONGEST_NAME].lstrip(".-") or "run"


def busy_error(name: str, run: str) -> StoreError:
    return StoreError(f"store {name}: run {run} is being worked on by another process; wait for it")
