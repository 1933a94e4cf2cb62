"""This machine as if it were another one: the runner in a process of its own, for devices that only it drives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from opsmith.devices.peaks import find_cache_folder
from opsmith.remote.packing import Pack, write_pack
from opsmith.remote.ssh import ReceivedResults, RemoteError


def measure_here(pack: Pack, tell: Callable[[str], None]) -> ReceivedResults:
    """Have a pack measured by the runner. Raises RemoteError; what was measured until then is kept."""
    folder = find_cache_folder() / "remote" / f"here-{pack.id[:24]}"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_pack(pack, folder, "", "")
    command = [sys.executable, "-I", "-S", str(folder / "runner.py"), str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    last = ""
    try:
        for line in process.stderr:
            last = line.strip() or last
            tell(last)
        if process.wait():
            raise RemoteError(f"the runner ended with {process.returncode}: {last}")
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGINT)
    return ReceivedResults(folder / "results", folder)
