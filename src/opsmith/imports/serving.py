"""The worker's end of imports: what runs in the confined process beside files of others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_worker


def serve_requests(answer: Callable[[Mapping[str, Any]], Any], fds: Sequence[int], sandbox: Sandbox) -> None:
    """The process's end: confined, it answers until the parent hangs up."""
    confine_worker(sandbox, ())
    write_frame(fds[0], b"{}")
    while (frame := read_frame(fds[0])) is not None:
        write_frame(fds[0], json.dumps(answer(json.loads(frame))).encode())
