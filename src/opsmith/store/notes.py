"""What people say of a run: a name, a note and tags. They are no part of its id, or of what two runs share.

A note is written whole, as the successor of the one that its writer has read: of two people who read the same note, the
second is told that the first was faster, and nothing is lost. Tags are added and removed one by one, so that two people
who change different tags do not meet. The tag `archived` hides a run from lists. A name stands for the id wherever a
run is asked for; it is kept as a change of tags, and the last one counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlalchemy import func, select

from opsmith.errors import UsageError
from opsmith.store import schema
from opsmith.store.reading import Reading

if TYPE_CHECKING:
    from opsmith.store import Store
    from opsmith.store.database import Row

ARCHIVED = "archived"
NOTE_LIMIT = 4000  # characters of a note
TAG_LIMIT = 40  # characters of a tag
TAGS_LIMIT = 20  # tags of a run
_TAG = re.compile(r"\w[\w.:/-]*")
_NAME = re.compile(r"\w[\w.:-]*")  # without a slash: it is part of addresses
TagChange = Literal["add", "remove", "name"]


@dataclass(frozen=True)
class WrittenNote:
    """A note as somebody wrote it; `number` counts the notes of its run from 1."""

    number: int
    text: str  # "": the note was taken away
    written: float  # seconds since 1970


@dataclass(frozen=True)
class Remarks:
    """What is said of a run now."""

    note: WrittenNote | None = None  # None: none was ever written
    all_tags: tuple[str, ...] = ()  # by name

    @property
    def text(self) -> str:
        """The note; "" where there is none."""
        return self.note.text if self.note is not None else ""

    @property
    def note_number(self) -> int:
        """What the next writer has read; 0: no note."""
        return self.note.number if self.note is not None else 0

    @property
    def is_archived(self) -> bool:
        return ARCHIVED in self.all_tags

    @property
    def tags(self) -> tuple[str, ...]:
        """Those that say something else than that it is archived."""
        return tuple(tag for tag in self.all_tags if tag != ARCHIVED)


NO_REMARKS = Remarks()


class NoteQueries(Reading):
    """Questions about notes and tags. A run of which nothing was said has none: that is no error."""

    def read_remarks(self, run: str) -> Remarks:
        notes = self.list_notes(run)
        return Remarks(notes[0] if notes else None, self._read_tags(run).get(run, ()))

    def list_remarks(self) -> dict[str, Remarks]:
        """By run; runs of which nothing was said are left out."""
        note, tags = schema.note, self._read_tags()
        last = select(note.c.run, func.max(note.c.number).label("number")).group_by(note.c.run).subquery()
        is_last = (note.c.run == last.c.run) & (note.c.number == last.c.number)
        rows = self.fetch_rows(select(note).join(last, is_last))
        notes = {row.run: WrittenNote(row.number, row.body, row.at) for row in rows}
        return {run: Remarks(notes.get(run), tags.get(run, ())) for run in {*notes, *tags}}

    def list_notes(self, run: str) -> list[WrittenNote]:
        """Every note that was written of a run, the newest first."""
        note = schema.note
        query = select(note).where(note.c.run == run).order_by(note.c.number.desc())
        return [WrittenNote(row.number, row.body, row.at) for row in self.fetch_rows(query)]

    def _read_tags(self, run: str | None = None) -> dict[str, tuple[str, ...]]:
        """By run, or of one run; of each tag the last change counts."""
        tag = schema.tag
        query = select(tag.c.run, tag.c.name, tag.c.change).where(tag.c.change != "name").order_by(tag.c.id_number)
        tags: dict[str, set[str]] = {}
        for row in self.fetch_rows(query if run is None else query.where(tag.c.run == run)):
            names = tags.setdefault(row.run, set())
            (names.add if row.change == "add" else names.discard)(row.name)
        return {name: tuple(sorted(names)) for name, names in tags.items() if names}


def name_run(store: Store, run: str, name: str) -> None:
    """Give a run a name in place of the one that it has; "" takes it away.

    Raises UsageError for a text that is no name, and for one that another run is called by.
    """
    if name and (not _NAME.fullmatch(name) or len(name) > TAG_LIMIT):
        raise UsageError(
            f"--name {name[:60]!r}: expected at most {TAG_LIMIT} letters, digits or . : _ - "
            "that begin with a letter, a digit or _; try: --name fig2-seed1"
        )
    names = store.read_names()
    owners = [other for other in store.list_ids() if name in (other, names.get(other)) and other != run]
    if name and owners:
        raise UsageError(f"--name {name}: given for run {run}; run {owners[0]} is called so; try: another name")
    if names.get(run, "") != name:
        store.put([_tag_row(run, name, "name")]).result()


def write_note(store: Store, run: str, text: str, after: int) -> bool:
    """Write the note that follows number `after`, the one that the writer has read (0: none).

    False: somebody else has written one since, and nothing was changed. Raises UsageError when it is too long.
    """
    body = text.replace("\r\n", "\n").strip().encode("utf-8", "replace").decode()
    if len(body) > NOTE_LIMIT:
        raise UsageError(f"note: given {len(body):,} characters; expected at most {NOTE_LIMIT:,}; try: a shorter one")
    written = store.list_notes(run)
    number = written[0].number if written else 0
    if number != after:
        return bool(written) and written[0].text == body
    if body == (written[0].text if written else ""):
        return True
    row: Row = (schema.note, {"run": run, "number": after + 1, "body": body, "at": time.time()})
    store.put([row]).result()  # a row that is there already stays: of two writers one wins
    return any(note.number == after + 1 and note.text == body for note in store.list_notes(run))


def add_to_note(store: Store, run: str, text: str) -> None:
    """Write a further paragraph below the note that there is, whatever somebody else writes at the same time."""
    while True:
        remarks = store.read_remarks(run)
        if write_note(store, run, "\n\n".join(filter(None, (remarks.text, text.strip()))), remarks.note_number):
            return


def change_tags(store: Store, run: str, added: Sequence[str], removed: Sequence[str] = ()) -> tuple[str, ...]:
    """All tags of the run afterwards. Raises UsageError for a text that is no tag, and for too many of them."""
    for name in (*added, *removed):
        _refuse_odd_tag(name)
    if both := sorted(set(added) & set(removed)):
        raise UsageError(f"tag {both[0]!r}: given to be added and removed; expected one of them")
    before = store.read_remarks(run).all_tags
    after = tuple(sorted({*before, *added} - set(removed)))
    if len(after) > TAGS_LIMIT:
        raise UsageError(f"tags: given {len(after)} for one run; expected at most {TAGS_LIMIT}; try: remove some")
    rows = [_tag_row(run, name, "add") for name in sorted(set(added) - set(before))]
    rows += [_tag_row(run, name, "remove") for name in sorted(set(removed) & set(before))]
    store.put(rows).result()
    return after


def has_tags(remarks: Remarks, tags: Iterable[str]) -> bool:
    """Whether a run passes a filter by tags; an archived one passes only where that is one of them."""
    names = set(tags)
    return names <= set(remarks.all_tags) and (ARCHIVED in names or not remarks.is_archived)


def _refuse_odd_tag(name: str) -> None:
    if not _TAG.fullmatch(name) or len(name) > TAG_LIMIT:
        raise UsageError(
            f"tag {name[:60]!r}: expected at most {TAG_LIMIT} letters, digits or . : / _ - "
            "that begin with a letter, a digit or _"
        )


def _tag_row(run: str, name: str, change: TagChange) -> Row:
    return schema.tag, {"run": run, "name": name, "change": change, "at": time.time()}
