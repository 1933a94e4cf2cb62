"""The programs of an exported library in a language of commands: built and run as its file says, where it is installed.

torch and the standard library are all that this needs. No sandbox is around the commands.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opsmith.targets.command.arrays import RunArrays, list_words, name_arrays, name_files, read_arrays, write_arrays
from opsmith.targets.command.words import Command, CommandPlaces, Lists, fill_text, write_words
from opsmith.targets.native.library.operator import ProgramCall
from opsmith.targets.operator_error import OperatorError

_SHOWN = 2000  # characters of what a command said


@dataclass(frozen=True)
class LibraryCommands:
    """What a language file says of building and running, without what only a judge needs."""

    language: str
    source: str  # what a program's file is called
    suffix: str  # of the package's own files of programs
    build: Sequence[Command]  # in turn; (): programs are run as they are
    outputs: Sequence[str]  # the files that a run is given, beside the program
    install: Sequence[Command]
    run: Command
    arrays: str  # raw, npy or stdio
    cycles: str  # a regular expression; "": none are told
    environment: Mapping[str, str]
    has_tools: bool  # the package holds the toolchain; otherwise a variable of the environment says where it lies


@dataclass
class CommandPrograms:
    """Those of one package; see `Programs`.

    cycles: of each operator's last call in this process, where the commands say any.
    """

    package: str
    folder: Path  # of the package's modules
    commands: LibraryCommands
    cycles: dict[str, int] = field(default_factory=dict)
    devices: Sequence[str] = ("cpu",)
    _built: dict[str, Mapping[str, bytes]] = field(default_factory=dict)

    def explain_lack(self) -> str:
        return ""

    def run_program(self, call: ProgramCall) -> None:
        """See `Programs`: one run of the command, in a folder that is gone afterwards."""
        arrays = name_arrays(call.problem, [*call.dims, *call.scalars])
        inputs = [ctypes.string_at(tensor.data_ptr(), tensor.nbytes) for tensor in call.tensors]
        files, stdin = write_arrays(self.commands.arrays, arrays, inputs)
        with tempfile.TemporaryDirectory(prefix=f"{self.package}-") as name:
            folder = Path(name)
            _write_files(folder, {**self._find_built(call.name), **files})
            words = list_words(self.commands.arrays, arrays)
            printed, messages = self._run_command(call.name, self.commands.run, folder, words, stdin)
            pieces = self._read_results(call.name, arrays, folder, printed)
        for result, piece in zip(call.results, pieces, strict=True):
            ctypes.memmove(result.data_ptr(), piece, result.nbytes)
        said = messages if self.commands.arrays == "stdio" else f"{printed.decode(errors='replace')}\n{messages}"
        matches = list(re.finditer(self.commands.cycles, said, re.MULTILINE)) if self.commands.cycles else []
        if matches:
            self.cycles[call.name] = int(matches[-1].groupdict().get("cycles") or matches[-1][1])

    def build_all(self, names: Sequence[str]) -> None:
        """Build every operator into the package's folder `build`, where calls then find it; then install them."""
        for name in names:
            _write_files(self.folder / "build" / name, self._build(name))
            print(f"{self.package}: {name} built")
        for command in self.commands.install:
            self._run_command("install", command, self.folder / "build", {}, "")

    def _find_built(self, name: str) -> Mapping[str, bytes]:
        folder = self.folder / "build" / name
        if name not in self._built:
            is_there = folder.is_dir()
            files = {path.name: path.read_bytes() for path in folder.iterdir()} if is_there else self._build(name)
            self._built[name] = files
        return self._built[name]

    def _build(self, name: str) -> Mapping[str, bytes]:
        source = (self.folder / "programs" / f"{name}{self.commands.suffix}").read_bytes()
        if not self.commands.build:
            return {self.commands.source: source}
        with tempfile.TemporaryDirectory(prefix=f"{self.package}-") as text:
            folder = Path(text)
            _write_files(folder, {self.commands.source: source})
            for command in self.commands.build:
                self._run_command(name, command, folder, {}, "")
            missing = [output for output in self.commands.outputs if not (folder / output).is_file()]
            if missing:
                raise OperatorError(f"{self.package}.{name}: its build left no file {missing[0]}; expected one")
            return {path: (folder / path).read_bytes() for path in (self.commands.source, *self.commands.outputs)}

    def _run_command(self, name: str, command: Command, folder: Path, lists: Lists, stdin: str) -> tuple[bytes, str]:
        """What it printed and said. Raises OperatorError where it fails."""
        places = CommandPlaces(self._find_tools(), sys.executable, self.commands.source)
        words = write_words(places, command, lists)
        words[0] = self._find_program(words[0], folder)
        own = {key: fill_text(places, text, {}) for key, text in self.commands.environment.items()}
        data = (folder / stdin).read_bytes() if stdin else b""
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, **own}, input=data, capture_output=True, check=False
        )
        messages = done.stderr.decode(errors="replace")
        if done.returncode:
            said = (messages.strip() or done.stdout.decode(errors="replace").strip())[-_SHOWN:]
            what = f"{self.package}.{name}: {shlex.join(words)} ended with status {done.returncode}"
            raise OperatorError(f"{what}: {said or 'it said nothing'}; expected status 0")
        return done.stdout, messages

    def _find_tools(self) -> str:
        variable = f"{self.package.upper()}_TOOLS"
        given = os.environ.get(variable)
        if given is None and not self.commands.has_tools:
            expected = f"the folder of the toolchain of {self.commands.language} in {variable}"
            raise OperatorError(f"{self.package}: given no variable {variable}; expected {expected}")
        return given or str(self.folder / "toolchain")

    def _find_program(self, word: str, folder: Path) -> str:
        """A program on the path, of the toolchain, or one that the build made. Raises OperatorError."""
        place = folder / word if word.startswith("./") else Path(self._find_tools()) / word if "/" in word else None
        if place is not None and place.is_file():
            place.chmod(place.stat().st_mode | 0o111) if not os.access(place, os.X_OK) else None
            return str(place)
        program = shutil.which(word) if place is None else None
        if program is None:
            expected = f"the toolchain of {self.commands.language}"
            raise OperatorError(f"{self.package}: given no program {word}; expected {expected}, on the path")
        return program

    def _read_results(self, name: str, arrays: RunArrays, folder: Path, printed: bytes) -> list[bytes]:
        outputs = [output for output in name_files(self.commands.arrays, arrays)[1] if (folder / output).is_file()]
        files = {output: (folder / output).read_bytes() for output in outputs}
        pieces = read_arrays(self.commands.arrays, arrays, files, printed, {})
        if isinstance(pieces, str):
            raise OperatorError(f"{self.package}.{name}: its run left {pieces}; expected every output, whole")
        return pieces


def make_programs(package: str, front: str, commands: Mapping[str, Any]) -> CommandPrograms:
    """Those of the package whose `__init__.py` lies beside the file `front`."""
    return CommandPrograms(package, Path(front).parent, LibraryCommands(**commands))


def _write_files(folder: Path, files: Mapping[str, bytes | memoryview]) -> None:
    """Files that may be executed, as a build's may."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o755)
