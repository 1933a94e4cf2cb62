"""Canonical YAML, piece by piece: rows of scalars, flow lists, literal blocks, shape sets, hand-made inputs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from opsmith.problems.problem import CaseSpec

_PLAIN = re.compile(r"[A-Za-z_][\w./*]*", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_RESOLVER: Any = yaml.resolver.Resolver()
_STR = "tag:yaml.org,2002:str"


def dash_rows(rows: list[str]) -> list[str]:
    return [f"  - {rows[0]}", *(f"    {row}" if row else "" for row in rows[1:])]


def write_shapes(shapes: Mapping[str, Mapping[str, int]], key: str = "shapes") -> list[str]:
    rows = []
    for name, sizes in shapes.items():
        entries = (f"{write_scalar(symbol)}: {size}" for symbol, size in sizes.items())
        rows.append(f"  {write_scalar(name)}: {{{', '.join(entries)}}}")
    return [f"{key}:", *rows] if rows else []


def write_codes(key: str, texts: Iterable[str]) -> list[str]:
    rows = [row for text in texts for row in dash_rows(write_block("", text, indent=""))]
    return [f"{key}:", *rows] if rows else []


def write_texts(key: str, texts: Iterable[str]) -> list[str]:
    """A list of short texts, one a row."""
    rows = [f"  - {write_scalar(text)}" for text in texts]
    return [f"{key}:", *rows] if rows else []


def write_cases(cases: Iterable[CaseSpec]) -> list[str]:
    blocks = [
        write_block(f"{write_scalar(case.shape)}: ", case.text) if case.shape else write_block("", case.text, indent="")
        for case in cases
    ]
    rows = [row for block in blocks for row in dash_rows(block)]
    return ["cases:", *rows] if rows else []


def write_code(key: str, text: str) -> list[str]:
    return write_block(f"{key}: ", text) if text else []


def write_text(key: str, text: str) -> list[str]:
    return write_block(f"{key}: ", text) if "\n" in text else [f"{key}: {write_scalar(text)}"]


def write_block(head: str, text: str, indent: str = "  ") -> list[str]:
    """A literal block, or a quoted text where a block cannot hold it (control characters, blank ends)."""
    body = text.removesuffix("\n")
    lines = body.split("\n")
    has_blank = any(line and not line.strip() for line in lines)
    if not body.strip() or _UNPRINTABLE.search(text) or body.endswith("\n") or has_blank:
        return [head + quote_text(text)]
    indicator = "2" if lines[0][:1] in ("", " ", "\t") else ""
    chomp = "" if text.endswith("\n") else "-"
    return [f"{head}|{indicator}{chomp}", *(indent + line if line else "" for line in lines)]


def write_flow(words: Iterable[str]) -> str:
    return f"[{', '.join(word if word.isdecimal() else write_scalar(word) for word in words)}]"


def write_scalar(text: str) -> str:
    """A string as a plain scalar where YAML reads it back as the same string, else quoted."""
    is_plain = _PLAIN.fullmatch(text) and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _STR
    return text if is_plain else quote_text(text)


def quote_text(text: str) -> str:
    dumped = yaml.safe_dump(text, default_style='"', width=math.inf, allow_unicode=True)
    return str(dumped).rstrip("\n")


def write_number(value: float) -> str:
    """A number that YAML 1.1 reads as a number: 0, 0.5, 1.0e-05, -inf (a string there, which the reader takes)."""
    text = repr(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def write_extra(data: Mapping[str, Any]) -> list[str]:
    if not data:
        return []
    return (
        str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True, width=math.inf))
        .removesuffix("\n")
        .split("\n")
    )
