"""A file system of temporary files that has a size, for the processes of one order, where we may mount any (root).

It lies in memory and under no path: this process reaches it by its descriptor, and processes that it is passed to put
it over their folder in a namespace of their own (mount_namespaces(7)). So nothing has to be unmounted, however it all
ends: it is gone with the last who holds it. Memory that it takes counts where it is written.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from opsmith.running.syscalls import MACHINE, load_libc

_FSOPEN, _FSCONFIG, _FSMOUNT, _MOVE_MOUNT = 430, 431, 432, 429  # numbers of calls, the same everywhere
_SET_STRING, _CREATE = 1, 6  # FSCONFIG_
_NO_SETUID, _NO_DEVICES = 0x2, 0x4  # MOUNT_ATTR_
_EMPTY_PATH, _HERE = 0x4, -100  # MOVE_MOUNT_F_EMPTY_PATH, AT_FDCWD
_CLOEXEC = 1
_NEW_NAMESPACE = 0x20000  # CLONE_NEWNS
_PRIVATE = 0x44000  # MS_REC | MS_PRIVATE
_MOST_FILES = 20_000


@contextlib.contextmanager
def open_files_of_size(size: int) -> Iterator[int]:
    """The descriptor of an empty file system of so many bytes; -1: none can be had."""
    try:
        descriptor = _make_files(size)
    except (OSError, AttributeError):
        descriptor = -1
    try:
        yield descriptor
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def put_over(descriptor: int, folder: str) -> None:
    """Let this process, and what it starts, see that file system in place of a folder, and work there.

    Raises OSError.
    """
    _call_kernel("unshare", load_libc().unshare(_NEW_NAMESPACE))
    _call_kernel("mount", load_libc().mount(b"none", b"/", None, ctypes.c_ulong(_PRIVATE), None))
    _ask_kernel("move_mount", _MOVE_MOUNT, descriptor, b"", _HERE, os.fsencode(folder), _EMPTY_PATH)
    os.close(descriptor)
    os.chdir(folder)


def can_mount() -> bool:
    """Whether one can be had."""
    with open_files_of_size(1 << 20) as descriptor:
        return descriptor >= 0


def is_full(descriptor: int) -> bool:
    """Whether no page, or no file, is left."""
    status = os.fstatvfs(descriptor)
    return status.f_bavail == 0 or status.f_ffree == 0


def _make_files(size: int) -> int:
    if MACHINE is None:
        raise OSError("numbers of system calls are not known")
    context = _ask_kernel("fsopen", _FSOPEN, b"tmpfs", _CLOEXEC)
    try:
        for name, value in ((b"size", size), (b"nr_inodes", _MOST_FILES)):
            _ask_kernel("fsconfig", _FSCONFIG, context, _SET_STRING, name, str(value).encode(), 0)
        _ask_kernel("fsconfig", _FSCONFIG, context, _CREATE, None, None, 0)
        return _ask_kernel("fsmount", _FSMOUNT, context, _CLOEXEC, _NO_SETUID | _NO_DEVICES)
    finally:
        os.close(context)


def _ask_kernel(name: str, number: int, *arguments: int | bytes | None) -> int:
    values = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    return _call_kernel(name, int(load_libc().syscall(ctypes.c_long(number), *values)))


def _call_kernel(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
