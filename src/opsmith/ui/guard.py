"""Who may read a page, and who may change something: what every request passes before the pages see it.

- Without a token (this machine only): the Host header must name this machine, so that a page of another site cannot
  read ours under a name of its own that leads here (DNS rebinding).
- With a token: it comes once in the address (`?token=`), is answered with a cookie and an address without it.
- What changes something is POST from a page of ours: the Origin header must be ours, and the form carries a secret.
- Every answer says that it takes scripts, styles and images from here alone, and that no other page may frame it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FORM_LIMIT = 65536  # bytes of a form: a secret, and a note in percent signs
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # not stricter: the Origin header of a form would be `null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """What a request must bring; `token` None: only this machine can ask."""

    token: str | None = None
    port: int = 0  # names the cookie: a browser keeps cookies by host, not by port
    hosts: frozenset[str] = LOOPBACK
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie_name(self) -> str:
        return f"opsmith_{self.port}"

    @property
    def cookie_value(self) -> str:
        """Made from the token, so that it outlives this process; the token cannot be had from it."""
        return hashlib.sha256(f"opsmith ui {self.token}".encode()).hexdigest()

    def is_token(self, text: str) -> bool:
        return self.token is not None and match_secret(text, self.token)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(scope, MutableHeaders(scope=message))
            await send(message)

        refusal = self._refuse_request(Request(scope))
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refuse_request(self, request: Request) -> Response | None:
        """The answer to a request that may not pass; None: it may."""
        access = self._access
        if access.token is None:
            host = request.headers.get("host", "")
            return None if parse_host(host) in access.hosts else _render_page(421, _WRONG_HOST)
        if (token := request.query_params.get("token")) is not None:
            return self._answer_first_visit(request) if access.is_token(token) else _render_page(401, _NO_TOKEN)
        has_cookie = match_secret(request.cookies.get(access.cookie_name, ""), access.cookie_value)
        return None if has_cookie else _render_page(401, _NO_TOKEN)

    def _answer_first_visit(self, request: Request) -> Response:
        query = [(name, value) for name, value in parse_qsl(request.url.query) if name != "token"]
        path = "/" + request.url.path.lstrip("/\\")  # on this server: two slashes in front would name another one
        answer = RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)
        answer.set_cookie(
            self._access.cookie_name, self._access.cookie_value, max_age=30 * 86400, httponly=True, samesite="strict"
        )
        return answer


async def read_own_form(request: Request, access: Access) -> dict[str, str] | None:
    """The fields of a POST from a form of ours; None: it comes from elsewhere. Raises HTTPException: too long."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is not None and urlsplit(origin).netloc != host:
        return None
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_LIMIT:
            raise HTTPException(413, f"More than {FORM_LIMIT:,} bytes were sent: send a shorter text.")
    fields = {name: values[0] for name, values in parse_qs(body.decode("ascii", "replace")).items()}
    return fields if match_secret(fields.get("secret", ""), access.form_secret) else None


def parse_host(host: str) -> str:
    """The name in a Host header, without the port: `[::1]:8741` -> `::1`."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def match_secret(secret: str, expected: str) -> bool:
    """In a time that says nothing of where they differ."""
    return hmac.compare_digest(secret.encode("utf-8", "replace"), expected.encode())


def _add_headers(scope: Scope, headers: MutableHeaders) -> None:
    for name, value in HEADERS.items():
        headers[name] = value
    if not scope["path"].startswith("/static/"):
        headers["Cache-Control"] = "no-store"


_NO_TOKEN = "This page needs the token that <code>opsmith ui</code> printed: open the address it printed, as a whole."
_WRONG_HOST = "This server answers on this machine only: open the address that <code>opsmith ui</code> printed."


def _render_page(status: int, text: str) -> Response:
    start = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>opsmith</title></head>'
    return HTMLResponse(f"{start}<body><main><h1>Not here</h1><p>{text}</p></main></body></html>", status)
