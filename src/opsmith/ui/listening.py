"""Where a server of ours listens: on this machine alone unless another address is asked for."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from asyncio import BaseTransport
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from opsmith.errors import UsageError

ANY = ("0.0.0.0", "::")  # every address of this machine
REQUEST_S = 30.0  # for a request to arrive whole, from when it may begin
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,200}")  # what an address can hold as it is


class PunctualProtocol(H11Protocol):
    """Closes a connection whose next request does not arrive whole in time: the library waits for ever for one that
    comes byte by byte."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # narrowed there
        self._expect_request()

    def on_response_complete(self) -> None:
        self._expect_request()  # before what is pipelined begins
        super().on_response_complete()

    def _expect_request(self) -> None:
        self.loop.call_later(REQUEST_S, self._close_late, self.cycle)

    def _close_late(self, before: object) -> None:
        if self.cycle is before or self.cycle.more_body:
            self.transport.close()


def choose_token(token: str | None) -> str:
    """That token, or a new one. Raises UsageError for one that could be guessed or would be misread."""
    if token is not None and not _TOKEN.fullmatch(token):
        raise UsageError("--token: expected 16 to 200 letters, digits or . _ ~ -; try: leave it out, and one is made")
    return token or secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


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
