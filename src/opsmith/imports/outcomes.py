"""What came of each imported file: a row of the table, and of `--json`."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opsmith.errors import UsageError


@dataclass(frozen=True)
class ImportRow:
    """One file of others: the problem file that it became, or why there is none."""

    file: str  # relative to the folder that is imported
    problem: str = ""  # "": refused
    written: str = ""  # the path of the problem file; "": nothing was written
    refusal: str = ""
    warnings: tuple[str, ...] = ()
    bytes_from: int | None = None  # of all tensors at the source's own sizes; None: it states none
    bytes_to: int | None = None  # at the base sizes of the problem file; None: refused
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.problem) == bool(self.refusal):
            raise ValueError(f"ImportRow {self.file}: expected either a problem or a refusal")


@dataclass(frozen=True)
class ImportReport:
    """All files of one import."""

    rows: Sequence[ImportRow]
    seconds: float
    peak_bytes: int  # of the largest process that ran foreign code, or of ours

    @property
    def imported(self) -> list[ImportRow]:
        return [row for row in self.rows if row.problem]

    @property
    def refused(self) -> list[ImportRow]:
        return [row for row in self.rows if row.refusal]

    def as_json(self) -> dict[str, Any]:
        return {
            "imported": len(self.imported),
            "refused": len(self.refused),
            "warned": sum(bool(row.warnings) for row in self.imported),
            "seconds": round(self.seconds, 3),
            "peak_bytes": self.peak_bytes,
            "files": [asdict(row) for row in self.rows],
        }


def read_bytes(text: str) -> int:
    """A number of bytes as a person writes it. Raises UsageError.

    >>> read_bytes("8MB"), read_bytes("512 KiB"), read_bytes("4e8")
    (8000000, 524288, 400000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d)?)\s*([kMG]?)(i?)B?\s*", text, re.I)
    if match is None:
        raise UsageError(f"--max-bytes: given {text!r}; expected a number of bytes, such as 8MB")
    power = " kmg".index(match[2].lower() or " ")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def measure_peak() -> int:
    """The most memory that this process, or one that it started and that has ended, had at once, in bytes."""
    usage = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return usage * (1 if sys.platform == "darwin" else 1024)
