"""Reading what the user names on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from opsmith.errors import UsageError

STDIN = Path("-")


def read_text(path: Path) -> str:
    """The text of a file, or of stdin for `-`; newlines become `\\n`."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise UsageError(f"{path}: does not exist; expected a text file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: given bytes that are no UTF-8 text ({error}); expected a text file") from error
