"""The affine rule: every stream is consumed at most once.

The rule is about identities, not names: the checker counts consumptions of each abstract stream while it interprets the
program, so that aliases, tuples, lists, loops and keywords hide nothing. Returning a stream is not a consumption.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from opsmith.records import Diagnostic
from opsmith.targets.step.language.values import quote_line, shorten_text

MAX_FINDINGS = 20


class Consumption(NamedTuple):
    """One occurrence of a stream in the argument of an executed application."""

    line: int
    op: str
    role: str  # "index", "reference" or ""
    place: ast.expr | None  # the expression that names it in the call; None: inside a variable


class Consumed(Protocol):
    """What the rule needs to know of a stream."""

    name: str
    op: str
    line: int | None

    @property
    def uses(self) -> Sequence[Consumption]: ...


def affine_findings(streams: Sequence[Consumed], lines: Sequence[str]) -> list[Diagnostic]:
    """One AFFINE diagnostic for each stream that is consumed more than once, in program order."""
    broken = [stream for stream in streams if len(stream.uses) > 1]
    return [_describe_double_use(stream, lines) for stream in broken[:MAX_FINDINGS]]


def _describe_double_use(stream: Consumed, lines: Sequence[str]) -> Diagnostic:
    uses = stream.uses
    places = [f"line {use.line} {use.op}{f' ({use.role})' if use.role else ''}" for use in uses[:8]]
    name = shorten_text(stream.name) or "a stream"
    origin = f"{stream.op}, line {stream.line}" if stream.line else "input"
    line = uses[1].line
    return Diagnostic(
        "AFFINE",
        f"{name} ({origin})",
        f"consumed {len(uses)} times: {', '.join(places)}{', ...' if len(uses) > 8 else ''}",
        "at most 1",
        copies_remedy(name, len(uses)),
        line,
        None,
        quote_line(lines, line),
    )


def copies_remedy(name: str, uses: int) -> str:
    """The Copies that k uses need, in words and code."""
    name = name if name.isidentifier() else "X"
    if uses > 6:
        return f"{uses - 1} Copies: one stream of each for one use"
    return f"{uses - 1} {'Copy' if uses == 2 else 'Copies'}: {'; '.join(copy_lines(name, copy_names(name, uses)))}"


def copy_names(name: str, uses: int) -> list[str]:
    """Names of the 2 (k - 1) results of k - 1 chained Copies."""
    return [f"{name}_{i}" for i in range(2 * (uses - 1))]


def copy_lines(name: str, names: Sequence[str]) -> list[str]:
    """The statements that make the copies: each Copy after the first takes the second result of the one before."""
    sources = [name, *names[1:-1:2]]
    return [f"{names[2 * i]}, {names[2 * i + 1]} = step.Copy().apply({source})" for i, source in enumerate(sources)]
