"""The server of the pages: on this machine, and on another address only for who has the token."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from opsmith.errors import UsageError
from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.feed import Feed
from opsmith.ui.guard import LOOPBACK, Access

ANY = ("0.0.0.0", "::")  # every address of this machine
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,200}")  # what an address can hold as it is


def serve_pages(store: Store, host: str, port: int, token: str | None, say: Callable[[str], None]) -> None:
    """Answer until Ctrl-C; `say` is told the address. Raises UsageError when it cannot listen there."""
    with open_listener(host, port) as listener:
        bound = listener.getsockname()[1]
        access = choose_access(host, bound, token)
        app, feed = make_app(store, access)
        say(f"{format_address(host, bound, access.token)}  (Ctrl-C ends it)")
        if host in ANY:
            say("from another machine: the same address with this machine's name in it")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            use_colors=False,  # its messages are printed like those of others
        )
        try:
            PageServer(config, feed).run(sockets=[listener])
        except KeyboardInterrupt:
            return  # it is how one ends it


def choose_access(host: str, port: int, token: str | None) -> Access:
    """A token is needed unless only this machine can ask; one is made when none was given."""
    if token is not None and not _TOKEN.fullmatch(token):
        raise UsageError("--token: expected 16 to 200 letters, digits or . _ ~ -; try: leave it out, and one is made")
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    return Access(token, port, LOOPBACK | {host.lower()})


def format_address(host: str, port: int, token: str | None) -> str:
    """What to open in a browser.

    >>> format_address("127.0.0.1", 8741, None), format_address("::", 80, "t")
    ('http://127.0.0.1:8741/', 'http://[::1]:80/?token=t')
    """
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # one of them
    place = f"[{name}]" if ":" in name else name
    return f"http://{place}:{port}/" + (f"?token={token}" if token else "")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class PageServer(uvicorn.Server):
    """Ends streams of events when it is told to end: they would keep it waiting."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._feed.close()
        await super().shutdown(sockets)


def open_listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise UsageError(f"--host {host}: {_describe_reason(error)}; expected an address of this machine") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"{host}, port {port}: {_describe_reason(error)}; try: another --port, or 0 for any free one"
        ) from error
    return listener


def _describe_reason(error: Any) -> str:
    return str(getattr(error, "strerror", None) or error).lower()
