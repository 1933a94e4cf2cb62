"""Which files may a process of foreign code open? A Landlock ruleset for this thread, which nothing can take off again.

Reading is allowed below the given paths, writing to the null device only. Commands on files of others may also execute
what they read, and make, write and remove plain files in one folder. TCP is denied from version 4 of the interface on,
but for the ports that are named; signals and abstract sockets outside the process's own domain from version 6 on. What
a path's name, size and times are can still be asked. Linux only; see landlock(7) and linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

from opsmith.running.syscalls import LANDLOCK_ADD_RULE, LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, load_libc

_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH, _PORT = 1, 2  # kinds of rules
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
_FOLDERS = 1 << 4 | 1 << 7  # the rights to remove and to make them
_READ, _NULL_DEVICE = _READ_FILE | _READ_DIR, _READ_FILE | _WRITE_FILE | _TRUNCATE
_WORK = _READ | _WRITE_FILE | _TRUNCATE | _REMOVE_FILE | _MAKE_FILE
_FILES = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}  # rights by version
_NET, _CONNECT, _SCOPES = 0b11, 0b10, 0b11  # bind and connect; abstract unix sockets and signals
TRUNCATES = 3  # the version from which on a right to write is needed for O_TRUNC
LIMITS_PORTS = 4  # the version from which on connections can be limited to ports


Place = str | os.PathLike[str]


@cache
def find_version() -> int:
    """The version of the kernel's interface; 0: it has none, or may not be asked."""
    try:
        version = _call_kernel(LANDLOCK_CREATE_RULESET, None, 0, _VERSION)
    except (OSError, AttributeError):
        return 0
    return max(version, 0)


def restrict_paths(readable: Iterable[Place]) -> None:
    """Confine this thread; a path that does not exist is passed over. Needs no_new_privs. Raises OSError."""
    _restrict_thread([(path, _READ) for path in readable])


def restrict_commands(
    executable: Iterable[Place], folder: Place, executes_folder: bool, makes_folders: bool, ports: Iterable[int]
) -> None:
    """Confine this thread and what it starts: it may read and execute the given paths, work in the folder, and connect
    to the given ports of TCP (from version LIMITS_PORTS on).

    `executes_folder`: it may execute what lies in the folder too; `makes_folders`: make folders there and remove them.
    Needs no_new_privs. Raises OSError.
    """
    work = _WORK | (_EXECUTE if executes_folder else 0) | (_FOLDERS if makes_folders else 0)
    _restrict_thread([*((path, _READ | _EXECUTE) for path in executable), (folder, work)], ports)


def _restrict_thread(rules: Iterable[tuple[Place, int]], ports: Iterable[int] = ()) -> None:
    rights = _FILES[min(find_version(), 5)]
    fields = [rights, *([_NET] if find_version() >= 4 else []), *([_SCOPES] if find_version() >= 6 else [])]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _call_kernel(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, wanted_rights in (*rules, (os.devnull, _NULL_DEVICE)):
            _allow_path(ruleset, path, wanted_rights & rights)
        for port in ports:
            _call_kernel(LANDLOCK_ADD_RULE, ruleset, _PORT, struct.pack("=QQ", _CONNECT, port), 0)
        _call_kernel(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_path(ruleset: int, path: Place, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights &= ~_READ_DIR if not os.path.isdir(path) else -1
        _call_kernel(LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, beneath), 0)
    finally:
        os.close(beneath)


def _call_kernel(number: int, *arguments: int | bytes | None) -> int:
    values = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    result = int(load_libc().syscall(ctypes.c_long(number), *values))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"landlock: {os.strerror(error)}")
    return result
