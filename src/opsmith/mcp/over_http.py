"""The server over HTTP, for who has the token; on this machine alone unless another address is asked for.

Every request carries `Authorization: Bearer TOKEN`. A page of a browser cannot use it: a request with an Origin other
than the server's own is refused, as is one that names this machine by a name of somebody else's (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opsmith.errors import UsageError
from opsmith.mcp.server import make_server
from opsmith.mcp.service import Service
from opsmith.ui.guard import LOOPBACK, match_secret, parse_host
from opsmith.ui.listening import ANY, PunctualProtocol, choose_token, open_listener

PATH = "/mcp"
LARGEST_BODY = 1 << 20  # bytes
_UNAUTHORISED = "expected the header `Authorization: Bearer TOKEN`, with the token that `opsmith mcp --http` printed\n"


class BearerGuard:
    """An ASGI application around another. `hosts` None: the server listens on every address, under any name."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refuse_request(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refuse_request(self, request: Request) -> Response | None:
        """The answer to a request that may not pass; None: it may."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self._hosts is not None and parse_host(host) not in self._hosts:
            return PlainTextResponse("this server answers under the address that it printed\n", 421)
        if origin is not None and _parse_netloc(origin) != host:
            return PlainTextResponse("this server answers no page of a browser\n", 403)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not match_secret(token.strip(), self._token):
            return PlainTextResponse(_UNAUTHORISED, 401, {"WWW-Authenticate": "Bearer"})
        return None


def serve_http(service: Service, address: str, token: str | None, say: Callable[[str], None]) -> None:
    """Answer until Ctrl-C; `say` is told the address and a token that was made. Raises UsageError."""
    host, port = parse_address(address)
    chosen = choose_token(token)
    with open_listener(host, port) as listener:
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        place = f"[{name}]" if ":" in name else name
        say(f"http://{place}:{listener.getsockname()[1]}{PATH}  (Ctrl-C ends it)")
        if token is None:
            say(f"Authorization: Bearer {chosen}")
        hosts = None if host in ANY else LOOPBACK | {host.lower()}
        config = uvicorn.Config(
            BearerGuard(make_app(service), chosen, hosts),
            http=PunctualProtocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            use_colors=False,
        )
        try:
            uvicorn.Server(config).run(sockets=[listener])
        except KeyboardInterrupt:
            return  # it is how one ends it


def parse_address(address: str) -> tuple[str, int]:
    """
    >>> parse_address("127.0.0.1:8742"), parse_address("[::1]:0")
    (('127.0.0.1', 8742), ('::1', 0))
    """
    try:
        address_parts = urlsplit(f"//{address}")
        host, port = address_parts.hostname, address_parts.port
    except ValueError:
        host = port = None
    if not host or port is None or address_parts.path or address_parts.username:
        raise UsageError(f"--address {address}: expected HOST:PORT, such as 127.0.0.1:8742; port 0: any free one")
    return host, port


def make_app(service: Service) -> ASGIApp:
    return make_server(service).streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LARGEST_BODY,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard is stricter
    )


def _parse_netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
