"""The caches of this machine's processor, as Linux describes them. What cannot be read is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class CpuCache:
    """One cache that the first core uses."""

    level: int
    kind: str  # Data, Instruction or Unified
    size: int  # bytes
    cores: int | None  # that share it


def list_caches(folder: Path = FOLDER) -> Iterator[CpuCache]:
    """The caches of one core, innermost first."""
    for index in sorted(folder.glob("index*")):
        level, kind, size = (read_fact(index / name) for name in ("level", "type", "size"))
        bytes_of = _read_size(size)
        if level is not None and level.isdigit() and kind is not None and bytes_of is not None:
            yield CpuCache(int(level), kind, bytes_of, _count_cores(read_fact(index / "shared_cpu_list")))


def _count_cores(text: str | None) -> int | None:
    """
    >>> _count_cores("0-3,8")
    5
    """
    if text is None or not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        return None
    ranges = [[int(edge) for edge in part.split("-")] for part in text.split(",")]
    return sum(edges[-1] - edges[0] + 1 for edges in ranges)


def _read_size(text: str | None) -> int | None:
    """
    >>> _read_size("48K"), _read_size("much")
    (49152, None)
    """
    match = re.fullmatch(r"(\d+)([KMG]?)", text or "")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else None


def read_fact(path: Path) -> str | None:
    """What a file of the kernel says; None: nothing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
