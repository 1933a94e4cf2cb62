"""`opsmith ui`, `pause` and `resume`: look at runs while they go on."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import RunName, StorePlace
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store.rows import Wish


def add_to(app: CommandApp) -> None:
    app.add("ui", serve_pages, has_tables=False)
    app.add("pause", pause_run, has_tables=False)
    app.add("resume", resume_run, has_tables=False)


def serve_pages(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The same as --out DIR.")] = None,
    *,
    place: StorePlace,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0: any free one.")] = 8741,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            envvar="OPSMITH_UI_TOKEN",
            help="What a browser must bring; default: a new one where it is needed.",
        ),
    ] = None,
) -> None:
    """Look at runs in a browser, live, until Ctrl-C.

    It answers on this machine alone. On another address (--host) a browser must bring the token of the printed
    address. The connection is not encrypted: through a network that you do not trust, use an SSH tunnel instead.
    """
    with needs_extra():
        from opsmith.ui.serve import serve_pages
    with (place if folder is None else replace(place, out=folder)).open() as store:
        serve_pages(store, host, port, token, lambda text: print(text, file=sys.stderr, flush=True))


def pause_run(run: RunName, place: StorePlace) -> None:
    """Let a run wait: what is in flight is finished, nothing starts."""
    _store_wish(run, place, "pause")


def resume_run(run: RunName, place: StorePlace) -> None:
    """Let a paused run go on."""
    _store_wish(run, place, "resume")


def _store_wish(name: str, place: StorePlace, wish: Wish) -> None:
    from opsmith.learn.attend import store_wish

    with place.open() as store:
        run = store.find_run(name)
        store_wish(store, run, wish)
        held = store.is_held(run)
    now = {"pause": "pauses; `opsmith resume` lets it go on", "resume": "goes on"}[wish]
    later = {"pause": "will wait when it goes on", "resume": "will not wait when it goes on"}[wish]
    print(f"run {run} {now}" if held else f"run {run}: no process works on it now; it {later}", file=sys.stderr)


@contextmanager
def needs_extra(extra: str = "ui", packages: tuple[str, ...] = ("fastapi", "starlette", "uvicorn")) -> Iterator[None]:
    """Around imports: what is missing is told with the extra that brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        problem = f"this needs the extra `{extra}`; {error.name} is not installed"
        raise UsageError(f"{problem}; try: pip install 'opsmith[{extra}]'") from error
