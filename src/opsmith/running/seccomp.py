"""Which system calls may a process of foreign code make? A BPF filter for this thread, never to be taken off.

A denied call fails with EPERM, one that is newer than our tables with ENOSYS; a call by another processor's convention
kills the process. Signals reach nobody but the process itself; threads are allowed to it, processes to a compiler only.
What files may be opened is `landlock`'s question. Linux only; see prctl(2), seccomp(2) and linux/filter.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Iterable

from opsmith.running import syscalls
from opsmith.running.syscalls import ARGUMENTS, MACHINE, load_libc

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, ...
_ALLOW, _DENY, _MISSING, _KILL = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS, 0x80000000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_CLONE_THREAD = 0x10000
_NOBODY = 0x7FFFFFFF  # no process has this id
_CLONE_NAMESPACES = 0x7E020080  # every CLONE_NEW...
_COMMAND_CALLS = frozenset({"execve", "ftruncate"})
_DRIVER_CALLS = _COMMAND_CALLS | {"fork", "vfork"}  # it starts processes
_CLIENT_CALLS = frozenset({"socket", "connect", "sendto", "sendmsg", "recvmsg"})
_PR_SET_PDEATHSIG, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _MODE_FILTER = 1, 21, 22, 38, 2
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15  # signals to others when a descriptor gets ready
_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX = 0x8901, 0x8902, 0x5412, 0x541C
_O_TRUNC = os.O_TRUNC
_AF_INET, _AF_INET6, _IPPROTO_TCP = 2, 10, 6  # Linux's; the module that knows them is slow to import
_MSG_FASTOPEN = 0x20000000
_STREAMS = [1 | extra for extra in (0, 0o4000, 0o2000000, 0o2004000)]  # SOCK_STREAM, NONBLOCK, CLOEXEC

Code = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand


def install_filter(strict: bool, truncation: bool, threads: bool = False) -> None:
    """Filter this thread's calls from now on; `strict`: no more than computing. Raises OSError.

    `threads`: those are computing too.
    `truncation`: also refuse to open files with O_TRUNC, where Landlock does not yet ask for the right to write.
    """
    _install_lines(_write_filter(os.getpid(), strict, truncation, threads))


def install_commands_filter(has_processes: bool, has_sockets: bool) -> None:
    """Filter the calls of this thread and of all that it starts. Raises OSError.

    `has_processes`: they are allowed, but neither a session or group of their own nor a signal to another one; else
    only other programs in their place. `has_sockets`: connections of TCP, to where Landlock lets them go.
    """
    lines = _write_compiler_filter(has_sockets) if has_processes else _write_command_filter(os.getpid(), has_sockets)
    _install_lines(lines)


def _install_lines(lines: list[Code]) -> None:
    code = b"".join(struct.pack("=HBBI", *line) for line in lines)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
    _call_prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))


def give_up_privileges() -> None:
    """No new privileges for this process: the kernel wants that before it takes rules from an ordinary user."""
    _call_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0)


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends."""
    _call_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0)


def prefer_ending() -> None:
    """Let the kernel end this process, and what it starts, before any other when memory is short."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")


def is_known() -> bool:
    """Whether the kernel filters system calls, and ours is a processor whose calls we know."""
    return MACHINE is not None and sys.platform == "linux" and int(load_libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def _write_filter(pid: int, strict: bool, truncation: bool, threads: bool = False) -> list[Code]:
    lines = [*_check_convention(), *_by_arguments(pid, strict and not threads), *_check_openings(truncation)]
    if strict:
        return [*lines, *_return_each(syscalls.COMPUTE.values(), _ALLOW), _answer_call(_DENY)]
    return [*lines, *_deny_calls(), _answer_call(_ALLOW)]


def _write_compiler_filter(has_sockets: bool = False) -> list[Code]:
    """Like a worker's, with processes; O_TRUNC is refused where Landlock would not ask for the right to write."""
    no_namespaces = [
        _load_argument(0),
        (_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
        _answer_call(_DENY),
        _answer_call(_ALLOW),
    ]
    lines = [*_check_convention(), *_write_block("clone", no_namespaces), *_by_arguments(_NOBODY, False)]
    return [*lines, *_check_writing(), *_deny_unless(_DRIVER_CALLS, has_sockets), _answer_call(_ALLOW)]


def _write_command_filter(pid: int, has_sockets: bool) -> list[Code]:
    """Like a compiler's, for one process, which may signal itself and start threads."""
    lines = [*_check_convention(), *_by_arguments(pid, False), *_check_writing()]
    return [*lines, *_deny_unless(_COMMAND_CALLS, has_sockets), _answer_call(_ALLOW)]


def _check_writing() -> list[Code]:
    return [*_write_block("openat", _deny_truncated_reading(2)), *_write_block("open", _deny_truncated_reading(1))]


def _deny_unless(allowed: frozenset[str], has_sockets: bool) -> list[Code]:
    if not has_sockets:
        return _deny_calls(allowed)
    sockets = _write_block("socket", _deny_but_tcp())
    for name, flags in (("sendto", 3), ("sendmsg", 2)):
        sockets += _write_block(name, _deny_fast_open(flags))
    return [*sockets, *_deny_calls(allowed | _CLIENT_CALLS)]


def _deny_but_tcp() -> list[Code]:
    """Sockets of other families and kinds reach places that Landlock does not ask about."""
    families = [_load_argument(0), (_EQUAL, 2, 0, _AF_INET), (_EQUAL, 1, 0, _AF_INET6), _answer_call(_DENY)]
    kinds = [line for kind in _STREAMS for line in ((_EQUAL, 0, 1, kind), _answer_call(_ALLOW))]
    protocols = [_load_argument(2), (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, _IPPROTO_TCP), _answer_call(_DENY)]
    return [*families, *protocols, _load_argument(1), *kinds, _answer_call(_DENY)]


def _deny_fast_open(flags: int) -> list[Code]:
    """A first message that connects is not asked about by every kernel's Landlock."""
    return [_load_argument(flags), (_ANY_BIT, 0, 1, _MSG_FASTOPEN), _answer_call(_DENY), _answer_call(_ALLOW)]


def _check_convention() -> list[Code]:
    """Kills at a call by another processor's convention; the call's number stays loaded."""
    assert MACHINE is not None
    lines = [_load_word(_ARCH), (_EQUAL, 1, 0, MACHINE.audit), _answer_call(_KILL), _load_word(_NUMBER)]
    if MACHINE.foreign is not None:
        lines += [(_AT_LEAST, 0, 1, MACHINE.foreign), _answer_call(_KILL)]
    return [*lines, (_AT_LEAST, 0, 1, syscalls.UNKNOWN), _answer_call(_MISSING)]


def _deny_calls(allowed: frozenset[str] = frozenset()) -> list[Code]:
    tables = syscalls.NETWORK, syscalls.PROCESSES, syscalls.FILES, syscalls.SHARED, syscalls.SYSTEM
    numbers = [number for table in tables for name, number in table.items() if name not in allowed]
    return _return_each(numbers, _DENY)


def _deny_truncated_reading(argument: int) -> list[Code]:
    """O_TRUNC together with O_RDONLY empties a file that may not be written."""
    flags = [_load_argument(argument), (_ANY_BIT, 1, 0, _O_TRUNC), _answer_call(_ALLOW)]
    return [*flags, (_ANY_BIT, 1, 0, os.O_WRONLY | os.O_RDWR), _answer_call(_DENY), _answer_call(_ALLOW)]


def _by_arguments(pid: int, strict: bool) -> list[Code]:
    """The calls whose arguments decide. A process id is an int: the kernel reads its lower half only."""
    only_self = [_load_argument(0), (_EQUAL, 0, 1, pid), _answer_call(_ALLOW), _answer_call(_DENY)]
    threads = [
        _load_argument(0),
        (_ANY_BIT, 0, 1, _CLONE_NAMESPACES),
        _answer_call(_DENY),
        (_ANY_BIT, 0, 1, _CLONE_THREAD),
        _answer_call(_DENY if strict else _ALLOW),
        _answer_call(_DENY),
    ]
    unset = [_load_argument(2), (_EQUAL, 0, 3, 0), _load_argument(2, 4), (_EQUAL, 0, 1, 0), _answer_call(_ALLOW)]
    names = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
    lines = [line for name in names for line in _write_block(name, only_self)]
    lines += _write_block("clone", threads) + _write_block(
        "clone3", [_answer_call(_MISSING)]
    )  # its flags are out of a filter's reach
    lines += _write_block("prlimit64", [*unset, _answer_call(_DENY)])
    lines += _write_block("prctl", _deny_values(0, [_PR_SET_PDEATHSIG]))
    lines += _write_block("fcntl", _deny_values(1, [_F_SETOWN, _F_SETSIG, _F_SETOWN_EX]))
    return lines + _write_block("ioctl", _deny_values(1, [_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX]))


def _check_openings(truncation: bool) -> list[Code]:
    def check_flags(argument: int) -> list[Code]:
        return [_load_argument(argument), (_ANY_BIT, 0, 1, _O_TRUNC), _answer_call(_DENY), _answer_call(_ALLOW)]

    if not truncation:
        allow = [_answer_call(_ALLOW)]
        return _write_block("openat", allow) + _write_block("open", allow) + _write_block("creat", allow)
    return (
        _write_block("openat", check_flags(2))
        + _write_block("open", check_flags(1))
        + _write_block("creat", [_answer_call(_DENY)])
    )


def _write_block(name: str, block: list[Code]) -> list[Code]:
    """The block if the call is this one; a block always ends with a return, so the number stays loaded for the next."""
    number = ARGUMENTS.get(name, syscalls.NETWORK.get(name))
    return [] if number is None else [(_EQUAL, 0, len(block), number), *block]


def _deny_values(argument: int, denied: list[int]) -> list[Code]:
    return [_load_argument(argument), *_return_each(denied, _DENY), _answer_call(_ALLOW)]


def _return_each(values: Iterable[int], action: int) -> list[Code]:
    return [line for value in values for line in ((_EQUAL, 0, 1, value), _answer_call(action))]


def _load_word(offset: int) -> Code:
    return _LOAD, 0, 0, offset


def _load_argument(number: int, half: int = 0) -> Code:
    """The lower half of an argument; `half` 4: the upper one (both kinds of processor are little-endian)."""
    return _load_word(_ARGUMENTS + 8 * number + half)


def _answer_call(action: int) -> Code:
    return _RETURN, 0, 0, action


def _call_prctl(option: int, second: int, third: int) -> None:
    arguments = (ctypes.c_ulong(value) for value in (second, third, 0, 0))
    if load_libc().prctl(option, *arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl {option}: {os.strerror(number)}")
