"""What a page may change. Every one is a POST from a form of ours, and works without a script:

    POST /runs/RUN/pause, /resume
    POST /runs/RUN/note                 `note`, `number` of the note that its writer has read
    POST /runs/RUN/tags                 `add`: tags with blanks or commas; `remove`: one
    POST /runs/RUN/archive, /unarchive
    POST /runs/RUN/delete

So many a minute at most: each adds a row to the store.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from opsmith.store.notes import ARCHIVED, change_tags, write_note
from opsmith.store.rows import Wish
from opsmith.ui.guard import read_own_form
from opsmith.ui.render import make_url, render_template
from opsmith.ui.site import Site

CHANGES = 60  # in a minute
_BETWEEN_TAGS = re.compile(r"[\s,]+")


class ChangeRate:
    """Refuses what is more than CHANGES in a minute, of all browsers together. Thread-safe."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=CHANGES)
        self._lock = threading.Lock()

    def count_change(self) -> None:
        with self._lock:
            now = time.monotonic()
            if len(self._times) == CHANGES and now - self._times[0] < 60:
                raise HTTPException(429, f"More than {CHANGES} changes in a minute: wait a moment, and send it again.")
            self._times.append(now)


def add_changes(app: FastAPI, site: Site) -> None:
    rate = ChangeRate()

    async def read_form(request: Request) -> dict[str, str]:
        form = await read_own_form(request, site.access)
        if form is None:
            raise HTTPException(403, "This form is not of this page, or of a server that has ended: load it again.")
        rate.count_change()
        return form

    async def note_wish(request: Request, run: str, wish: Wish) -> Response:
        await read_form(request)
        name = await run_in_threadpool(site.note_wish, run, wish)
        if request.headers.get("hx-request") == "true":
            return HTMLResponse((await run_in_threadpool(site.render_parts, name)).html_by_name["state"])
        return RedirectResponse(make_url(name), 303)

    @app.post("/runs/{run}/pause")
    async def pause_run(request: Request, run: str) -> Response:
        return await note_wish(request, run, "pause")

    @app.post("/runs/{run}/resume")
    async def resume_run(request: Request, run: str) -> Response:
        return await note_wish(request, run, "resume")

    @app.post("/runs/{run}/note")
    async def store_note(request: Request, run: str) -> Response:
        return await run_in_threadpool(_store_note, site, run, await read_form(request))

    @app.post("/runs/{run}/tags")
    async def store_tags(request: Request, run: str) -> Response:
        form = await read_form(request)
        removed = [form["remove"]] if "remove" in form else []
        added = [] if removed else [tag for tag in _BETWEEN_TAGS.split(form.get("add", "")) if tag]
        return await run_in_threadpool(_store_tags, site, run, added, removed)

    @app.post("/runs/{run}/archive")
    async def archive_run(request: Request, run: str) -> Response:
        await read_form(request)
        return await run_in_threadpool(_store_tags, site, run, [ARCHIVED], [])

    @app.post("/runs/{run}/unarchive")
    async def unarchive_run(request: Request, run: str) -> Response:
        await read_form(request)
        return await run_in_threadpool(_store_tags, site, run, [], [ARCHIVED])

    @app.post("/runs/{run}/delete")
    async def delete_run(request: Request, run: str) -> Response:
        await read_form(request)
        await run_in_threadpool(site.delete_run, run)
        return RedirectResponse("/", 303)


def _store_note(site: Site, name: str, form: Mapping[str, str]) -> Response:
    """The run's page; where somebody else was faster, a page with both notes."""
    run, text, number = site.find_run(name), form.get("note", ""), form.get("number", "0")
    if write_note(site.store, run, text, int(number) if number.isdecimal() and len(number) < 9 else 0):
        return RedirectResponse(make_url(run), 303)
    values = {"run": run, "mine": text, "remarks": site.store.read_remarks(run), "access": site.access, "live": None}
    return HTMLResponse(render_template("note_conflict.html", **values), 409)


def _store_tags(site: Site, name: str, added: list[str], removed: list[str]) -> Response:
    run = site.find_run(name)
    change_tags(site.store, run, added, removed)
    return RedirectResponse(make_url(run), 303)
