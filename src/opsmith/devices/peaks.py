"""The most that threads of a device can do: operations and bytes per second, measured once and kept in a file.

A file that cannot be read, or is another version's, is as good as none: it can be measured again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsmith.records import dumps

VERSION = 2  # of the file, and of how they are measured


@dataclass(frozen=True)
class Bandwidth:
    """What can be moved between a core and the memory that holds so much data, in GB/s (10^9 bytes)."""

    working_set: int  # bytes
    read: float  # one array is read
    triad: float  # two arrays are read and one is written; what the cache reads in order to write is not counted

    @property
    def best(self) -> float:
        return max(self.read, self.triad)


@dataclass(frozen=True)
class Peaks:
    """Of one thread on a device, or of several together."""

    device: str  # Device.digest
    gflops: Mapping[str, float]  # dtype -> 10^9 operations per second; a fused multiply-add is two
    bandwidths: tuple[Bandwidth, ...]  # by rising working set
    threads: int = 1
    teams: tuple[Peaks, ...] = ()  # of more threads

    def __post_init__(self) -> None:
        sets = [bandwidth.working_set for bandwidth in self.bandwidths]
        figures = [*self.gflops.values(), *(figure for row in self.bandwidths for figure in (row.read, row.triad))]
        if not sets or sets != sorted(set(sets)) or not all(0 < figure < math.inf for figure in figures):
            raise ValueError(f"Peaks of {self.device[:8]}: expected positive figures by rising working set")

    def find_team(self, threads: int) -> Peaks | None:
        """Those of so many threads; None: they were not measured."""
        return next((peaks for peaks in (self, *self.teams) if peaks.threads == threads), None)

    def find_bandwidth(self, working_set: int) -> float:
        """The most for that many bytes or more: what a measured set of that size reaches, or the next smaller one."""
        fitting = [bandwidth.working_set for bandwidth in self.bandwidths if bandwidth.working_set <= working_set]
        least = max(fitting, default=0)
        return max(bandwidth.best for bandwidth in self.bandwidths if bandwidth.working_set >= least)


def save_peaks(peaks: Peaks, folder: Path | None = None) -> Path:
    """Write their file and give its path. Raises OSError."""
    path = _find_place(peaks.device, folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(".unfinished", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(dumps({"version": VERSION, "peaks": peaks}))
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    return path


def load_peaks(device: str, folder: Path | None = None) -> Peaks | None:
    """Those of a device by its digest; None: they were never measured."""
    try:
        return _read_peaks(json.loads(_find_place(device, folder).read_text(encoding="utf-8")), device)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _read_peaks(data: Mapping[str, Any], device: str) -> Peaks | None:
    values = data["peaks"]
    if data["version"] != VERSION or values["device"] != device:
        return None
    return _read_team(values)


def _read_team(values: Mapping[str, Any]) -> Peaks:
    gflops = {str(dtype): float(figure) for dtype, figure in values["gflops"].items()}
    rows = [Bandwidth(int(row["working_set"]), float(row["read"]), float(row["triad"])) for row in values["bandwidths"]]
    teams = tuple(map(_read_team, values["teams"]))
    return Peaks(str(values["device"]), gflops, tuple(rows), int(values["threads"]), teams)


def _find_place(device: str, folder: Path | None) -> Path:
    return (folder or find_cache_folder() / "devices") / f"{device[:24]}.json"


def find_cache_folder() -> Path:
    """The user's, for what can be made again."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "opsmith"
