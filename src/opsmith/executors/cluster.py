"""A Ray cluster, joined quietly and left again: one at an address, or one of this machine's own for one run.

Ray pickles its own plumbing and runs whatever its peers send: the machines of a cluster trust each other wholly, and
its ports must not be open to others (Ray's documents say the same). Ours puts nothing but JSON texts into it (`wire`).
A cluster of our own is started without the environment's keys, and asks for a token that only this process and its
children know; one that is there already has its own environment, and a token if its owner wants one.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from opsmith.devices.probing import list_own_gpus
from opsmith.environment import NAMED_BY_USER, select_variables
from opsmith.errors import UsageError
from opsmith.terminal import hangup_signals

RESOURCE = "opsmith:"  # begins the name of Ray's resource for a device: one on its machine, and who measures has it
PROCESSOR = "cpu"  # the device that every machine has
ANSWER_S = 5.0  # for an address to answer
OBJECTS = 80 * 2**20  # bytes of shared memory: our messages are small, and Ray takes no less than 75 MB
SOCKET_ROOM = 20  # characters of a folder: sockets lie some 85 below it, and a socket's path has at most 107

_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # HTTP/2, then no settings
_NO_START = (
    "--executor ray: given no address; expected a Ray of this machine's own ({}); "
    "try: again when the machine is less busy, or --executor local"
)
_NO_PART = (
    "expected a cluster that this machine is part of ({}); "
    "try: `ray start --address=HOST:PORT` here first, with the same Ray and Python; RAY_AUTH_MODE=token where "
    "it asks for one"
)
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


def import_ray() -> ModuleType:
    """Raises UsageError when the extra is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    try:
        import ray  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        message = f"--executor ray: Ray cannot be imported ({error}); try: pip install 'opsmith[ray]'"
        raise UsageError(message) from error
    return ray


@contextlib.contextmanager
def join_cluster(address: str | None) -> Iterator[str]:
    """Inside, this process is a driver of the cluster there ("auto": the one that runs here; None: one of our own).

    Gives the cluster's name for messages. A Ray that this process had joined before is used and left as it is. Raises
    UsageError when there is no cluster.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield "the one that this process has joined"
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        with _hush_ray(), _start_cluster(ray) if address is None else _connect_cluster(ray, address) as name:
            yield name
    finally:
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray had put its own there


@contextlib.contextmanager
def _start_cluster(ray: ModuleType) -> Iterator[str]:
    # its path must leave room for those of sockets
    place = "/tmp" if len(tempfile.gettempdir()) > SOCKET_ROOM and Path("/tmp").is_dir() else None
    temporary = tempfile.TemporaryDirectory(prefix="opsmith-ray-", dir=place, ignore_cleanup_errors=True)
    with temporary as folder, _set_token():
        try:
            with _hide_keys(), _block_hangup(), _report_failure(_NO_START):
                ray.init(
                    address="local",
                    include_dashboard=False,
                    object_store_memory=OBJECTS,
                    resources={RESOURCE + device: 1 for device in (PROCESSOR, *list_own_gpus())},
                    _temp_dir=folder,
                    **_QUIET,
                )
            yield "one of this machine's own"
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _connect_cluster(ray: ModuleType, address: str) -> Iterator[str]:
    if address != "auto":
        _check_address(address)
    with _report_failure(f"--ray-address: given {address}; {_NO_PART}"):
        ray.init(address=address, **_QUIET)
    yield f"at {address}"


@contextlib.contextmanager
def _report_failure(what: str) -> Iterator[None]:
    """What Ray cannot begin is a UsageError: `what`, with the first line of Ray's error at its `{}`."""
    try:
        yield
    except Exception as error:  # Ray raises many, a bare Exception where a start takes too long
        first = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(what.replace("{}", first)) from error


@contextlib.contextmanager
def _hush_ray() -> Iterator[None]:
    """Inside, Ray tells nobody how this process was started, and our stdout nothing of lost nodes.

    It would send the whole command line to the cluster as the name of the job, and `--store` may hold a password. What
    it prints, whatever it is told, goes to the debug log.
    """
    from ray._private import utils, worker  # noqa: PLC0415  (with `ray`)

    def log(data: Any, ignore_prefix: bool) -> None:
        logging.getLogger("opsmith.ray").debug("Ray says: %s", "\n".join(map(str, data.get("lines", ()))))

    before = worker.print_to_stdstream, utils.get_entrypoint_name
    worker.print_to_stdstream, utils.get_entrypoint_name = log, lambda: "opsmith"
    try:
        yield
    finally:
        worker.print_to_stdstream, utils.get_entrypoint_name = before


def _check_address(address: str) -> None:
    """Raises UsageError unless something at the address speaks as Ray's head does; Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16 or "/" in address or "@" in address:
        raise UsageError(f"--ray-address: given {address!r}; expected auto or HOST:PORT; try: auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S) as connection:
            problem = "" if _has_tls() or _answers_greeting(connection) else "what answers there is no Ray"
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise UsageError(
            f"--ray-address: given {address}; expected the head of a Ray cluster ({problem}); "
            "try: `ray start --head` there, or --executor ray without an address"
        )


def _answers_greeting(connection: socket.socket) -> bool:
    """Whether it answers an HTTP/2 greeting with settings, as gRPC does. Raises OSError."""
    connection.settimeout(ANSWER_S)
    connection.sendall(_GREETING)
    return connection.recv(9)[3:4] == b"\x04"


def _has_tls() -> bool:
    """Whether Ray is told to speak TLS, which knows no greeting in plain text."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in {"1", "true"}


@contextlib.contextmanager
def _hide_keys() -> Iterator[None]:
    """The environment as workers see it, and Ray's own part: its processes inherit it from the one that starts them."""
    visible = {*select_variables(os.environ), NAMED_BY_USER, "XDG_RUNTIME_DIR"}  # the last: where leases are locked
    hidden = [name for name in os.environ if name not in visible and not name.startswith(("RAY_", "GRPC_"))]
    removed = {name: os.environ.pop(name) for name in hidden}
    try:
        yield
    finally:
        os.environ.update(removed)


@contextlib.contextmanager
def _block_hangup() -> Iterator[None]:
    """Processes that are started inside outlive a terminal that is closed: they are needed until a run has ended.

    What came meanwhile is told to this process afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, hangup_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _set_token() -> Iterator[None]:
    """The environment with a token of this process: Ray would put one for all later clusters into the user's home."""
    before = {name: os.environ.get(name) for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
    if before["RAY_AUTH_MODE"] is None:  # then Ray asks for tokens in a cluster of its own, and says so here
        os.environ["RAY_AUTH_TOKEN"] = _make_token()
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@cache
def _make_token() -> str:
    """One for all clusters of this process: Ray reads it once."""
    return secrets.token_hex(32)
