"""The installation's secret: what hidden sizes are drawn from where no run, export or recording has one of its own.

It lies in a file of the user's state folder, is made when first needed, and stays. Who can read it can tell the hidden
sizes of verdicts that were asked for without a run; candidates and code of task files cannot (`sandbox`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from functools import cache
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.records import Level, Scrutiny

_FILE = "secret"
_stated: list[str] = []  # `--secret` of this process


def state_secret(secret: str) -> None:
    """From here on this process uses this secret instead of the installation's, and gives it to the runs it begins."""
    _stated[:] = [secret]


def choose_secret(recorded: str | None = None) -> str:
    """What a new run is given: the stated one, that of the run that it plays back, or one that nobody has seen."""
    return _stated[0] if _stated else recorded or secrets.token_hex(16)


def read_scrutiny_here(level: Level = Level.CHEAP) -> Scrutiny:
    """Without a run: with the stated secret, or the installation's. Raises UsageError."""
    return Scrutiny(_stated[0] if _stated else read_installation_secret(), level)


def read_installation_secret() -> str:
    """Made when it is first asked for, by whoever comes first. Raises UsageError where it cannot be kept or read."""
    state = os.environ.get("XDG_STATE_HOME")
    return _read_kept((Path(state) if state else Path.home() / ".local/state") / "opsmith" / _FILE)


@cache
def _read_kept(path: Path) -> str:
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read_secret(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_secret(path)
        return _read_secret(path)
    except OSError as error:
        raise UsageError(
            f"{path}: the secret of this installation cannot be kept here ({error.strerror}); expected a folder that "
            "can be written; try: --secret N, or another folder in XDG_STATE_HOME"
        ) from error


def _read_secret(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise UsageError(f"{path}: given an empty file; expected the secret of this installation; try: remove the file")
    return text


def _write_secret(path: Path) -> None:
    """Whole or not at all; who comes second leaves what is there."""
    handle, name = tempfile.mkstemp(dir=path.parent)  # readable by its owner alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{secrets.token_hex(16)}\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
