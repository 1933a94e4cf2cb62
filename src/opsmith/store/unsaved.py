"""Replies that a run has received and paid for, while they cannot be stored.

In files of the user's own, away from the full disk or the lost server: `~/.local/state/opsmith/unsaved/`. A process
that is killed while it waits, or told to wait no longer, leaves them there, and the next one that works on the run
stores them first, so that nothing is asked for twice. Only requests, replies and their texts are kept: what follows
from them is found again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from opsmith.records import content_hash
from opsmith.store import schema
from opsmith.store.database import Row, file_name

_PAID = {table.name: table for table in (schema.text, schema.request, schema.reply)}

log = logging.getLogger("opsmith.store")


class Unsaved:
    """The files of one process for one store."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._rows: dict[tuple[str, ...], Row] = {}
        self._files: dict[str, Path] = {}  # by run
        self._problem = ""

    def keep_rows(self, rows: Iterable[Row]) -> None:
        """Keep those of the rows that cost money, beside what is kept already."""
        before = len(self._rows)
        for table, values in rows:
            if table.name in _PAID:
                self._rows[table.name, *(str(values[column.name]) for column in table.primary_key)] = (table, values)
        if len(self._rows) == before:
            return
        try:
            for run in {values["run"] for table, values in self._rows.values() if table is schema.reply}:
                rows = [row for row in self._rows.values() if row[1].get("run", run) == run]
                self._files[run] = _write_file(_unsaved_folder(self._store), run, rows, self._files.get(run))
            self._problem = ""
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
            self._problem = str(error)

    def forget_rows(self) -> None:
        """All of it is in the store."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                file.unlink()
        self._rows, self._files = {}, {}

    def report_rows(self) -> None:
        """How many replies are kept, and where; or that they are lost."""
        replies = sum(table is schema.reply for table, _ in self._rows.values())
        if replies and self._problem:
            log.warning(
                "store %s: %d replies are lost: they can be kept nowhere (%s)", self._store, replies, self._problem
            )
        elif replies:
            place = ", ".join(map(str, self._files.values()))
            log.warning("%d replies that could not be stored are in %s; the same command stores them", replies, place)


def read_kept(store: str, run: str) -> Iterator[tuple[Path, list[Row]]]:
    """The files of a run with their rows; whoever has stored them deletes the file. What cannot be read stays."""
    with contextlib.suppress(RuntimeError):
        for path in sorted(_unsaved_folder(store).glob(f"{file_name(run)}-*.jsonl")):
            with contextlib.suppress(FileNotFoundError):
                lines = path.read_text(encoding="ascii", errors="replace").splitlines()
                rows = [row for line in lines for row in _read_row(line)]
                if len(rows) < len(lines):
                    aside = path.with_suffix(".unread")
                    path.rename(aside)
                    log.warning(
                        "%d lines of %s are no replies of this version; it is left there", len(lines) - len(rows), aside
                    )
                yield path, rows


def _write_file(folder: Path, run: str, rows: Iterable[Row], path: Path | None) -> Path:
    """A file, whole or not there, for nobody else to read; it takes the place of `path`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=f"{file_name(run)}-", suffix=".part", dir=folder)
    with open(handle, "w", encoding="ascii") as file:
        file.writelines(json.dumps([table.name, values]) + "\n" for table, values in rows)
        file.flush()
        os.fsync(file.fileno())
    return Path(draft).replace(path or Path(draft).with_suffix(".jsonl"))


def _read_row(line: str) -> Iterator[Row]:
    """The row of a line; nothing when it is none."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        name, values = json.loads(line)
        table = _PAID[name]
        columns = {column.name: column.nullable for column in table.columns}
        needed = {name for name, nullable in columns.items() if not nullable}
        if isinstance(values, Mapping) and needed <= set(values) <= set(columns):
            yield table, {**dict[str, Any].fromkeys(columns), **values}  # an earlier version knew fewer columns


def _unsaved_folder(store: str) -> Path:
    """For the files of a store, which is named by its URL or by its file wherever a command is started."""
    name = store if "://" in store else str(Path(store).resolve())
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "opsmith" / "unsaved" / content_hash(name)[:24]
