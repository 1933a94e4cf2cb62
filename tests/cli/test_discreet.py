"""No log record of a command holds a key, and none ends the command."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from opsmith.cli.discreet import guard_logs

KEY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def guarded() -> Iterator[None]:
    before = logging.getLogRecordFactory()
    guard_logs()
    yield
    logging.setLogRecordFactory(before)


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("message", "values", "shown"),
    [
        ("key %s", (KEY,), "key [key]"),
        ("%d tries", (KEY,), "%d tries ('[key]',)"),
        ("two %s %s", (1,), "two %s %s (1,)"),
        ("none", (KEY,), "none ('[key]',)"),
        ("bad %", (1,), "bad % (1,)"),
        ("%s", (Unspeakable(),), "a message that cannot be shown"),
    ],
)
def test_a_record_is_shown_without_keys_and_a_malformed_one_as_it_is(
    caplog: pytest.LogCaptureFixture, message: str, values: tuple[object, ...], shown: str
) -> None:
    logging.getLogger("somebody").warning(message, *values)
    assert [record.getMessage() for record in caplog.records] == [shown]
