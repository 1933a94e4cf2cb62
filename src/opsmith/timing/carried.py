"""What programs are timed with where the package is not: a packed folder, processes of ours, outputs that are kept.

The standard library of Python 3.8 or newer, as `engine`. The stand-alone runner (`opsmith.remote.runner`) shares it
with the module of each language that it calls programs by. Such a module has

    measure_set(folder, program, shape_set, outputs)     # what is said of a shape set, as JSON; raises TimingFault
    serve_process(request, answers)                      # in a process apart, which `start_process` starts
    describe_devices()                                   # what a machine has beside its processor, as JSON
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from opsmith.timing.engine import PairProtocol, TimingFault
from opsmith.timing.inputs import Recipe, SlotLayout

FORMAT = 3  # of the manifest and the results
RESULTS, MANIFEST = "results.json", "manifest.json"
LARGEST_TEXT = 20_000  # characters of what a process printed that are kept

if TYPE_CHECKING:
    Record = Mapping[str, Any]


class PackedFolder:
    """What was packed. Raises TimingFault for what is not as its manifest says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = (path / MANIFEST).read_text(encoding="utf-8")
            self.manifest = json.loads(self.text)
            version = self.manifest["format"]
            self._check_keys()
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise TimingFault(f"{path}: no manifest ({error!r}); expected a folder that opsmith packed")
        if version != FORMAT:
            raise TimingFault(f"manifest: format {version}; expected {FORMAT}; try: the runner beside it")

    def _check_keys(self) -> None:
        """Results become files of these names."""
        for _, shape_set in self.list_sets():
            key = shape_set["key"]
            if not (isinstance(key, str) and len(key) == 32 and key.isalnum()):
                raise ValueError(f"a shape set of the key {str(key)[:80]!r}")

    @property
    def id(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def read_file(self, digest: str) -> bytes:
        try:
            data = (self.path / "files" / digest).read_bytes()
        except OSError as error:
            raise TimingFault(f"file {digest[:12]}: {error.strerror}; expected all files that were packed")
        if hashlib.sha256(data).hexdigest() != digest:
            raise TimingFault(f"file {digest[:12]}: other bytes than were packed; try: copy the folder again")
        return data

    def list_sets(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for program in self.manifest["programs"]:
            for shape_set in program["sets"]:
                yield program, shape_set


def read_protocol(asked: Record, program: Record) -> PairProtocol:
    """How much is measured of a program, by the pack's protocol: of as many turns as `checks` says an output comes
    back."""
    return PairProtocol(
        program["processes"],
        asked["pairs"],
        asked["warm_ups"],
        prepared=asked["checks"],
        turn_ns=asked["turn_ns"],
        controls=asked["controls"] if program["has_partner"] else 0,
    )


class CarriedArrays:
    """The bytes of the arrays of a call, as the manifest says them."""

    def __init__(self, shape_set: Record) -> None:
        self.inputs = tuple(array["size"] for array in shape_set["inputs"])
        self.outputs = tuple(shape_set["outputs"])
        self.numbers = tuple(shape_set["numbers"])

    @property
    def layout(self) -> SlotLayout:
        return SlotLayout(self)


# -- outputs that are compared elsewhere


class OutputFiles:
    """Outputs by their sha256, compressed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep_check(self, recipe: Recipe, inputs: str, outputs: Sequence[bytes]) -> dict[str, Any]:
        """An output that is compared where the folder was packed, and the recipe and `hash_arrays` of its inputs."""
        names = []
        for data in outputs:
            names.append(hashlib.sha256(data).hexdigest())
            (self.folder / names[-1]).write_bytes(zlib.compress(data, 1))
        return {"recipe": asdict(recipe), "inputs": inputs, "outputs": names}


def choose_checks(checks: Sequence[Any], sizes: Sequence[int], most_bytes: int) -> list[Any]:
    """Of all that were read some that nobody could know, as many as may be carried; one at least. `sizes`: of the
    outputs of one."""
    count = max(1, most_bytes // max(1, sum(sizes)))
    return random.SystemRandom().sample(list(checks), min(len(checks), count))


# -- processes of ours

running: set[Any] = set()  # that we started
is_ending = threading.Event()  # another thread ends it all: nothing more is written


def start_process(module: str, *fds: int) -> Any:
    """A process in which the `serve_process` of a module of ours answers the first line of its input."""
    process = subprocess.Popen(
        write_command(module),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        start_new_session=True,
    )
    running.add(process)
    return process


def write_command(module: str) -> list[str]:
    """The command of such a process: the runner, once more."""
    runner = os.path.abspath(sys.modules["__main__"].__file__ or "")
    return [sys.executable, "-I", "-S", runner, "--serve", module]


def ask_process(module: str, request: Record, seconds: float) -> dict[str, Any]:
    """What such a process answers in one line of JSON, or `error`: how it ended; killed after so many seconds."""
    process = start_process(module)
    try:
        answer, words = process.communicate(json.dumps(request).encode() + b"\n", timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {seconds:g} s: it was ended"}
    finally:
        kill_group(process)
    try:
        data = json.loads(answer)
        return data if isinstance(data, dict) else {"error": "an answer that is none"}
    except ValueError:
        lines = words.decode(errors="replace").strip().splitlines()
        return {"error": ": ".join(["it " + explain_status(process.returncode), *lines[-1:]])[:500]}


def explain_status(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with {status}"


def kill_group(process: Any) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10.0)
    running.discard(process)


def die_with(parent: int) -> None:
    """This process is killed when the one that started it ends, where the system does that."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def take_answers() -> BinaryIO:
    """Where answers go: what programs print does not come there."""
    fd = os.dup(1)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.set_inheritable(fd, False)
    return open(fd, "wb", buffering=0)
