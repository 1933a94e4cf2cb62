"""A nursery's process: it imports what its forks need once, and forks workers or candidates' processes from that.

`python -m opsmith.running.forks FD SERVICES [ENTRY...]` answers requests on the control socket FD; SERVICES is JSON of
`Services`, and each ENTRY enters a group of processes (`cgroups`). Its first message says what this system lacks for
isolation. A request that carries descriptors forks a process which serves them (a socket, an arena, and what its kind
gets beside; the answer is its process id); one that names a process id kills that process (the answer is its wait
status). A *seat* is a fork that answers requests itself, on its own socket, from within a group: what it forks is in
that group from the first moment, and nothing has to be moved. The nursery runs nobody's code but ours and never holds a
task. When the parent is gone it kills its children and ends.

Why not `multiprocessing`'s forkserver: its children import the caller's main script again, which breaks scripts and
notebooks that have no `if __name__ == "__main__"`, and its requests are pickles.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from opsmith.by_name import import_by_name
from opsmith.running import cgroups, seccomp
from opsmith.running.channel import NUMBER, UNCONFINED, write_frame
from opsmith.running.sandbox import Sandbox, confine_worker, missing, readable_by_workers

LARGEST_REQUEST = 4096  # bytes; one is sent and received at once
SEAT = "seat"  # the kind that is a nursery itself
MOST_DESCRIPTORS = 64  # of one request

Serve = Callable[[Sequence[int], Sandbox], None]  # its socket, its arena, and more


@dataclass(frozen=True)
class _Functions:
    """The functions of `Services`, imported once for all forks."""

    language: Callable[[str], None]
    kinds: Mapping[str, Serve]


def serve_nursery(control: socket.socket, services: Mapping[str, Any]) -> None:
    """Say what is missing, then fork and kill on request until the parent closes its end."""
    functions = _load_services(services)
    write_frame(control.fileno(), _probe_isolation().encode())
    _serve_forks(control, functions)


def _serve_forks(control: socket.socket, functions: _Functions) -> None:
    children: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, LARGEST_REQUEST, MOST_DESCRIPTORS)
        if not message:
            break
        request = json.loads(message)
        answer = _fork_child(request, functions, fds, children) if fds else _kill_child(request["kill"], children)
        control.sendall(NUMBER.pack(answer))
    for pid in children:
        _end_child(pid)


def _load_services(services: Mapping[str, Any]) -> _Functions:
    kinds = {kind: import_by_name(entry, "nursery") for kind, entry in services["kinds"].items()}
    import_by_name(services["start"], "nursery")()
    readable_by_workers()
    gc.freeze()
    return _Functions(cache(partial(_load_language, services["language"])), kinds)


def _load_language(entry: str, name: str) -> None:
    if name:
        import_by_name(entry, "nursery")(name)
        gc.freeze()


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


def _fork_child(request: dict[str, Any], functions: _Functions, fds: Sequence[int], children: set[int]) -> int:
    functions.language(request["language"])
    pid = os.fork()
    if pid == 0:
        status = UNCONFINED
        try:
            _isolate_from_siblings(fds)
            if request["fork"] == SEAT:
                cgroups.enter_groups(request["entries"])
                _serve_forks(socket.socket(fileno=fds[0]), functions)
                os._exit(0)
            seccomp.prefer_ending()
            functions.kinds[request["fork"]](fds, Sandbox(**request["sandbox"]))
            status = 0
        finally:
            os._exit(status)
    for fd in fds:
        os.close(fd)
    children.add(pid)
    return pid


def _isolate_from_siblings(fds: Sequence[int]) -> None:
    """A session and group of its own, no other descriptors, nobody to hear what it prints, no life without parent."""
    os.setsid()
    if sys.platform == "linux":
        seccomp.die_with_parent()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    bounds = [2, *sorted(fds), os.sysconf("SC_OPEN_MAX")]
    for lower, upper in itertools.pairwise(bounds):
        os.closerange(lower + 1, upper)


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


if __name__ == "__main__":
    cgroups.enter_groups(sys.argv[3:])
    serve_nursery(socket.socket(fileno=int(sys.argv[1])), json.loads(sys.argv[2]))
    os._exit(0)  # who closed it waits: to take torch down piece by piece costs half a second of processor time
