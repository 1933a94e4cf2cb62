"""A language's commands for one program: what is put into the folder, which programs they are, what they may use.

Everything here runs in our own process: it executes nothing, and takes from a task's worker nothing but numbers and
bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from opsmith.running.commands import SYSTEM, CommandLimits, CommandOrder, find_python
from opsmith.targets.command.arrays import RunArrays, list_words, name_files, write_arrays
from opsmith.targets.command.language import Language
from opsmith.targets.command.words import Command, CommandPlaces, Lists, fill_text, write_words

_MIB = 1 << 20
MOST_TOOLS = 1000  # files of a folder that are looked into
_LONGEST_MARK = 1 << 8  # bytes of a script's first line, as the kernel reads them


class MissingProgramError(Exception):
    """A command's program is not on this machine; the text says which."""


# -- orders


def order_compile(language: Language, source: str) -> tuple[CommandOrder, CommandLimits]:
    """Build a program of a language that compiles. Raises MissingProgramError."""
    tables = language.tables
    assert tables.compile is not None
    commands = [_write_command(language, command, {}) for command in tables.compile.commands]
    files = {tables.source: source.encode("utf-8", "replace")}
    has_processes = tables.compile.processes or len(commands) > 1
    order = _make_order(language, files, commands, tables.compile.outputs, has_processes)
    return order, _make_limits(language, tables.limits.compile_seconds)


def order_run(
    language: Language, artefacts: Mapping[str, bytes], arrays: RunArrays, inputs: Sequence[bytes | memoryview]
) -> tuple[CommandOrder, CommandLimits]:
    """Run a built program once. `inputs`: the bytes of each, in order. Raises MissingProgramError."""
    kind = language.tables.run.arrays
    files, stdin = write_arrays(kind, arrays, inputs)
    command = _write_command(language, language.tables.run.command, list_words(kind, arrays))
    limits = _make_limits(language, float("inf"))
    has_processes = language.tables.run.processes
    outputs = name_files(kind, arrays)[1]
    return _make_order(language, {**artefacts, **files}, [command], outputs, has_processes, stdin), limits


def _make_order(
    language: Language,
    files: Mapping[str, bytes | memoryview],
    commands: Sequence[Sequence[str]],
    outputs: Sequence[str],
    has_processes: bool,
    stdin: str = "",
) -> CommandOrder:
    toolchain = language.tables.toolchain
    environment = {name: fill_text(_find_places(language), text, {}) for name, text in toolchain.environment.items()}
    return CommandOrder(
        files,
        commands,
        [name for name in outputs if name != "-"],
        {"LC_ALL": "C", "PATH": os.defpath, **environment},
        [*map(Path, SYSTEM), *language.readable, *_list_program_paths(commands)],
        stdin,
        has_processes=has_processes,
        executes_folder=True,
        makes_folders=True,
        ports=toolchain.licence_ports,
    )


def _make_limits(language: Language, seconds: float) -> CommandLimits:
    limits = language.tables.limits
    return CommandLimits(
        limits.cpu_seconds,
        seconds,
        limits.memory_mib * _MIB,
        file_bytes=limits.file_mib * _MIB,
        printed_bytes=limits.file_mib * _MIB if language.tables.run.arrays == "stdio" else 1 << 18,
        open_files=256,
    )


def _list_program_paths(commands: Sequence[Sequence[str]]) -> Iterator[Path]:
    """What the programs themselves are, and Python's library where one of them is this Python."""
    for command in commands:
        if not command[0].startswith("./"):
            yield Path(command[0])
            yield Path(command[0]).resolve()
        python, readable = find_python()
        yield from readable if command[0] == python else ()


# -- programs


def _find_places(language: Language) -> CommandPlaces:
    return CommandPlaces(str(language.folder), find_python()[0], language.tables.source)


def _write_command(language: Language, command: Command, lists: Lists) -> list[str]:
    """The words of a command, its program an absolute path or one in the folder of the run."""
    words = write_words(_find_places(language), command, lists)
    return [_find_program(language, words[0]) if words else "", *words[1:]]


def _find_program(language: Language, word: str) -> str:
    """An absolute program, or one that lies in the folder of the run. Raises MissingProgramError."""
    if word.startswith("./"):
        return word
    if "/" in word:
        path = language.folder / word
        if path.is_file() and os.access(path, os.X_OK):
            _refuse_script(language, path)
            return str(path)
        raise MissingProgramError(f"{word}: no such program; expected one that can be executed")
    place = shutil.which(word)
    if place is None:
        raise MissingProgramError(
            f"{word}: no such program on the path; expected the toolchain of {language.tables.name}"
        )
    _refuse_script(language, Path(place))
    return place


def _refuse_script(language: Language, path: Path) -> None:
    """Raises MissingProgramError for a script whose interpreter may not be executed, which the kernel says of the
    script itself."""
    with path.open("rb") as file:
        head = file.readline(_LONGEST_MARK).decode(errors="replace")
    if not head.startswith("#!"):
        return
    words = head[2:].split()
    interpreters = [shutil.which(word) for word in (words[:2] if words[:1] == ["/usr/bin/env"] else words[:1])]
    roots = [root.resolve() for root in (*map(Path, SYSTEM), *language.readable)]
    places = (place for place in interpreters if place)
    lacking = [place for place in places if not any(Path(place).resolve().is_relative_to(root) for root in roots)]
    if lacking:
        is_python = "python" in Path(lacking[-1]).name
        remedy = 'write "{python}" before it in the command' if is_python else "name them in toolchain.readable"
        names = ", ".join(lacking)
        raise MissingProgramError(f"{path}: a script for {names}, which its commands may not execute; try: {remedy}")


def find_programs(language: Language) -> list[str]:
    """Where the programs of all commands are, but those that a build makes. Raises MissingProgramError."""
    words = (fill_text(_find_places(language), str(command[0]), {}) for command in _list_commands(language))
    return [_find_program(language, word) for word in words if not word.startswith("./")]


def _list_commands(language: Language) -> list[list[str | list[str]]]:
    tables = language.tables
    return [*(tables.compile.commands if tables.compile else []), tables.run.command]


def hash_tools(language: Language) -> str:
    """Of the bytes of what decides what programs do: the programs of the commands, the files that their words name, and
    what lies beside the language file and may be read. Raises MissingProgramError and OSError."""
    words = [word for command in _list_commands(language) for word in command[1:]]
    texts = [text for word in words for text in ([word] if isinstance(word, str) else word)]
    arguments = [fill_text(_find_places(language), text, {}) for text in texts]
    named = [language.folder / text for text in (*find_programs(language), *arguments) if "/" in text]
    digest = hashlib.sha256()
    for path in sorted({*named, *_list_own_files(language)}):
        if str(path) == find_python()[0]:
            digest.update(sys.version.encode())
        elif path.is_file():
            status = path.stat()
            digest.update(_hash_file(path, status.st_mtime_ns, status.st_size))
    return digest.hexdigest()


def _list_own_files(language: Language) -> Iterator[Path]:
    """Files of the toolchain that lie below the language file's folder."""
    for readable in language.readable:
        if readable.is_relative_to(language.folder):
            files = (path for path in readable.rglob("*") if "__pycache__" not in path.parts)
            yield from islice([readable, *files], MOST_TOOLS)


@lru_cache(maxsize=4 * MOST_TOOLS)
def _hash_file(path: Path, changed: int, size: int) -> bytes:
    """Read again where it was changed."""
    return hashlib.sha256(path.read_bytes()).digest()
