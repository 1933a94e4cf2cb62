"""The nursery's process: it imports torch once, and forks workers and candidates' processes from that.

`python -m opsmith.running.forks FD KINDS` answers requests on the control socket FD; KINDS is JSON: kind of process ->
`module:function` that serves it. Its first message says what this system lacks for isolation. A request that carries a
descriptor forks a process which serves that descriptor (the answer is its process id); one that names a process id
kills that process (the answer is its wait status). The nursery runs nobody's code but ours and never holds a task. When
the parent is gone it kills its children and ends.

Why not `multiprocessing`'s forkserver: its children import the caller's main script again, which breaks scripts and
notebooks that have no `if __name__ == "__main__"`, and its requests are pickles.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from opsmith.running import seccomp
from opsmith.running.channel import NUMBER, UNCONFINED, write_frame
from opsmith.running.sandbox import Sandbox, confine_worker, missing, readable_by_workers
from opsmith.targets import BUILT_IN, get_target
from opsmith.targets.protocols import Preloaded

LARGEST_REQUEST = 4096  # bytes; one is sent and received at once

Serve = Callable[[int, Sandbox], None]


def serve_nursery(control: socket.socket, served: Mapping[str, Serve]) -> None:
    """Fork and kill on request until the parent closes its end. `served`: what a fork of each kind does."""
    _preload_modules()
    gc.freeze()
    write_frame(control.fileno(), _probe_isolation().encode())
    children: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 1)
        if not message:
            break
        request = json.loads(message)
        answer = _fork_child(request, served, fds[0], children) if fds else _kill_child(request["kill"], children)
        control.sendall(NUMBER.pack(answer))
    for pid in children:
        _end_child(pid)


def _preload_modules() -> None:
    """What every worker needs, imported once and shared by all forks."""
    import torch  # noqa: PLC0415  (a second, which no importer of this module should pay)

    torch.set_num_threads(1)
    torch.backends.cpu.get_cpu_capability()  # read from /proc, which forks cannot: without it no vector instructions
    tempfile.gettempdir()  # found by writing, which no fork can; parts of torch ask for it when they are first used
    for target in map(get_target, sorted(BUILT_IN)):
        if isinstance(target, Preloaded):
            target.preload_modules()
    readable_by_workers()


def _probe_isolation() -> str:
    """What is missing for isolation, found by confining a fork of this process; "": nothing."""
    reason = missing()
    if reason:
        return reason
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(_is_confined())
        finally:
            os._exit(UNCONFINED)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return "" if status == 1 else f"the kernel takes the rules and does not keep them (the probe ended with {status})"


def _is_confined() -> bool:
    """Whether this process, once confined, can neither read a foreign folder nor make a socket."""
    confine_worker(Sandbox(), ())
    for attempt in (lambda: os.listdir("/"), socket.socket):
        with contextlib.suppress(PermissionError):
            attempt()
            return False
    return True


def _fork_child(request: dict[str, Any], served: Mapping[str, Serve], fd: int, children: set[int]) -> int:
    pid = os.fork()
    if pid == 0:
        status = UNCONFINED
        try:
            _isolate_from_siblings(fd)
            served[request["fork"]](fd, Sandbox(**request["sandbox"]))
            status = 0
        finally:
            os._exit(status)
    os.close(fd)
    children.add(pid)
    return pid


def _isolate_from_siblings(fd: int) -> None:
    """A session and group of its own, no descriptor but `fd`, nobody to hear what it prints, no life without parent."""
    os.setsid()
    if sys.platform == "linux":
        seccomp.die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))


def _kill_child(pid: int, children: set[int]) -> int:
    """Kill and reap; a process id stays ours until it is reaped here, so no other process can be hit."""
    if pid not in children:  # a child of an earlier nursery, which died with it
        return 0
    children.remove(pid)
    _end_child(pid)
    return os.waitpid(pid, 0)[1]


def _end_child(pid: int) -> None:
    """Kill a child and its group, which it leads unless it had no time to become a leader."""
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _import_served(entries: Mapping[str, str]) -> dict[str, Serve]:
    """The functions that `module:function` texts name, imported once for all forks."""
    named = {kind: entry.partition(":") for kind, entry in entries.items()}
    return {kind: getattr(import_module(module), function) for kind, (module, _, function) in named.items()}


if __name__ == "__main__":
    serve_nursery(socket.socket(fileno=int(sys.argv[1])), _import_served(json.loads(sys.argv[2])))
