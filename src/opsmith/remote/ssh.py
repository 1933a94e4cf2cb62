"""Another machine over the user's own `ssh`: the runner and what is packed go there on its input, results come back.

One connection, which asks nobody anything (`BatchMode`) and takes no host key that is not known. The runner keeps its
files in a temporary folder there and ends with the connection. What comes back is kept here as it comes, so that the
same command goes on where a connection was lost.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from opsmith.devices.peaks import find_cache_folder
from opsmith.errors import OpsmithError, UsageError
from opsmith.records import content_hash, printable
from opsmith.remote.packing import Pack
from opsmith.timing.carried import FORMAT, RESULTS

PREFIX = "ssh:"
COMMAND_VARIABLE = "OPSMITH_SSH"  # in place of `ssh`, with options: ssh -F FILE
_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ServerAliveInterval=15")
_LARGEST_LINE, _LARGEST_OUTPUT = 16 << 20, 512 << 20  # bytes; of the outputs of a shape set
_FILE_BYTES = 1024  # that a file of nothing takes
_END_S = 10.0  # for ssh to end
_NO_PYTHON, _OLD_PYTHON = 127, 96  # exit codes
_BOOTSTRAP = (  # of any Python 3; no character that a shell reads within single quotes
    'import io,os,sys,tempfile,zipfile;sys.version_info>=(3,8) or sys.exit(96);r=open(0,"rb",0,closefd=False);'
    'n=int(b"".join(iter(lambda:r.read(1),bytes([10]))));p=b"".join(map(lambda _:r.read(1),range(n)));'
    'd=tempfile.mkdtemp(prefix="opsmith-");zipfile.ZipFile(io.BytesIO(p)).extractall(d);'
    'os.execv(sys.executable,[sys.executable,"-I","-S",os.path.join(d,"runner.py"),"--stream"])'
)


class RemoteError(OpsmithError):
    """Another machine did not measure; the text says why, and what to try."""


@dataclass(frozen=True)
class RemotePlace:
    """A machine by the name that ssh knows."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return PREFIX + self.host + (f":{self.port}" if self.port else "")


def read_place(text: str) -> RemotePlace:
    """Of `ssh:HOST` or `ssh:HOST:PORT`. Raises UsageError.

    >>> read_place("ssh:me@gpu7:2222")
    RemotePlace(host='me@gpu7', port=2222)
    """
    match = re.fullmatch(r"ssh:((?!-)(?!.*@-)[\w.@%+\[\]-]+|\[[\da-fA-F:]+\])(?::(\d{1,5}))?", text, re.ASCII)
    if match is None or not 0 < int(match[2] or 22) < 1 << 16:
        raise UsageError(f"--on {printable(text)[:200]}: expected ssh:HOST or ssh:HOST:PORT, as ssh knows it")
    return RemotePlace(match[1], int(match[2]) if match[2] else None)


@dataclass(frozen=True)
class ReceivedResults:
    """What has come from a machine so far, in a folder of ours; as `runner.py` leaves it when all is there."""

    folder: Path
    own: Path | None = None  # that goes when all is merged; None: the same folder

    def list_keys(self) -> frozenset[str]:
        return frozenset(path.stem for path in self.folder.glob("*.json") if len(path.stem) == 32)

    def write_all(self) -> Path:
        """One file of all rows that came, which a runner of this machine has written itself."""
        if not (self.folder / "machine.json").exists():
            return self.folder / RESULTS
        rows = [json.loads((self.folder / f"{key}.json").read_text("utf-8")) for key in sorted(self.list_keys())]
        machine = json.loads((self.folder / "machine.json").read_text("utf-8"))
        path = self.folder / RESULTS
        path.write_text(json.dumps({"format": FORMAT, "machine": machine, "results": rows}), encoding="utf-8")
        return path

    def remove(self) -> None:
        shutil.rmtree(self.own or self.folder, ignore_errors=True)


def measure_over_ssh(pack: Pack, place: RemotePlace, tell: Callable[[str], None]) -> ReceivedResults:
    """Have all of a pack measured there, less what came before. Raises RemoteError; what came until then is kept."""
    folder = find_cache_folder() / "remote" / content_hash("remote", str(place), pack.id)[:24]
    (folder / "outputs").mkdir(mode=0o700, parents=True, exist_ok=True)
    received = ReceivedResults(folder)
    waiting = pack.leave_out(received.list_keys())
    if waiting.manifest["programs"]:
        with contextlib.closing(_Connection(place, waiting)) as connection:
            for row in connection.receive_rows(folder):
                tell(f"{place}: {row}")
    return received


class _Connection:
    """A running ssh, with the runner at its other end."""

    def __init__(self, place: RemotePlace, pack: Pack) -> None:
        self._place, self._has_begun = place, False
        programs = pack.manifest["programs"]
        self._asked = {entry["key"] for program in programs for entry in program["sets"]}
        self._spare = _LARGEST_OUTPUT * len(self._asked)  # bytes of outputs that may still come
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - closed with us: what ssh and the runner say on the standard error
        port = ["-p", str(place.port)] if place.port else []
        command = [*shlex.split(os.environ.get(COMMAND_VARIABLE, "ssh")), *_OPTIONS, *port, "--", place.host]
        command.append(f"exec python3 -c '{_BOOTSTRAP}'")
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words, start_new_session=True
            )
        except OSError as error:
            self._words.close()
            raise RemoteError(f"{command[0]}: {error.strerror}; try: install OpenSSH's client") from None
        threading.Thread(target=_send_pack, args=(self._process.stdin, pack), daemon=True).start()

    def receive_rows(self, folder: Path) -> Iterator[str]:
        """Keeps everything that comes in `folder`, and says what was measured. Raises RemoteError."""
        while True:
            line = self._read_line()
            match line.get("kind"):
                case "machine":
                    self._has_begun = True
                    _write_file(folder / "machine.json", json.dumps(line.get("machine")).encode())
                case "output":
                    _write_file(folder / "outputs" / _check_name(line.get("name"), 64), self._read_output(line))
                case "result":
                    row = self._read_row(line)
                    _write_file(folder / f"{row['key']}.json", json.dumps(row).encode())
                    yield printable(f"{row.get('name')}: {row.get('error') or 'measured'}")[:500]
                case "failure":
                    raise RemoteError(f"{self._place}: {printable(str(line.get('error')))[:500]}")
                case "end":
                    return
                case _:
                    raise RemoteError(f"{self._place}: an answer that is none of the runner's")

    def close(self) -> None:
        """End it; the runner there ends with its input, and what it started."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._words.close()

    def _read_line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        text = self._process.stdout.readline(_LARGEST_LINE)
        if not text.endswith(b"\n"):
            raise RemoteError(self._explain_end())
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            raise RemoteError(
                f"{self._place}: prints {printable(text.decode(errors='replace'))[:80]!r} in place of results"
            )
        return line

    def _read_row(self, line: dict[str, Any]) -> dict[str, Any]:
        """One that was asked for, and once."""
        row = line.get("result")
        key = row.get("key") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(key, str) or key not in self._asked:
            raise RemoteError(f"{self._place}: a result of {printable(str(key))[:80]!r}, which was not asked for")
        self._asked.discard(key)
        return row

    def _read_output(self, line: dict[str, Any]) -> bytes:
        assert self._process.stdout is not None
        size = line.get("size")
        if type(size) is not int or not 0 <= size <= self._spare:
            raise RemoteError(f"{self._place}: an output of {str(size)[:40]} bytes; expected {self._spare} at most")
        self._spare -= size + _FILE_BYTES
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise RemoteError(self._explain_end())
        return data

    def _explain_end(self) -> str:
        """Why there is no more, in words."""
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            code = 255
        self._words.seek(0)
        words = self._words.read(20_000).decode(errors="replace")
        return f"{self._place}: {explain_end(code, words, self._place.host, self._has_begun)}"


def explain_end(code: int, words: str, host: str, has_begun: bool) -> str:
    """What an exit code of ssh and what it printed mean, and what to try.

    >>> explain_end(255, "ssh: connect to host gpu7 port 22: Connection refused", "gpu7", False)
    'connection refused; expected an ssh server there; try: ssh gpu7'
    """
    last = printable(([line for line in words.splitlines() if line.strip()] or [f"exit code {code}"])[-1])[:300]
    if has_begun:
        return f"the connection was lost ({last}); what was measured is kept; try: the same command, which goes on"
    for sign, meaning in _ENDS.items():
        if sign in words:
            return meaning.format(host=host)
    if code == _NO_PYTHON:
        return f"no python3 there ({last}); expected Python 3.8 or newer; try: install it there"
    if code == _OLD_PYTHON:
        return "its python3 is too old; expected Python 3.8 or newer"
    return f"{last}; try: ssh {host} python3 --version"


_ENDS = {
    "Host key verification failed": "its host key is not known here, or is another one than it was; "
    "try: ssh {host}, and compare the key with one that its owner gives",
    "No space left": "no space left there for temporary files; try: remove some, or set TMPDIR there",
    "Connection refused": "connection refused; expected an ssh server there; try: ssh {host}",
    "Permission denied": "permission denied; expected a key that needs no password; try: ssh -o BatchMode=yes {host}",
    "Could not resolve hostname": "no such host; expected a name that ssh knows; try: ssh {host}",
    "timed out": "no answer; expected an ssh server there; try: ssh {host}",
}


def _send_pack(target: IO[bytes], pack: Pack) -> None:
    """The runner with its modules, a line that names the files, the files; the pipe stays open for as long as the
    runner may run."""
    code, modules = io.BytesIO(), pack.list_code()
    with zipfile.ZipFile(code, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in modules.items():
            archive.writestr(name, data)
    files = {name: data for name, data in pack.list_files().items() if name not in modules}
    names = [[name, len(data)] for name, data in files.items()]
    with contextlib.suppress(OSError, ValueError):  # whoever reads sees why
        target.write(b"%d\n" % len(code.getvalue()) + code.getvalue() + json.dumps({"files": names}).encode() + b"\n")
        for data in files.values():
            target.write(data)
        target.flush()


def _check_name(name: object, length: int) -> str:
    if not isinstance(name, str) or len(name) != length or not name.isalnum():
        raise RemoteError(f"a file that is called {str(name)[:80]!r}; expected a digest")
    return name


def _write_file(path: Path, data: bytes) -> None:
    draft = path.with_name(path.name + ".unfinished")
    draft.write_bytes(data)
    os.replace(draft, path)
