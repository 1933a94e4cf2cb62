"""The pages and their addresses. Thin: each handler asks the site and renders one template.

    /                          the runs                       live: /events
    /runs/RUN                  one run                        live: /runs/RUN/events
    /runs/RUN/samples          its samples, by filters, a page at a time
    /runs/RUN/samples/SAMPLE   prompt, reply, candidates, verdicts
    /runs/RUN/tasks/TASK       one task of the run
    /runs/RUN/attempts/TASK    its attempts, grouped by isomorphism
    /runs/RUN/failures         why its samples did not pass
    /runs/RUN/results          its numbers with intervals, and its curves
    /runs/RUN/delete           what goes with it, and the question whether it may
    /compare?run=A&run=B       runs in one table and one figure (show, by, group), two of them paired
    /compare?sample=RUN/SAMPLE&sample=RUN/SAMPLE
    POST                       `changes`

All of these only read. A name that does not exist is answered with 404 and a page that says what to try.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp

from opsmith.errors import OpsmithError, RunNameError, UsageError
from opsmith.store import Store
from opsmith.ui import comparing, views
from opsmith.ui.changes import add_changes
from opsmith.ui.feed import Feed
from opsmith.ui.guard import Access, Guard
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
    _add_comparisons(app, site)
    _add_streams(app, site, feed)
    add_changes(app, site)
    _add_errors(app, site)
    return Guard(app, access), feed


def _add_pages(app: FastAPI, site: Site) -> None:
    @app.get("/")
    def show_runs(request: Request) -> Response:
        return _render_page("runs.html", **views.fill_runs(site, request.query_params.getlist("tag")))

    @app.get("/runs/{run}")
    def run(run: str) -> Response:
        if (whole := site.find_run(run)) != run:  # only the beginning of its id was given
            return RedirectResponse(make_url(whole))
        return _render_page("run.html", **views.fill_run(site, run))

    @app.get("/runs/{run}/delete")
    def ask_deletion(run: str) -> Response:
        return _render_page("delete.html", **views.fill_deletion(site, site.find_run(run)))

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

    @app.get("/runs/{run}/failures")
    def show_failures(request: Request, run: str, now: str = "") -> Response:
        is_fragment = request.headers.get("hx-request") == "true"
        values = views.fill_failures(site, site.find_run(run), bool(now) or is_fragment)
        return _render_page("_why.html" if is_fragment else "why.html", **values)

    @app.get("/runs/{run}/failures/{task:path}")
    def show_task_failures(run: str, task: str) -> Response:
        return _render_page("_why_task_now.html", **views.fill_failures(site, site.find_run(run), True, task))

    @app.get("/runs/{run}/results")
    def show_results(request: Request, run: str, now: str = "") -> Response:
        is_fragment = request.headers.get("hx-request") == "true"
        values = views.fill_results(site, site.find_run(run), bool(now) or is_fragment)
        return _render_page("_results.html" if is_fragment else "results.html", **values)


def _add_comparisons(app: FastAPI, site: Site) -> None:
    @app.get("/compare")
    def show_beside(request: Request, now: str = "") -> Response:
        runs, samples = (request.query_params.getlist(name) for name in ("run", "sample"))
        if len(samples) == 2 and not runs:
            return _render_page("samples_beside.html", **comparing.fill_samples(site, (samples[0], samples[1])))
        if not 2 <= len(runs) <= comparing.MOST or samples:
            raise HTTPException(400, comparing.explain_choice(len(runs), len(samples)))
        is_fragment = request.headers.get("hx-request") == "true"
        values = comparing.fill_many(site, request.query_params, bool(now) or is_fragment)
        return _render_page("_many_runs.html" if is_fragment else "many_runs.html", **values)


def _add_streams(app: FastAPI, site: Site, feed: Feed) -> None:
    @app.get("/events")
    async def stream_runs() -> Response:
        return StreamingResponse(feed.stream_events(ALL), media_type="text/event-stream")

    @app.get("/runs/{run}/events")
    def stream_run(run: str) -> Response:
        return StreamingResponse(feed.stream_events(site.find_run(run)), media_type="text/event-stream")


def _add_errors(app: FastAPI, site: Site) -> None:
    @app.exception_handler(OpsmithError)
    async def show_own_error(request: Request, error: OpsmithError) -> Response:
        is_form = request.method == "POST"
        if isinstance(error, RunNameError) and not is_form:
            lines = [line for line in site.list_lines() if line.id in error.runs]
            return _render_error(404, error.problem, lines=lines)
        status = 503 if not isinstance(error, UsageError) else 400 if is_form else 404
        return _render_error(status, str(error), is_form=is_form)

    @app.exception_handler(StarletteHTTPException)
    async def show_http_error(_: Request, error: StarletteHTTPException) -> Response:
        return _render_error(error.status_code, str(error.detail), error.headers)

    @app.exception_handler(Exception)
    async def show_unforeseen(_: Request, error: Exception) -> Response:
        return _render_error(
            500, f"{type(error).__name__}: this is our mistake; the terminal of `opsmith ui` tells more"
        )


def _render_page(template: str, **values: Any) -> Response:
    return HTMLResponse(render_template(template, **{"live": None, **values}))


def _render_error(status: int, message: str, headers: Mapping[str, str] | None = None, **values: Any) -> Response:
    values = {"is_form": False, "lines": (), **values}
    return HTMLResponse(
        render_template("error.html", live=None, status=status, message=message, **values), status, dict(headers or {})
    )
