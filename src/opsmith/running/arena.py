"""Memory that we share with one process of foreign code: the bytes of inputs and outputs, beside its socket.

An arena is a file without a name, of a fixed size, mapped by us and by the process that it was made for; pages that
nobody wrote to cost nothing. Messages say how many bytes lie in it from its start on. What lies there may change under
our eyes: it is copied before it is believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence

CAPACITY = 256 << 20  # bytes

_SEALS = 0x0F  # F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE
_SEAL_WRITE = 0x08

Buffer = bytes | memoryview


class Arena:
    """One end of it. Raises ValueError for what is too large for it."""

    def __init__(self, fd: int) -> None:
        """`fd`: of `open_arena`; it is closed."""
        self._map = mmap.mmap(fd, CAPACITY)
        os.close(fd)
        self._bytes = memoryview(self._map)

    def write_blobs(self, blobs: Iterable[Buffer]) -> list[int]:
        """Put blobs one after another, in place of all that was there; returns their sizes."""
        sizes, end = [], 0
        for blob in blobs:
            start, end = end, end + len(blob)
            if end > CAPACITY:
                raise ValueError(f"{end} bytes; expected at most {CAPACITY}")
            self._bytes[start:end] = blob
            sizes.append(len(blob))
        return sizes

    def view_blobs(self, sizes: Sequence[int]) -> list[memoryview]:
        """Those of the given sizes, until the next are written."""
        if not all(isinstance(size, int) and size >= 0 for size in sizes) or sum(sizes) > CAPACITY:
            raise ValueError(f"sizes {sizes!r:.80}; expected numbers of bytes, at most {CAPACITY} together")
        return list(self._cut_blobs(sizes))

    def free_pages(self) -> None:
        """Give its pages back; it holds zeros afterwards."""
        if hasattr(mmap, "MADV_REMOVE"):
            with contextlib.suppress(OSError):  # a file system that cannot
                self._map.madvise(mmap.MADV_REMOVE)

    def unmap_memory(self) -> None:
        """Unmap it, unless somebody still looks at a blob."""
        with contextlib.suppress(BufferError):
            self._bytes.release()
            self._map.close()

    def _cut_blobs(self, sizes: Sequence[int]) -> Iterator[memoryview]:
        end = 0
        for size in sizes:
            start, end = end, end + size
            yield self._bytes[start:end]


def open_arena() -> int:
    """The descriptor of a new arena, whose size nobody can change where the system has sealed memory."""
    fd = _open_memory()
    os.ftruncate(fd, CAPACITY)
    _seal_file(fd, _SEALS & ~_SEAL_WRITE)
    return fd


@contextlib.contextmanager
def opened_files(contents: Mapping[str, bytes]) -> Iterator[list[int]]:
    """Descriptors of files without names that nobody can change, in their order; closed at the end."""
    fds: list[int] = []
    try:
        for data in contents.values():
            fds.append(_open_memory())
            with open(fds[-1], "wb", closefd=False) as file:
                file.write(data)
            _seal_file(fds[-1], _SEALS)
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def _open_memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("opsmith", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _seal_file(fd: int, seals: int) -> None:
    if hasattr(fcntl, "F_ADD_SEALS"):
        with contextlib.suppress(OSError):  # a file that is no memory
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
