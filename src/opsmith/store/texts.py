"""How a text is kept where a database cannot hold it as it is. PostgreSQL refuses NUL, which a reply may well contain.

There NUL is written as ESC 0 and ESC as ESC 1; every other text is the same in both databases. Texts are ordered by
their code points in both, whatever the server's locale.
"""

from __future__ import annotations

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

_ESCAPE = "\x1b"


class _Escaped(TypeDecorator[str]):
    impl = Text(collation="C")
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return escape_text(value) if value else value

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return unescape_text(value) if value else value


def escape_text(text: str) -> str:
    r"""
    >>> escape_text("a\x00b")
    'a\x1b0b'
    """
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")


def unescape_text(text: str) -> str:
    """The inverse of `escape_text`."""
    if _ESCAPE not in text:
        return text
    return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)


TEXT: TypeEngine[str] = Text().with_variant(_Escaped(), "postgresql")
