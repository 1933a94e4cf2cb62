"""What people say of a run is kept, and nobody's words are overwritten unseen; the run itself stays what it was."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from store.test_store import RUN, whole_run

from opsmith.errors import UsageError
from opsmith.store import Store
from opsmith.store.notes import NO_REMARKS, NOTE_LIMIT, add_to_note, change_tags, has_tags, write_note


@pytest.fixture
def store(where: Path | str) -> Iterator[Store]:
    with Store.open(where) as opened:
        opened.put(whole_run()).result()
        yield opened


def test_of_two_who_read_the_same_note_the_second_is_told_and_both_texts_stay(store: Store) -> None:
    assert store.read_remarks(RUN.id) == NO_REMARKS
    assert write_note(store, RUN.id, "  first\r\nline ", 0)
    assert not write_note(store, RUN.id, "second", 0), "its writer has read no note, and there is one"
    assert write_note(store, RUN.id, "second", 1)
    assert [(note.number, note.text) for note in store.list_notes(RUN.id)] == [(2, "second"), (1, "first\nline")]
    assert write_note(store, RUN.id, "", 2), "a note can be taken away"
    assert store.list_remarks()[RUN.id].text == ""


def test_of_many_who_write_at_once_one_wins_and_all_who_add_are_there(store: Store) -> None:
    texts = [f"text {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        wins = list(threads.map(lambda text: write_note(store, RUN.id, text, 0), texts))
        list(threads.map(lambda text: add_to_note(store, RUN.id, text), texts))
    assert wins.count(True) == 1
    paragraphs = store.read_remarks(RUN.id).text.split("\n\n")
    assert sorted(paragraphs) == sorted([*texts, texts[wins.index(True)]])


def test_tags_come_and_go_and_an_archived_run_passes_only_a_filter_that_asks_for_it(store: Store) -> None:
    assert change_tags(store, RUN.id, ["good", "paper/fig-2", "good"]) == ("good", "paper/fig-2")
    assert change_tags(store, RUN.id, ["archived"], ["good", "bad"]) == ("archived", "paper/fig-2")
    remarks = store.read_remarks(RUN.id)
    assert remarks == store.list_remarks()[RUN.id]
    assert (remarks.tags, remarks.is_archived) == (("paper/fig-2",), True)
    assert [has_tags(remarks, tags) for tags in ([], ["paper/fig-2"], ["archived"], ["good", "archived"])] == [
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("added", "removed"),
    [(["two words"], []), ([""], []), (["-x"], []), (["x" * 41], []), (["a\u202eb"], []), (["a"], ["a"])],
)
def test_what_is_no_tag_is_refused_and_so_are_too_many(store: Store, added: list[str], removed: list[str]) -> None:
    with pytest.raises(UsageError, match="tag"):
        change_tags(store, RUN.id, added, removed)
    with pytest.raises(UsageError, match="at most 20"):
        change_tags(store, RUN.id, [f"t{number}" for number in range(21)])
    with pytest.raises(UsageError, match="at most 4,000"):
        write_note(store, RUN.id, "x" * (NOTE_LIMIT + 1), 0)
    assert store.read_remarks(RUN.id) == NO_REMARKS


def test_a_run_is_the_same_whatever_is_said_of_it_and_takes_it_along_when_it_goes(store: Store) -> None:
    before = store.read_contents(RUN.id), store.summarise_run(RUN.id)
    write_note(store, RUN.id, "a\0b \ud83d", 0)
    change_tags(store, RUN.id, ["good"])
    assert (store.read_contents(RUN.id), store.summarise_run(RUN.id)) == before
    store.delete_run(RUN.id)
    assert store.list_remarks() == {}
