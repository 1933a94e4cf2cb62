"""Which system calls may a process of foreign code make? A BPF filter for this thread, never to be taken off.

A denied call fails with EPERM, one that is newer than our tables with ENOSYS; a call by another processor's convention
kills the process. Signals reach nobody but the process itself; threads are allowed to it, processes are not. What files
may be opened is `landlock`'s question. Linux only; see prctl(2), seccomp(2) and linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Iterable
from functools import cache

from opsmith.verification import syscalls
from opsmith.verification.syscalls import ARGUMENTS, MACHINE

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, ...
_ALLOW, _DENY, _MISSING, _KILL = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_CLONE_THREAD = 0x10000
_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 1, 21, 22, 38, 2
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15  # signals to others when a descriptor gets ready
_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX = 0x8901, 0x8902, 0x5412, 0x541C
_O_TRUNC = os.O_TRUNC

Code = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand


def install(strict: bool, truncation: bool) -> None:
    """Filter this thread's calls from now on; `strict`: no more than computing. Raises OSError.

    `truncation`: also refuse to open files with O_TRUNC, where Landlock does not yet ask for the right to write.
    """
    code = b"".join(struct.pack("=HBBI", *line) for line in _program(os.getpid(), strict, truncation))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))


def give_up_privileges() -> None:
    """No new privileges for this process: the kernel wants that before it takes rules from an ordinary user."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0)


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0)


def is_known() -> bool:
    """Whether the kernel filters system calls, and ours is a processor whose calls we know."""
    return MACHINE is not None and sys.platform == "linux" and int(_libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def _program(pid: int, strict: bool, truncation: bool) -> list[Code]:
    assert MACHINE is not None
    lines = [_load(_ARCH), (_EQUAL, 1, 0, MACHINE.audit), _return(_KILL), _load(_NUMBER)]
    if MACHINE.foreign is not None:
        lines += [(_AT_LEAST, 0, 1, MACHINE.foreign), _return(_KILL)]
    lines += [(_AT_LEAST, 0, 1, syscalls.UNKNOWN), _return(_MISSING)]
    lines += _by_arguments(pid, strict, truncation)
    if strict:
        return [*lines, *_each(syscalls.COMPUTE.values(), _ALLOW), _return(_DENY)]
    tables = syscalls.NETWORK, syscalls.PROCESSES, syscalls.FILES, syscalls.SHARED, syscalls.SYSTEM
    return [*lines, *(line for table in tables for line in _each(table.values(), _DENY)), _return(_ALLOW)]


def _by_arguments(pid: int, strict: bool, truncation: bool) -> list[Code]:
    """The calls whose arguments decide. A process id is an int: the kernel reads its lower half only."""
    only_self = [_load_argument(0), (_EQUAL, 0, 1, pid), _return(_ALLOW), _return(_DENY)]
    threads = [_load_argument(0), (_ANY_BIT, 0, 1, _CLONE_THREAD), _return(_DENY if strict else _ALLOW), _return(_DENY)]
    unset = [_load_argument(2), (_EQUAL, 0, 3, 0), _load_argument(2, 4), (_EQUAL, 0, 1, 0), _return(_ALLOW)]
    names = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
    lines = [line for name in names for line in _when(name, only_self)]
    lines += _when("clone", threads) + _when("clone3", [_return(_MISSING)])  # its flags are out of a filter's reach
    lines += _when("prlimit64", [*unset, _return(_DENY)])
    lines += _when("prctl", _unless(0, [_PR_SET_PDEATHSIG]))
    lines += _when("fcntl", _unless(1, [_F_SETOWN, _F_SETSIG, _F_SETOWN_EX]))
    lines += _when("ioctl", _unless(1, [_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX]))
    return lines + _openings(truncation)


def _openings(truncation: bool) -> list[Code]:
    def opening(argument: int) -> list[Code]:
        return [_load_argument(argument), (_ANY_BIT, 0, 1, _O_TRUNC), _return(_DENY), _return(_ALLOW)]

    if not truncation:
        allow = [_return(_ALLOW)]
        return _when("openat", allow) + _when("open", allow) + _when("creat", allow)
    return _when("openat", opening(2)) + _when("open", opening(1)) + _when("creat", [_return(_DENY)])


def _when(name: str, block: list[Code]) -> list[Code]:
    """The block if the call is this one; a block always ends with a return, so the number stays loaded for the next."""
    number = ARGUMENTS.get(name)
    return [] if number is None else [(_EQUAL, 0, len(block), number), *block]


def _unless(argument: int, denied: list[int]) -> list[Code]:
    return [_load_argument(argument), *_each(denied, _DENY), _return(_ALLOW)]


def _each(values: Iterable[int], action: int) -> list[Code]:
    return [line for value in values for line in ((_EQUAL, 0, 1, value), _return(action))]


def _load(offset: int) -> Code:
    return _LOAD, 0, 0, offset


def _load_argument(number: int, half: int = 0) -> Code:
    """The lower half of an argument; `half` 4: the upper one (both kinds of processor are little-endian)."""
    return _load(_ARGUMENTS + 8 * number + half)


def _return(action: int) -> Code:
    return _RETURN, 0, 0, action


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, second: int, third: int) -> None:
    arguments = (ctypes.c_ulong(value) for value in (second, third, 0, 0))
    if _libc().prctl(option, *arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
