"""The process side of the pool: a nursery that imports torch once, and the warm workers that it forks.

`python -m opsmith.verification.worker FD` is the nursery. On the control socket FD it answers fixed four-byte messages:
one that carries a file descriptor forks a worker which serves that descriptor (the answer is its process id); one that
names a process id kills that worker (the answer is its wait status). It runs nobody's code but ours. A worker reads
JSON requests and answers JSON verdicts; authors' code runs in it, and nowhere else. When the parent is gone the
nursery kills its workers and ends. What a worker prints is lost: the verdict is its only answer.

Why not `multiprocessing`'s forkserver: its children import the caller's main script again, which breaks scripts and
notebooks that have no `if __name__ == "__main__"`, and its requests are pickles.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, cast

from opsmith.errors import OpsmithError
from opsmith.records import Boundary, Task, Verdict, to_json
from opsmith.targets import TaskFault, get_target
from opsmith.verification.audit import audit
from opsmith.verification.bench import timings
from opsmith.verification.verifier import describe, unjudged, verify

NUMBER = struct.Struct("!i")  # every control message and every answer to one
READY = 0


def nursery(control: socket.socket) -> None:
    """Fork and kill workers on request until the parent closes its end."""
    import torch  # noqa: PLC0415  (imported here once, shared by every fork)

    torch.set_num_threads(1)
    gc.freeze()
    control.sendall(NUMBER.pack(READY))
    children: set[int] = set()
    while True:
        message, fds, _, _ = socket.recv_fds(control, NUMBER.size, 1)
        if not message:
            break
        answer = _fork(control, fds[0], children) if fds else _kill(NUMBER.unpack(message)[0], children)
        control.sendall(NUMBER.pack(answer))
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _fork(control: socket.socket, fd: int, children: set[int]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            control.close()
            _die_with_parent()
            _silence()
            work(Connection(fd))
        finally:
            os._exit(0)
    os.close(fd)
    children.add(pid)
    return pid


def _kill(pid: int, children: set[int]) -> int:
    """Kill and reap; a process id stays ours until it is reaped here, so no other process can be hit."""
    if pid not in children:  # a worker of an earlier nursery, which died with it
        return 0
    children.remove(pid)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def work(connection: Connection[Any, Any]) -> None:
    """Judge until the parent hangs up. A task is sent once, with the first request that needs it."""
    tasks: dict[str, Task] = {}
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        digest = request["digest"]
        if request["task"]:
            tasks[digest] = Task(**request["task"])
        answer = _ANSWERS[request["what"]](tasks[digest], request["source"])
        connection.send_bytes(json.dumps(answer).encode())


def _verdict(task: Task, source: str) -> dict[str, Any]:
    return cast(dict[str, Any], to_json(_verify(task, source)))


def _verify(task: Task, source: str) -> Verdict:
    try:
        return verify(task, source)
    except BaseException as error:  # SystemExit and its like, raised by an author's code
        return unjudged(source, Boundary.OURS, describe(error))


def _figures(task: Task, source: str) -> dict[str, Any]:
    return dict(get_target(task.target).cost(task, source))


def _or_problem(measure: Callable[[Task, str], dict[str, Any]]) -> Callable[[Task, str], dict[str, Any]]:
    """Figures about a program, or why there are none."""

    def answer(task: Task, source: str) -> dict[str, Any]:
        try:
            return {"figures": measure(task, source)}
        except (OpsmithError, TaskFault) as error:
            return {"problem": str(error)}
        except Exception as error:
            return {"problem": describe(error).given}

    return answer


_ANSWERS: dict[str, Callable[[Task, str], dict[str, Any]]] = {
    "verify": _verdict,
    "cost": _or_problem(_figures),
    "timings": _or_problem(timings),
    "audit": _or_problem(audit),
}


if __name__ == "__main__":
    nursery(socket.socket(fileno=int(sys.argv[1])))
