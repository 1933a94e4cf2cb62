"""A real PostgreSQL server for tests, in a folder of its own on loopback: started, killed with SIGKILL, started again.

    with PostgresServer() as server:
        Store.open(server.new_database())

It needs Debian's package `postgresql` (or `initdb` and `postgres` on the path). PostgreSQL refuses to run as root, so
root starts it as the user `postgres`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import psycopg

USER = "opsmith"
PASSWORD = "canary-password"
START_S = 30.0


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None: they are not installed."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    return next((folder for folder in [*installed, *on_path] if (folder / "postgres").is_file()), None)


class PostgresServer:
    """`port` stays the same over restarts. A context manager."""

    def __init__(self) -> None:
        found = binaries()
        if found is None:
            raise RuntimeError("no PostgreSQL server: install Debian's package `postgresql`")
        self._binaries = found
        self._folder = Path(tempfile.mkdtemp(prefix="opsmith-postgres-"))  # pytest's folders are their user's alone
        self._data = self._folder / "data"
        self._made = 0
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._init()

    def _init(self) -> None:
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self._folder, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        options = ["--auth=scram-sha-256", f"--username={USER}", f"--pwfile={secret}", "--no-sync", "-E", "UTF8"]
        self._run("initdb", "-D", str(self._data), "--locale=C.UTF-8", *options)

    @property
    def is_down(self) -> bool:
        return self._process is None

    def start(self) -> None:
        """Returns when it takes connections."""
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", "unix_socket_directories="]
        options += ["-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "max_connections=50"]
        self._process = subprocess.Popen(
            self._as_user("postgres", "-D", str(self._data), *options),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self._dsn("postgres"), connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """SIGKILL to the server and all its processes, as when the machine loses power."""
        assert self._process is not None
        postmaster = int((self._data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True, text=True, check=False)
        for pid in [postmaster, *map(int, children.stdout.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def new_database(self) -> str:
        """The URL of an empty database."""
        self._made += 1
        name = f"store{self._made}"
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type, unused-ignore]
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _dsn(self, database: str) -> str:
        return self.url(database)

    def _run(self, *command: str) -> None:
        subprocess.run(self._as_user(*command), check=True, capture_output=True, cwd="/")

    def _as_user(self, name: str, *arguments: str) -> list[str]:
        command = [str(self._binaries / name), *arguments]
        if os.getuid() != 0:
            return command
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
