"""Bodies of servers' answers, read up to a bound: one that never ends is given up before it fills the memory."""

from __future__ import annotations

from typing import Any

LARGEST = 2**26  # bytes, unpacked: some hundred times the longest completion that a provider sells
_ANY_LENGTH = ("/content", "/results")  # of a batch: as many completions as were asked for


async def read_bounded(response: Any) -> None:
    """A hook on an SDK's HTTP client: reads the body of a response, whatever its status. Raises ValueError.

    The SDKs read a body whole before they hand it out, so that there is no later place to stop.
    """
    if response.request.url.path.endswith(_ANY_LENGTH):
        return
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > LARGEST:
            raise ValueError(f"a body of more than {LARGEST >> 20} MiB")
        chunks.append(chunk)
    response._content = b"".join(chunks)  # where httpx looks for a body that was read
