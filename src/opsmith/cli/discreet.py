"""How a key is kept out of what a command prints. Messages, log records and tracebacks pass here on their way out.

Nothing that is imported at the start of a command is heavy; what knows the keys is imported when there is something to
print. Records of other packages are covered too: the SDKs log headers of answers when they are told to log everything.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from typing import Any, NoReturn


def without_keys(text: str) -> str:
    from opsmith.models.keys import redact_secrets  # noqa: PLC0415

    return redact_secrets(text)


def guard_logs() -> None:
    """From now on no log record of this process holds a key, whoever makes it."""
    make = logging.getLogRecordFactory()

    def made(*args: Any, **named: Any) -> logging.LogRecord:
        record = make(*args, **named)
        record.msg, record.args = without_keys(_record_text(record)), None
        if record.exc_info and record.exc_info[1] is not None:
            record.exc_text = without_keys("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        return record

    logging.setLogRecordFactory(made)


def _record_text(record: logging.LogRecord) -> str:
    """What a record says. A library's malformed call of a log ends no command: `logging` would not let it either."""
    for read_message in (record.getMessage, lambda: f"{record.msg} {record.args!r}"):
        with contextlib.suppress(Exception):
            return read_message()
    return "a message that cannot be shown"


def end_by_mistake() -> NoReturn:
    """In an `except`: a mistake of ours is told as Python tells it, and the process ends with exit code 1."""
    sys.exit(without_keys(traceback.format_exc()).rstrip())
