"""`opsmith note`, `tag` and `archive`: what people say of a run. The run itself stays what it was."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, RunName, StorePlace
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store import Store

_MINUS = {"ignore_unknown_options": True}  # `-bad` takes a tag away


def add_to(app: CommandApp) -> None:
    app.add("note", note_run, has_tables=False)
    app.add("tag", tag_run, has_tables=False, context_settings=_MINUS)
    app.add("archive", archive_run, has_tables=False)


def note_run(
    run: RunName,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Without it the note is printed.")] = None,
    is_replacing: Annotated[
        bool, typer.Option("--replace", help="TEXT in place of the note; '' takes it away.")
    ] = False,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Write a note on a run, or print it.

    TEXT becomes a further paragraph of the note: what others wrote stays. --replace writes it anew; earlier notes can
    be read on the run's page.
    """
    from opsmith.store.notes import add_to_note, write_note

    if is_replacing and text is None:
        raise UsageError("--replace: given without TEXT; expected the new note; try: --replace '' to take it away")
    with place.open() as store:
        run = store.find_run(run)
        if is_replacing and not write_note(store, run, text or "", store.read_remarks(run).note_number):
            raise UsageError(f"run {run}: somebody else wrote a note at this moment; try: opsmith note {run}")
        if text is not None and not is_replacing:
            add_to_note(store, run, text)
        _print_remarks(store, run, as_json)


def tag_run(
    run: RunName,
    tags: Annotated[list[str] | None, typer.Argument(metavar="+TAG|-TAG", help="Add, or take away.")] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name in place of its id; '' takes it away.")
    ] = None,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Tag or name a run, or print its tags.

    opsmith tag RUN +good -bad; then `opsmith runs --tag good` lists the runs that have it. After opsmith tag RUN --name
    fig2 every command takes fig2 for the run.
    """
    from opsmith.store.notes import change_tags, name_run

    changes = tags or []
    with place.open() as store:
        run = store.find_run(run)
        added = [tag.removeprefix("+") for tag in changes if not tag.startswith("-")]
        change_tags(store, run, added, [tag[1:] for tag in changes if tag.startswith("-")])
        if name is not None:
            name_run(store, run, name)
        _print_remarks(store, run, as_json)


def archive_run(
    run: RunName,
    is_undone: Annotated[bool, typer.Option("--undo", help="Show it in lists again.")] = False,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Hide a run from lists; nothing of it is deleted.

    `opsmith runs --tag archived` lists those that are hidden.
    """
    from opsmith.store.notes import ARCHIVED, change_tags

    with place.open() as store:
        run = store.find_run(run)
        change_tags(store, run, [] if is_undone else [ARCHIVED], [ARCHIVED] if is_undone else [])
        _print_remarks(store, run, as_json)


def _print_remarks(store: Store, run: str, as_json: bool) -> None:
    """All that is said of a run now."""
    from opsmith.records import printable

    remarks, name = store.read_remarks(run), store.read_names().get(run)
    if as_json:
        own = {"run": run, **({"name": name} if name else {})}
        print(json.dumps({**own, "note": remarks.text, "tags": list(remarks.all_tags)}))
        return
    print(f"run   {printable(run)}")
    if name:
        print(f"name  {printable(name)}")
    print(f"tags  {' '.join(remarks.all_tags) or '-'}")
    print(f"note  {printable(remarks.text or '-', keep=chr(10)).replace(chr(10), chr(10) + ' ' * 6)}")
