"""Messages between us and a process of foreign code: length-prefixed bytes on one socket, never pickled.

`Channel` is our end, which trusts nothing: each call ends by its deadline, and a longer message than was asked for is
an error. `read_frame` and `write_frame` are the process's end, which blocks.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time

NUMBER = struct.Struct("!i")  # the nursery's answer to every request
UNCONFINED = 3  # what a process ends with that could not be confined

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 20  # bytes read at once


class Channel:
    """Our end. Raises TimeoutError at a deadline, EOFError or OSError after a hang-up, ValueError for junk."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, data: bytes, deadline: float) -> None:
        """Send one message; `deadline` in seconds of `time.monotonic`."""
        self._socket.settimeout(_seconds_left(deadline))
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self, largest: int, deadline: float) -> bytes:
        """The next message, of at most `largest` bytes."""
        length = _LENGTH.unpack(self._read_bytes(_LENGTH.size, deadline))[0]
        if length > largest:
            raise ValueError(f"a message of {length} bytes; expected at most {largest}")
        return self._read_bytes(length, deadline)

    def wait_message(self, seconds: float) -> bool:
        """Whether something comes within that time: a message, or the end."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def close(self) -> None:
        self._socket.close()

    def _read_bytes(self, size: int, deadline: float) -> bytes:
        read = bytearray()
        while len(read) < size:
            self._socket.settimeout(_seconds_left(deadline))
            chunk = self._socket.recv(min(size - len(read), _CHUNK))
            if not chunk:
                raise EOFError
            read += chunk
        return bytes(read)


def read_frame(fd: int) -> bytes | None:
    """The next message; None when the other end hung up."""
    head = _read_all(fd, _LENGTH.size)
    return None if head is None else _read_all(fd, _LENGTH.unpack(head)[0])


def write_frame(fd: int, data: bytes) -> None:
    unsent = memoryview(_LENGTH.pack(len(data)) + data)
    while unsent:
        unsent = unsent[os.write(fd, unsent) :]


def _read_all(fd: int, size: int) -> bytes | None:
    read = bytearray()
    while len(read) < size:
        chunk = os.read(fd, min(size - len(read), _CHUNK))
        if not chunk:
            return None
        read += chunk
    return bytes(read)


def _seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
