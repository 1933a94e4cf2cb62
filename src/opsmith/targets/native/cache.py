"""A folder of built artefacts by key, for several processes at once. It may lose what it holds, and never lies.

A file is its content's sha256 and the content, so that one that was cut off is read as missing. It is written beside
its place and renamed. When all together are too large, those go first that were used longest ago.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.records import content_hash

_DIGEST = hashlib.sha256().digest_size
_UNFINISHED = ".unfinished"
_STALE_S = 3600.0  # an unfinished file as old as that belongs to a process that died


@dataclass(frozen=True)
class BuildKey:
    """What an artefact depends on. Two builds of one key make equal files."""

    problem: str  # digest
    target: str
    source: str
    flags: str  # BuildFlags.key: the instruction set is in it
    compiler: str  # with its version

    @property
    def digest(self) -> str:
        return content_hash(self.problem, self.target, self.source, self.flags, self.compiler)


class BuildCache:
    """Artefacts in a folder. A disk that fails is a cache that misses."""

    def __init__(self, folder: Path, largest: int = 256 << 20, interval: int = 64) -> None:
        """`largest`: bytes of all files together, which are counted at the first store and after each `interval`."""
        self._folder = folder
        self._largest = largest
        self._interval = interval
        self._stores = 0

    def fetch(self, key: BuildKey) -> bytes | None:
        """The artefact of a key; None: it is not there."""
        path = self._find_place(key)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, data = content[:_DIGEST], content[_DIGEST:]
        return data if hashlib.sha256(data).digest() == digest else None

    def store(self, key: BuildKey, data: bytes) -> None:
        if len(data) + _DIGEST > self._largest:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write_file(self._find_place(key), hashlib.sha256(data).digest() + data)
            if self._stores % self._interval == 0:
                self._drop_oldest()
            self._stores += 1

    def _find_place(self, key: BuildKey) -> Path:
        return self._folder / key.digest

    def _write_file(self, path: Path, content: bytes) -> None:
        handle, name = tempfile.mkstemp(_UNFINISHED, dir=self._folder)
        try:
            with open(handle, "wb") as file:
                file.write(content)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _drop_oldest(self) -> None:
        """Another process may drop the same ones."""
        files = sorted(self._list_files(), reverse=True)
        total = 0
        for used, size, path in files:
            total += size
            is_stale = path.suffix == _UNFINISHED and time.time() - used > _STALE_S
            if is_stale or total > self._largest:
                path.unlink(missing_ok=True)

    def _list_files(self) -> Sequence[tuple[float, int, Path]]:
        """When each was used last, its bytes and its path."""
        rows = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    rows.append((status.st_mtime, status.st_size, Path(entry.path)))
        return rows
