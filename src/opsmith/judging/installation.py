"""The installation's secret: what hidden sizes are drawn from where no run, export or recording has one of its own.

It lies in a file of the user's state folder, is made when first needed, and stays. Who can read it can tell the hidden
sizes of verdicts that were asked for without a run; candidates and code of task files cannot (`sandbox`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.records import Level, Scrutiny

_NAME = "secret"


def make_secret() -> str:
    """A new one, as a run gets it."""
    return secrets.token_hex(16)


def read_scrutiny_here(level: Level = Level.CHEAP) -> Scrutiny:
    """With the installation's secret. Raises UsageError."""
    return Scrutiny(read_installation_secret(), level)


def read_installation_secret() -> str:
    """Made when it is first asked for, by whoever comes first. Raises UsageError where it cannot be kept or read."""
    state = os.environ.get("XDG_STATE_HOME")
    path = (Path(state) if state else Path.home() / ".local/state") / "opsmith" / _NAME
    try:
        with contextlib.suppress(FileNotFoundError):
            return _read_secret(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_secret(path)
        return _read_secret(path)
    except OSError as error:
        raise UsageError(
            f"{path}: the secret of this installation cannot be kept here ({error.strerror}); expected a folder that "
            "can be written; try: --secret TEXT, or another folder in XDG_STATE_HOME"
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
            file.write(f"{make_secret()}\n")
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
