"""`opsmith mcp`: serve agents of others over the Model Context Protocol."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import JudgingOptions, StorePlace, StoreUrl, TargetName, TargetOptions, read_target_options
from opsmith.cli.serving import needs_extra

if TYPE_CHECKING:
    from opsmith.judging.pool import Pool
    from opsmith.mcp.service import Service
    from opsmith.measuring.orders import Measurer


def add_to(app: CommandApp) -> None:
    app.add("mcp", serve_agents, has_tables=False, has_secret=True)


def serve_agents(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    allow: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Task files in it may be named too; may be given several times."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of a store that keeps what is submitted.")
    ] = None,
    url: StoreUrl = None,
    target: TargetName = None,
    option: TargetOptions = None,
    manual: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A manual of the language, to look up; may be given several times."),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP, instead of one client on stdin and stdout.")
    ] = False,
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where HTTP is served.")] = "127.0.0.1:8742",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            envvar="OPSMITH_MCP_TOKEN",
            help="What each request over HTTP must bring; default: a new one, which is printed.",
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="Verifier processes.")] = None,
    *,
    judging: JudgingOptions,
) -> None:
    """Serve tasks, checks and verdicts to an agent of yours (MCP).

    An agent starts this command by itself and speaks to it on stdin and stdout. To add it to one:

    claude mcp add opsmith -- opsmith mcp --out runs

    With --http it answers on this machine alone, for whoever has the printed token.
    """
    with needs_extra("mcp", ("mcp", "mcp_types", "starlette", "uvicorn")):
        import mcp.server  # noqa: F401
    from opsmith.mcp.places import TaskPlaces
    from opsmith.mcp.service import Service

    places = TaskPlaces(tuple(allow or ()), target, read_target_options(option))
    with ExitStack() as stack:
        store = stack.enter_context(StorePlace(out or Path(), url).make()) if out or url else None
        pool = stack.enter_context(judging.make_pool(workers=workers))
        share = max(1, pool.workers - 1)  # one is left for others
        service = Service(places, pool, store, partial(_make_measurer, pool), share, manual or ())
        if http:
            from opsmith.mcp.over_http import serve_http

            serve_http(service, address, token, lambda text: print(text, file=sys.stderr, flush=True))
        else:
            _serve_stdio(service)


def _make_measurer(pool: Pool) -> Measurer:
    from opsmith.executors.local_measurer import LocalMeasurer

    return LocalMeasurer(pool)


def _serve_stdio(service: Service) -> None:
    """Until the client ends it. A signal ends it at once: a thread that waits for a line cannot be told."""
    import asyncio

    from opsmith.mcp.server import serve_stdio

    sys.stdin, sys.stdout = sys.__stdin__, sys.__stdout__  # the protocol's; what is printed goes to stderr from here on
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(serve_stdio(service))
