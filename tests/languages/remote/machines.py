"""A machine that ssh reaches: Debian's sshd on loopback, with keys of its own, for one test module."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
needs_sshd = pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None, reason="no sshd: install Debian's package openssh-server"
)


class SshServer:
    """sshd on a port of loopback. `command`: the client that knows it as `box`; a context manager."""

    def __init__(self, folder: Path, *lines: str) -> None:
        self.folder, self.temporary = folder, folder / "temporary"
        self.temporary.mkdir(parents=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        self.port = _find_port()
        shutil.copy(folder / "user.pub", folder / "authorized")
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}")
        self._write_config(lines)
        self.command = f"ssh -F {folder / 'client'}"
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where root's sshd wants an empty folder
        self._process = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(folder / "server")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._await_port()

    def list_leftovers(self) -> list[Path]:
        """What a runner left there."""
        return list(self.temporary.iterdir())

    def await_no_leftovers(self) -> None:
        end = time.monotonic() + 20
        while self.list_leftovers() and time.monotonic() < end:
            time.sleep(0.05)
        assert self.list_leftovers() == []

    def __enter__(self) -> SshServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(20)

    def _write_config(self, lines: tuple[str, ...]) -> None:
        server = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder / 'host'}",
            f"AuthorizedKeysFile {self.folder / 'authorized'}",
            f"PidFile {self.folder / 'pid'}",
            "StrictModes no",
            "UsePAM no",
            *(lines or (f"SetEnv TMPDIR={self.temporary}",)),
        ]
        client = [
            "Host box",
            "  HostName 127.0.0.1",
            f"  Port {self.port}",
            f"  User {getpass.getuser()}",
            f"  IdentityFile {self.folder / 'user'}",
            "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {self.folder / 'known'}",
        ]
        (self.folder / "server").write_text("\n".join(server) + "\n")
        (self.folder / "client").write_text("\n".join(client) + "\n")

    def _await_port(self) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("sshd does not start")


def _find_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
