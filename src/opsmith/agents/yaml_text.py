"""Entries of a YAML mapping that a prompt is written as, one after another; any text stays what it is.

What is written here is read back by `prompt.load_yaml`: equal up to the indentation that all lines share and to line
breaks at either end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import yaml

from opsmith.agents.prompt import format_yaml_block, indent_lines
from opsmith.models.parts import replace_surrogates

Rows = Mapping[str, str]  # written values (`write_scalar`, `write_block`) by key

_PLAIN = re.compile(r"[a-z_]{1,40}")
_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))


def write_scalar(text: str) -> str:
    """A text on one line: as it stands where it is a plain word, else in double quotes.

    >>> write_scalar("time"), write_scalar("a: b")
    ('time', '"a: b"')
    """
    if _PLAIN.fullmatch(text) and text not in _WORDS:
        return text
    quoted: str = yaml.safe_dump(replace_surrogates(text), default_style='"', width=2**31, allow_unicode=True)
    return quoted.removesuffix("\n")


def write_block(text: str) -> str:
    """A text of several lines as a literal block, for a key at column 0."""
    return format_yaml_block(replace_surrogates(text))


def write_text(text: str) -> str:
    """A text of a sentence or more: on one line where it has one."""
    return write_block(text) if "\n" in text.strip() else write_scalar(text.strip())


def write_number(number: float) -> str:
    """Four digits of it are enough for a reader.

    >>> write_number(1.23456), write_number(2.0)
    ('1.235', '2.0')
    """
    return repr(float(f"{number:.4g}"))


def write_mapping(rows: Rows) -> str:
    """The entries, those without a value left out.

    >>> print(write_mapping({"a": "1", "b": ""}), end="")
    a: 1
    """
    return "".join(f"{key}: {value}\n" for key, value in rows.items() if value)


def nest_mapping(key: str, rows: Rows) -> str:
    """An entry whose value is a mapping; nothing where that is empty."""
    body = write_mapping(rows)
    return f"{key}:\n{indent_lines(body)}" if body else ""


def nest_list(key: str, entries: Iterable[Rows | str]) -> str:
    """An entry whose value is a list of mappings; nothing where that is empty."""
    bodies = [entry if isinstance(entry, str) else write_mapping(entry) for entry in entries]
    return f"{key}:\n" + "".join("- " + indent_lines(body)[2:] for body in bodies) if bodies else ""
