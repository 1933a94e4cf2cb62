"""Keys: read from where they lie, and kept out of every message and every stored reply.

A key is read from the environment, or else from the file `.env` in the working directory; the environment always wins
and is never changed. Nothing here keeps a key: it is read again for each client, and again to remove it from a text.
This is against accidents: who was sent a key can say it in any code, which no search for it finds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from opsmith.errors import UsageError

ENV_FILE = ".env"
MAX_ENV_BYTES = 64 * 1024
SHORTEST_SECRET = 8  # shorter values ("none", "EMPTY", a test server's "x") would blank out ordinary words
SHORTEST_HALF = 12  # of a long secret either half is blotted out too: a reply may be cut off within it

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_LOOK = re.compile(
    r"\b(?:sk|pk|tgp)[-_][A-Za-z0-9_\-*.]{8,}"  # as providers print it, stars in the middle
    r"|(?<=Bearer )[^\s\"',;]+"
    r"|(?<=://)(?!USER:PASSWORD@)[^\s/@\"':]*+:(?!\d{1,5}/)"  # user:password of an address (but not in our own help)
    r"(?:[^\s/\"']{1,1000}|[^\s@\"']{1,1000}+)(?=@)"  # up to the last @ of its host, or, with a / in it, to the first
    r"|(?<=[?&]password=)[^\s&\"'#]++",  # the bounds keep the search linear
    re.IGNORECASE,
)


def read_key(variable: str) -> str | None:
    """The key in `variable`, or None when there is none. Raises UsageError if it cannot be sent in a header."""
    value = os.environ.get(variable) or read_env_file().get(variable)
    key = (value or "").strip()
    if not key:
        return None
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise UsageError(
            f"{variable}: given a value with spaces or characters outside ASCII; expected a key as its provider "
            f"printed it; try: copy it again, without quotes or line breaks"
        )
    return key


def read_env_file() -> dict[str, str]:
    """The `NAME=value` lines of a `.env` file; empty when the file is missing or unreadable."""
    try:
        with Path(ENV_FILE).open("rb") as file:
            text = file.read(MAX_ENV_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return {}
    lines = (_LINE.fullmatch(line) for line in text.splitlines())
    return {line[1]: _parse_value(line[2]) for line in lines if line}


def _parse_value(text: str) -> str:
    """A value without its quotes or, unquoted, without the comment after it."""
    text = text.strip()
    if text[:1] in {"'", '"'}:
        end = text.find(text[0], 1)
        return text[1:end] if end > 0 else text[1:]
    return re.split(r"\s#", f" {text}", maxsplit=1)[0].strip()


def redact_secrets(text: str, keys: Iterable[str] = ()) -> str:
    """`text` without known secrets (see `blot_secrets`), and without all that looks like one: for messages."""
    return _SECRET_LOOK.sub("[key]", blot_secrets(text, keys))


def blot_secrets(text: str, keys: Iterable[str] = ()) -> str:
    """`text` with `keys` and every secret of the environment and of `.env` blotted out; all else stays as it is.

    >>> blot_secrets("E0 sk-1234567890abcdef E1", ["sk-1234567890abcdef"])
    'E0 [key] E1'
    """
    return make_blotter(keys)(text)


def make_blotter(keys: Iterable[str] = ()) -> Callable[[str], str]:
    """`blot_secrets` for several texts: the secrets are looked up once."""
    named = [*os.environ.items(), *read_env_file().items()]
    secrets = {*keys, *(value.strip() for name, value in named if _SECRET_NAME.search(name))}
    shapes = sorted({shape for secret in secrets for shape in _spell_secret(secret)}, key=len, reverse=True)

    def blot_text(text: str) -> str:
        for shape in shapes:
            text = text.replace(shape, "[key]")
        return text

    return blot_text


def _spell_secret(secret: str) -> Iterator[str]:
    """The texts that give a secret away: itself, as it stands in an address, and each half."""
    half = len(secret) // 2
    for shape in (secret, quote(secret, safe="")):
        if len(shape) >= SHORTEST_SECRET:
            yield shape
    if half >= SHORTEST_HALF and not secret.startswith(("/", "~", ".")):  # a path: its half is no secret
        yield from (secret[:half], secret[half:])
