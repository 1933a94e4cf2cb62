"""How long may a server's answer be? One that never ends is given up before it fills the memory."""

from __future__ import annotations

from typing import Any

LARGEST = 2**26  # bytes, unpacked: some hundred times the longest completion that a provider sells
_ANY_LENGTH = ("/content", "/results")  # of a batch: as many completions as were asked for


async def bounded(response: Any) -> None:
    """A hook on an SDK's HTTP client: reads the body of a response, whatever its status. Raises ValueError.

    The SDKs read a body whole before they hand it out, so that there is no later place to stop.
    """
    if response.request.url.path.endswith(_ANY_LENGTH):
        return
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > LARGEST:
            raise ValueError(f"a body of more than {LARGEST >> 20} MiB")
        parts.append(part)
    response._content = b"".join(parts)  # where httpx looks for a body that was read
