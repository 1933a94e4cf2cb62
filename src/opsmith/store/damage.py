"""Errors that a store is to blame for, since it holds what this program never wrote.

Asked when a command has failed, never before: a store of somebody else may hold anything, and the place where that
shows may be far from where it was read.
"""

from __future__ import annotations

import traceback

from sqlalchemy import Boolean, Column, Float, Integer, func, select
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import StoreError
from opsmith.store import schema
from opsmith.store.database import Database, damage_error

OF_CONTENT = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
_READERS = "opsmith.records"  # what the store reads its rows with, outside its own package


def damage_behind(database: Database, error: BaseException) -> StoreError | None:
    """The error as one of the store; None: nothing speaks against the store, so that it is a mistake of ours."""
    try:
        damage = database.find_damage() or _odd_value(database)
    except StoreError:  # it cannot be asked now
        damage = ""
    if not damage and not _comes_of_reading(error):
        return None
    words = damage or f"rows that cannot be read ({type(error).__name__}: {error})"
    return damage_error(database.name, words, "what this program wrote")


def _comes_of_reading(error: BaseException) -> bool:
    """Whether it was raised where rows are turned into records."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [name for name in frames if name.startswith("opsmith.") and name != _READERS]
    return bool(ours) and ours[-1].startswith("opsmith.store.")


def _odd_value(database: Database) -> str:
    """A value of another type than its column's, which SQLite alone would take."""
    if not database.is_file:
        return ""
    columns = [column for table in schema.metadata.tables.values() for column in table.columns]
    try:
        with database.engine.connect() as connection:
            for column in columns:
                kind = func.typeof(column)
                odd_kind = connection.execute(
                    select(kind).where(kind.not_in(_storage_classes(column))).limit(1)
                ).scalar()
                if odd_kind is not None:
                    return f"{odd_kind} in column {column.name!r} of table {column.table.name!r}"
    except SQLAlchemyError as error:
        raise database.explain_error(error) from error
    return ""


def _storage_classes(column: Column[object]) -> set[str]:
    """What SQLite calls the values that a column may hold."""
    kinds = {Boolean: {"integer"}, Integer: {"integer"}, Float: {"real", "integer"}}
    classes = next((names for kind, names in kinds.items() if isinstance(column.type, kind)), {"text"})
    return classes | ({"null"} if column.nullable else set())
