"""Our end of the processes that `forks` starts: starting, asking and killing them. No policy."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from opsmith.environment import worker_environment
from opsmith.errors import VerifierError
from opsmith.records import Task, to_json
from opsmith.running.channel import NUMBER, UNCONFINED, Channel
from opsmith.running.sandbox import Sandbox

_LARGEST_ANSWER = 1 << 26  # bytes; a longer one is no verdict
_START_S = 120.0  # for importing torch from a cold disk
_OURS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 26),  # glibc: freed memory up to this stays, which saves
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),  # thousands of page faults in a trial at `large`
    "TORCHINDUCTOR_CACHE_DIR": "/",  # any folder: torch's compiler, when imported, makes it unless it is there
}


@dataclass
class Process:
    """Our end of one process of foreign code."""

    pid: int
    channel: Channel
    ended: str = ""  # how; "": it was not killed yet


@dataclass
class Worker(Process):
    """Our end of one worker."""

    known: set[str] = field(default_factory=set)  # digests of the tasks that were sent to it
    allowed: float = 0.0  # seconds, for the last answer

    def ask(self, what: str, task: Task, source: str, deadline: float, **arguments: Any) -> dict[str, Any]:
        """Its answer. Raises TimeoutError after `deadline` seconds, another error when it dies or talks nonsense."""
        digest = task.digest
        body = None if digest in self.known else to_json(task)
        answer = self.tell({"what": what, "digest": digest, "task": body, "source": source, **arguments}, deadline)
        self.known.add(digest)
        return answer

    def tell(self, message: dict[str, Any], deadline: float) -> dict[str, Any]:
        """What it answers to a message. Raises like `ask`."""
        end, self.allowed = time.monotonic() + deadline, deadline
        self.channel.send(json.dumps(message).encode(), end)
        answer: dict[str, Any] = json.loads(self.channel.receive(_LARGEST_ANSWER, end))
        return answer


class Nursery:
    """Our end of the nursery process; started at the first fork, and again should it die."""

    def __init__(self, served: Mapping[str, str]) -> None:
        """`served`: kind of process -> `module:function` that serves its descriptor."""
        self._served = json.dumps(dict(served))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._missing = ""
        self._closed = False

    @property
    def missing(self) -> str:
        """What the system lacks for isolation; "": nothing. Raises VerifierError when Python cannot be started."""
        with self._lock:
            if self._control is None:
                self._start_nursery()
            return self._missing

    def fork_worker(self, sandbox: Sandbox) -> Worker:
        """A new worker. Raises VerifierError when the pool is closed or Python cannot be started with torch."""
        return Worker(*self._fork_process("worker", sandbox))

    def fork_candidate(self, sandbox: Sandbox) -> Process:
        """A new process for a candidate's program. Raises VerifierError like `worker`."""
        return Process(*self._fork_process("candidate", sandbox))

    def kill(self, process: Process) -> str:
        """Kill and reap; says how it had ended. A second call does nothing: the id may be another's by then."""
        if not process.ended:
            with self._lock:
                status = self._send_request({"kill": process.pid}) if self._control else None
            process.ended = _describe_end(status or 0)
            process.channel.close()
        return process.ended

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._stop_nursery()

    def _fork_process(self, kind: str, sandbox: Sandbox) -> tuple[int, Channel]:
        ours, theirs = socket.socketpair()
        request = {"fork": kind, "sandbox": asdict(sandbox)}
        with theirs, self._lock:
            pid = self._send_request(request, [theirs.fileno()])
            if pid is None:  # it has died: one new one
                pid = self._send_request(request, [theirs.fileno()])
        if pid is None:
            raise VerifierError("verifier: the process that starts workers died twice; is there memory left?")
        return pid, Channel(ours)

    def _send_request(self, request: dict[str, Any], fds: Sequence[int] = ()) -> int | None:
        """One exchange with the nursery; None when it is dead."""
        control = self._control or self._start_nursery()
        try:
            socket.send_fds(control, [json.dumps(request).encode()], fds)
            answer: int = NUMBER.unpack(control.recv(NUMBER.size))[0]
        except (OSError, struct.error):
            self._stop_nursery()
            return None
        return answer

    def _start_nursery(self) -> socket.socket:
        if self._closed:
            raise VerifierError("verifier: the pool of workers is closed")
        ours, theirs = socket.socketpair()
        with theirs:
            process = _start_process(theirs.fileno(), self._served)
        try:
            self._missing = Channel(ours).receive(_LARGEST_ANSWER, time.monotonic() + _START_S).decode()
        except (OSError, EOFError):
            ours.close()
            process.kill()
            last = process.communicate()[1].decode(errors="replace").strip().rpartition("\n")[2]
            message = f"verifier: no worker process can be started ({last}); try to install opsmith again"
            raise VerifierError(message) from None
        ours.settimeout(None)
        self._process, self._control = process, ours
        return ours

    def _stop_nursery(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.communicate()
        self._control = self._process = None


def _describe_end(status: int) -> str:
    """A wait status in words."""
    code = os.waitstatus_to_exitcode(status)
    if code == UNCONFINED:
        return "could not be confined"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


def _start_process(control: int, served: str) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "opsmith.running.forks", str(control), served],
            env=worker_environment() | _OURS,
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which closes the pool
        )
    except OSError as error:
        raise VerifierError(f"verifier: no worker process can be started: {error}") from error
