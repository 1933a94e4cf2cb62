"""Where do replies go that a run has received and paid for, but could not store before it was told to wait no longer?

Into a file of the user's own, away from the full disk or the lost server, in `~/.local/state/opsmith/unsaved/`. The
next run on that store stores them first, so that nothing is asked for twice. Only requests, replies and their texts are
kept: what follows from them is found again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from opsmith.records import content_hash
from opsmith.store import schema
from opsmith.store.database import Row

_PAID = {table.name: table for table in (schema.text, schema.request, schema.reply)}

log = logging.getLogger("opsmith.store")


def paid(rows: Iterable[Row]) -> list[Row]:
    """Those of the rows that cost money."""
    return [(table, values) for table, values in rows if table.name in _PAID]


def keep(store: str, rows: Sequence[Row]) -> None:
    """Write a file for the store of that name. When that fails too, how many replies are lost is said."""
    replies = sum(table is schema.reply for table, _ in rows)
    if not replies:
        return
    try:
        path = _write(_folder(store), "".join(json.dumps([table.name, values]) + "\n" for table, values in rows))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        log.warning("store %s: %d replies are lost: they can be kept nowhere (%s)", store, replies, error)
    else:
        log.warning("%d replies that could not be stored are in %s; the same command stores them first", replies, path)


def kept(store: str) -> Iterator[tuple[Path, list[Row]]]:
    """The files of the store with their rows; whoever has stored them deletes the file."""
    with contextlib.suppress(RuntimeError):
        for path in sorted(_folder(store).glob("*.jsonl")):
            yield path, list(_rows(path.read_text(encoding="ascii")))


def _write(folder: Path, text: str) -> Path:
    """A new file, whole or not there, for nobody else to read."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(suffix=".part", dir=folder)
    with open(handle, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return Path(part).rename(Path(part).with_suffix(".jsonl"))


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            name, values = json.loads(line)
            table = _PAID[name]
            yield table, _checked(values, {column.name for column in table.columns})


def _checked(values: Any, names: set[str]) -> dict[str, Any]:
    if set(values) != names:
        raise ValueError(f"given {sorted(values)}; expected {sorted(names)}")
    return dict(values)


def _folder(store: str) -> Path:
    """For the files of a store, which is named by its URL or by its file wherever a command is started."""
    name = store if "://" in store else str(Path(store).resolve())
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "opsmith" / "unsaved" / content_hash(name)[:24]
