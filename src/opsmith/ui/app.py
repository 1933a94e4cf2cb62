"""The pages and their addresses. Thin: each handler asks the site and renders one template.

    /                          the runs                       live: /events
    /runs/RUN                  one run                        live: /runs/RUN/events
    /runs/RUN/samples          its samples, by filters, a page at a time
    /runs/RUN/samples/SAMPLE   prompt, reply, candidates, verdicts
    /runs/RUN/tasks/TASK       one task of the run
    /runs/RUN/attempts/TASK    its attempts, grouped by isomorphism
    /runs/RUN/results          its numbers with intervals, and its curves
    POST /runs/RUN/pause, /runs/RUN/resume

Everything else only reads. A name that does not exist is answered with 404 and a page that says what to try.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp

from opsmith.errors import OpsmithError, UsageError
from opsmith.store import Store
from opsmith.store.rows import Wish
from opsmith.ui import views
from opsmith.ui.feed import Feed
from opsmith.ui.guard import Access, Guard, is_ours
from opsmith.ui.render import SHARED, STATIC, make_url, render_template
from opsmith.ui.site import ALL, Site


def make_app(store: Store, access: Access) -> tuple[ASGIApp, Feed]:
    """The application, and its feed, which must be closed before the server can end."""
    site = Site(store, access)
    site.warm_up()
    feed = Feed(site.render_parts)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await feed.close()

    app = FastAPI(title="opsmith", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.get("/static/style.css")(lambda: FileResponse(SHARED / "style.css"))
    app.get("/static/pages.js")(lambda: FileResponse(SHARED / "pages.js"))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _add_pages(app, site)
    _add_streams(app, site, feed)
    _add_wishes(app, site)
    _add_errors(app)
    return Guard(app, access), feed


def _add_pages(app: FastAPI, site: Site) -> None:
    @app.get("/")
    def show_runs() -> Response:
        return _render_page("runs.html", live=ALL, lines=site.list_lines(), path=site.store.path)

    @app.get("/runs/{run}")
    def run(run: str) -> Response:
        if (moved := _redirect_prefix(site, run)) is not None:
            return moved
        return _render_page("run.html", **views.fill_run(site, run))

    @app.get("/runs/{run}/samples")
    def show_samples(request: Request, run: str) -> Response:
        values = views.fill_samples(site, site.find_run(run), request.query_params)
        is_fragment = request.headers.get("hx-request") == "true" and request.headers.get("hx-target") == "list"
        return _render_page("_samples.html" if is_fragment else "samples.html", **values)

    @app.get("/runs/{run}/samples/{sample}")
    def show_sample(run: str, sample: str) -> Response:
        return _render_page("sample.html", **views.fill_sample(site, site.find_run(run), sample))

    @app.get("/runs/{run}/tasks/{task:path}")
    def show_task(run: str, task: str) -> Response:
        return _render_page("task.html", **views.fill_task(site, site.find_run(run), task))

    @app.get("/runs/{run}/attempts/{task:path}")
    def show_attempts(run: str, task: str) -> Response:
        return _render_page("attempts.html", **views.fill_attempts(site, site.find_run(run), task))

    @app.get("/runs/{run}/results")
    def show_results(request: Request, run: str, now: str = "") -> Response:
        is_fragment = request.headers.get("hx-request") == "true"
        values = views.fill_results(site, site.find_run(run), bool(now) or is_fragment)
        return _render_page("_results.html" if is_fragment else "results.html", **values)


def _add_streams(app: FastAPI, site: Site, feed: Feed) -> None:
    @app.get("/events")
    async def stream_runs() -> Response:
        return StreamingResponse(feed.stream_events(ALL), media_type="text/event-stream")

    @app.get("/runs/{run}/events")
    def stream_run(run: str) -> Response:
        return StreamingResponse(feed.stream_events(site.find_run(run)), media_type="text/event-stream")


def _add_wishes(app: FastAPI, site: Site) -> None:
    async def note_wish(request: Request, run: str, wish: Wish) -> Response:
        if not await is_ours(request, site.access):
            raise HTTPException(403, "This form is not of this page, or of a server that has ended: load it again.")
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


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(OpsmithError)
    async def show_own_error(_: Request, error: OpsmithError) -> Response:
        return _render_error(404 if isinstance(error, UsageError) else 503, str(error))

    @app.exception_handler(StarletteHTTPException)
    async def show_http_error(_: Request, error: StarletteHTTPException) -> Response:
        return _render_error(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def show_unforeseen(_: Request, error: Exception) -> Response:
        return _render_error(
            500, f"{type(error).__name__}: this is our mistake; the terminal of `opsmith ui` tells more"
        )


def _redirect_prefix(site: Site, prefix: str) -> Response | None:
    """To the run's own address, when only the beginning of its id was given."""
    run = site.find_run(prefix)
    return RedirectResponse(make_url(run)) if run != prefix else None


def _render_page(template: str, **values: Any) -> Response:
    return HTMLResponse(render_template(template, **{"live": None, **values}))


def _render_error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(
        render_template("error.html", live=None, status=status, message=message), status, dict(headers or {})
    )
