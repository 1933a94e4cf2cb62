"""The server of the pages: on this machine, and on another address only for who has the token."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from opsmith.store import Store
from opsmith.ui.app import make_app
from opsmith.ui.feed import Feed
from opsmith.ui.guard import LOOPBACK, Access
from opsmith.ui.listening import ANY, PunctualProtocol, choose_token, is_loopback, open_listener


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
            http=PunctualProtocol,
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
    chosen = None if token is None and is_loopback(host) else choose_token(token)
    return Access(chosen, port, LOOPBACK | {host.lower()})


def format_address(host: str, port: int, token: str | None) -> str:
    """What to open in a browser.

    >>> format_address("127.0.0.1", 8741, None), format_address("::", 80, "t")
    ('http://127.0.0.1:8741/', 'http://[::1]:80/?token=t')
    """
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # one of them
    place = f"[{name}]" if ":" in name else name
    return f"http://{place}:{port}/" + (f"?token={token}" if token else "")


class PageServer(uvicorn.Server):
    """Ends streams of events when it is told to end: they would keep it waiting."""

    def __init__(self, config: uvicorn.Config, feed: Feed) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._feed.close()
        await super().shutdown(sockets)
