"""What profiles say of a program's loops, read from their texts: the compiler's remarks by line, and the roofline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REMARK = re.compile(r"line (\d+), (?:innermost|holds loops)")
_SHARE = re.compile(r"share of the limit: ([\d.e-]+)")
_BOUND = re.compile(r"\b(memory|arithmetic)-bound")
_LONGEST = 160


@dataclass(frozen=True)
class LoopEvidence:
    """What the compiler says of one loop."""

    is_vectorised: bool  # without waiting for a sum
    text: str


@dataclass(frozen=True)
class Evidence:
    """What is known of a program beside its text."""

    remarks: Mapping[int, LoopEvidence]  # by line
    share: float | None = None  # of what the device allows
    bound: str = ""  # memory or arithmetic

    @property
    def most_gain(self) -> float:
        """Nothing is faster than the limit."""
        return 1 / self.share if self.share else float("inf")

    def describe_limit(self) -> str:
        """The roofline in a few words; "": nobody says."""
        if self.share is None:
            return ""
        return f"{self.bound}-bound at {100 * self.share:.0f} % of the limit" if self.bound else ""


def read_evidence(profiles: Mapping[str, str]) -> Evidence:
    """Of texts by the profiler's name; what is not there or written otherwise is not known."""
    roofline = profiles.get("roofline", "")
    share, bound = _SHARE.search(roofline), _BOUND.search(roofline)
    number = float(share[1]) if share is not None else 0.0
    return Evidence(_read_remarks(profiles.get("remarks", "")), number or None, bound[1] if bound is not None else "")


def _read_remarks(text: str) -> dict[int, LoopEvidence]:
    remarks: dict[int, list[str]] = {}
    line = 0
    for row in text.splitlines():
        match = _REMARK.match(row)
        if match is not None:
            line = int(match[1])
        elif row.startswith("  ") and line:
            remarks.setdefault(line, []).append(row.strip())
    return {line: _read_findings(rows) for line, rows in remarks.items()}


def _read_findings(rows: list[str]) -> LoopEvidence:
    is_vectorised = any(row.startswith("vectorised") for row in rows)
    return LoopEvidence(is_vectorised and "in-order reduction" not in rows, "; ".join(rows)[:_LONGEST])
