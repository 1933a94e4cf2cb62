"""The filter of system calls, followed line by line as the kernel does: also for a processor that the tests lack."""

import errno
import json
import os
import subprocess
import sys

import pytest

from opsmith.running import seccomp, syscalls

pytestmark = pytest.mark.skipif(syscalls.MACHINE is None, reason="no table of system calls for this processor")

PID = 4711
ALLOWED, KILLED = seccomp._ALLOW, seccomp._KILL
REFUSED, MISSING = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS


def followed(program, number, arguments=(), audit=None):
    """What the filter returns for a call."""
    words = {0: number, 4: audit or syscalls.MACHINE.audit}
    for at, value in enumerate((*arguments, *[0] * (6 - len(arguments)))):
        words |= {16 + 8 * at: value & 0xFFFFFFFF, 20 + 8 * at: (value >> 32) & 0xFFFFFFFF}
    tests = {0x15: int.__eq__, 0x35: int.__ge__, 0x45: lambda a, b: bool(a & b)}
    at = loaded = 0
    while program[at][0] != 0x06:
        operation, if_true, if_false, operand = program[at]
        if operation == 0x20:
            loaded = words[operand]
        else:
            at += if_true if tests[operation](loaded, operand) else if_false
        at += 1
    return program[at][3]


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (("clone", 0x4111, 0), ALLOWED),  # vfork
        (("clone", 0x10000000), REFUSED),  # a namespace of users
        (("clone", 0x80), REFUSED),  # of time
        (("clone3",), MISSING),
        (("execve",), ALLOWED),
        (("kill", PID, 9), REFUSED),
        (("kill", 0, 9), REFUSED),
        (("tgkill", PID, PID, 6), REFUSED),
        (("setsid",), REFUSED),
        (("setpgid",), REFUSED),
        (("ptrace",), REFUSED),
        (("socket",), REFUSED),
        (("prctl", 1, 0), REFUSED),
        (("openat", -100, 0, os.O_RDONLY), ALLOWED),
        (("openat", -100, 0, os.O_WRONLY | os.O_TRUNC | os.O_CREAT), ALLOWED),
        (("openat", -100, 0, os.O_RDWR | os.O_TRUNC), ALLOWED),
        (("openat", -100, 0, os.O_RDONLY | os.O_TRUNC), REFUSED),
    ],
)
def test_a_compiler_starts_processes_and_nothing_else(call, answer):
    name, *arguments = call
    tables = {**syscalls.ARGUMENTS, **syscalls.NETWORK, **syscalls.PROCESSES}
    assert followed(seccomp._write_compiler_filter(), tables[name], arguments) == answer


def asked(name, *arguments, strict=False, truncation=False):
    program = seccomp._write_filter(PID, strict, truncation)
    number = {**syscalls.COMPUTE, **syscalls.ARGUMENTS, **syscalls.NETWORK}[name]
    return followed(program, number, arguments)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (("kill", PID, 9), ALLOWED),
        (("kill", 1, 9), REFUSED),
        (("kill", -1, 9), REFUSED),
        (("kill", PID + (1 << 32), 9), ALLOWED),  # an int: the kernel drops the upper half as well
        (("tgkill", PID + 1, PID, 9), REFUSED),
        (("clone", 0x10000), ALLOWED),
        (("clone", 0x10000 | 0x40000000), REFUSED),  # with a network of its own
        (("clone", 17), REFUSED),
        (("clone3",), MISSING),
        (("prlimit64", 0, 9, 0, 1 << 40), ALLOWED),
        (("prlimit64", 0, 9, 1), REFUSED),
        (("prlimit64", 0, 9, 1 << 32), REFUSED),
        (("prctl", 1, 0), REFUSED),
        (("prctl", 15), ALLOWED),
        (("fcntl", 3, 8, 1), REFUSED),
        (("fcntl", 3, 1), ALLOWED),
        (("ioctl", 0, 0x5412), REFUSED),
        (("openat", 0, 0, os.O_TRUNC | os.O_WRONLY), ALLOWED),  # Landlock's to refuse
        (("socket", 1, 1), REFUSED),
        (("read",), ALLOWED),
    ],
)
def test_what_a_worker_may_call(call, answer):
    assert asked(*call) == answer


def test_a_candidate_gets_no_thread_and_nothing_that_is_not_computing():
    assert asked("clone", 0x10000, strict=True) == REFUSED
    assert asked("mmap", strict=True) == ALLOWED
    program = seccomp._write_filter(PID, True, False)
    assert followed(program, syscalls.LANDLOCK_CREATE_RULESET) == REFUSED


def test_a_candidate_with_threads_gets_threads_and_nothing_else():
    program = seccomp._write_filter(PID, True, False, threads=True)
    assert followed(program, syscalls.ARGUMENTS["clone"], [0x10000]) == ALLOWED
    for flags in (17, 0x4111, 0x10000 | 0x20000000):
        assert followed(program, syscalls.ARGUMENTS["clone"], [flags]) == REFUSED
    assert followed(program, syscalls.PROCESSES["execve"]) == REFUSED


def test_an_old_landlock_leaves_truncation_to_the_filter():
    assert asked("openat", 0, 0, os.O_TRUNC, truncation=True) == REFUSED
    assert asked("openat", 0, 0, os.O_WRONLY, truncation=True) == ALLOWED


def test_newer_calls_are_missing_and_foreign_ones_kill():
    program = seccomp._write_filter(PID, False, False)
    assert followed(program, syscalls.UNKNOWN) == MISSING
    assert followed(program, 4, audit=0x40000003) == KILLED  # i386's write
    assert all(max(if_true, if_false) < 256 for _, if_true, if_false, _ in program)


def test_every_call_is_in_one_table():
    tables = syscalls.NETWORK, syscalls.PROCESSES, syscalls.FILES, syscalls.SHARED, syscalls.SYSTEM
    numbers = [number for table in (*tables, syscalls.ARGUMENTS, syscalls.COMPUTE) for number in table.values()]
    assert len(numbers) == len(set(numbers))


OTHER = """
import json, os, types
os.uname = lambda: types.SimpleNamespace(machine={machine!r})
from opsmith.running import seccomp, syscalls
print(json.dumps([syscalls.MACHINE.audit, syscalls.NETWORK, seccomp._write_filter(4711, False, True)]))
"""


@pytest.mark.parametrize(
    ("machine", "audit", "socket"),
    [("aarch64", 0xC00000B7, 198), ("x86_64", 0xC000003E, 41)],
)
def test_each_processor_has_its_own_numbers(machine, audit, socket):
    done = subprocess.run([sys.executable, "-c", OTHER.format(machine=machine)], capture_output=True, check=True)
    found, network, program = json.loads(done.stdout)
    assert (found, network["socket"]) == (audit, socket)
    assert followed(program, socket, audit=audit) == REFUSED
    assert followed(program, socket, audit=audit ^ 1) == KILLED
