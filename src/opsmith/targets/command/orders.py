"""A language's commands for one program: what is put into the folder, which words stand for placeholders.

The arrays of a run are files (`x.bin`, or `x.npy`), or follow each other on the standard input and output. Everything
here runs in our own process: it executes nothing, and takes from a task's worker nothing but numbers and bytes.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import struct
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import prod
from pathlib import Path

from opsmith.problems.problem import ArrayType, Problem
from opsmith.running.commands import CommandLimits, CommandOrder, CommandResult
from opsmith.targets.command.language import LISTS, PLACEHOLDER, Language
from opsmith.targets.native.signature import list_dims, make_signature

_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")
_MIB = 1 << 20
MOST_TOOLS = 1000  # files of a folder that are looked into
_NPY_KINDS = {
    "fp16": "<f2",
    "fp32": "<f4",
    "fp64": "<f8",
    "bf16": "<u2",  # numpy has no bf16: its bits
    "int8": "|i1",
    "int32": "<i4",
    "int64": "<i8",
    "bool": "|b1",
}
_NPY_MARK = b"\x93NUMPY"
_LONGEST_HEAD = 1 << 12
_LONGEST_MARK = 1 << 8  # bytes of a script's first line, as the kernel reads them


class MissingProgramError(Exception):
    """A command's program is not on this machine; the text says which."""


@dataclass(frozen=True)
class RunArrays:
    """What one run is about: the arrays by name, and the numbers that are told beside them."""

    inputs: Mapping[str, ArrayType]
    outputs: Mapping[str, ArrayType]
    sizes: Mapping[str, int]
    scalars: Mapping[str, int | float]


def name_arrays(problem: Problem, numbers: Sequence[int | float]) -> RunArrays:
    """The arrays of a problem by names that are names of files too. `numbers`: sizes, then scalars, as `signature` has
    them."""
    names = [argument.name for argument in make_signature(problem).arguments]
    inputs = [tensor.type for tensor in problem.tensors]
    outputs = [type_ for output in problem.outputs for type_ in output.types]
    dims = list_dims(problem)
    sizes = {name: int(number) for name, number in zip(dims, numbers[: len(dims)], strict=True)}
    scalars = dict(zip(problem.scalars, numbers[len(dims) :], strict=True))
    split = len(inputs)
    return RunArrays(
        dict(zip(names[:split], inputs, strict=True)),
        dict(zip(names[split : split + len(outputs)], outputs, strict=True)),
        sizes,
        scalars,
    )


# -- orders


def order_compile(language: Language, source: str) -> tuple[CommandOrder, CommandLimits]:
    """Build a program of a language that compiles. Raises MissingProgramError."""
    tables = language.tables
    assert tables.compile is not None
    commands = [_write_words(language, command, {}) for command in tables.compile.commands]
    files = {tables.source: source.encode("utf-8", "replace")}
    has_processes = tables.compile.processes or len(commands) > 1
    order = _make_order(language, files, commands, tables.compile.outputs, has_processes)
    return order, _make_limits(language, tables.limits.compile_seconds)


def order_run(
    language: Language, artefacts: Mapping[str, bytes], arrays: RunArrays, inputs: Sequence[bytes | memoryview]
) -> tuple[CommandOrder, CommandLimits]:
    """Run a built program once. `inputs`: the bytes of each, in order. Raises MissingProgramError."""
    files: dict[str, bytes | memoryview] = dict(artefacts)
    input_files, output_files = _name_files(language, arrays)
    stdin = ""
    if language.tables.run.arrays == "stdio":
        stdin, files["stdin"] = "stdin", b"".join(inputs)
    else:
        for name, type_, data in zip(input_files, arrays.inputs.values(), inputs, strict=True):
            head = _write_npy_head(type_, arrays.sizes) if language.tables.run.arrays == "npy" else b""
            files[name] = head + bytes(data) if head else data
    words = {
        "inputs": dict(zip(arrays.inputs, input_files, strict=True)),
        "outputs": dict(zip(arrays.outputs, output_files, strict=True)),
        "sizes": {name: str(size) for name, size in arrays.sizes.items()},
        "scalars": {name: repr(value) for name, value in arrays.scalars.items()},
    }
    command = _write_words(language, language.tables.run.command, words)
    limits = _make_limits(language, float("inf"))
    has_processes = language.tables.run.processes
    return _make_order(language, files, [command], output_files, has_processes, stdin), limits


def _name_files(language: Language, arrays: RunArrays) -> tuple[list[str], list[str]]:
    """The files of inputs and outputs, none of which is called like the program's."""
    if language.tables.run.arrays == "stdio":
        return ["-"] * len(arrays.inputs), ["-"] * len(arrays.outputs)
    suffix = "npy" if language.tables.run.arrays == "npy" else "bin"
    return [f"in_{name}.{suffix}" for name in arrays.inputs], [f"out_{name}.{suffix}" for name in arrays.outputs]


def _make_order(
    language: Language,
    files: Mapping[str, bytes | memoryview],
    commands: Sequence[Sequence[str]],
    outputs: Sequence[str],
    has_processes: bool,
    stdin: str = "",
) -> CommandOrder:
    toolchain = language.tables.toolchain
    environment = {name: _fill_text(language, text, {}) for name, text in toolchain.environment.items()}
    return CommandOrder(
        files,
        commands,
        [name for name in outputs if name != "-"],
        {"LC_ALL": "C", "PATH": os.defpath, **environment},
        [*map(Path, _SYSTEM), *language.readable, *_list_program_paths(commands)],
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
        if command[0] == _find_python():
            places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
            yield from (Path(name).resolve() for name in (*places, sysconfig.get_config_var("LIBDIR") or "/lib"))


def _find_python() -> str:
    return str(Path(sys.executable).resolve())


# -- words


def _write_words(
    language: Language, command: Sequence[str | list[str]], lists: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """The words of a command, its program an absolute path or one in the folder of the run."""
    words: list[str] = []
    for word in command:
        words += _write_word(language, word, lists) if isinstance(word, str) else _repeat_words(language, word, lists)
    return [_find_program(language, words[0]) if words else "", *words[1:]]


def _write_word(language: Language, word: str, lists: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One that is nothing but a list's placeholder becomes several words, or none."""
    match = PLACEHOLDER.fullmatch(word)
    if match is not None and match[1] in LISTS:
        return _list_values(match[1], match[2], lists)
    return [_fill_text(language, word, lists)]


def _repeat_words(language: Language, group: Sequence[str], lists: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The group once for each value of the list that it names: `["-i", "{inputs}"]` is `-i in_a.bin -i in_b.bin`."""
    name = next(match[1] for text in group for match in PLACEHOLDER.finditer(text) if match[1] in LISTS)
    values = [{name: {key: value}} for key, value in lists.get(name, {}).items()]
    return [_fill_text(language, text, value) for value in values for text in group]


def _fill_text(language: Language, text: str, lists: Mapping[str, Mapping[str, str]]) -> str:
    single = {"here": str(language.folder), "python": _find_python(), "source": language.tables.source}
    return PLACEHOLDER.sub(
        lambda match: single[match[1]] if match[1] in single else ",".join(_list_values(match[1], match[2], lists)),
        text,
    )


def _list_values(name: str, equals: str, lists: Mapping[str, Mapping[str, str]]) -> list[str]:
    values = lists.get(name, {})
    return [f"{key}={value}" for key, value in values.items()] if equals else list(values.values())


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
    roots = [root.resolve() for root in (*map(Path, _SYSTEM), *language.readable)]
    places = (place for place in interpreters if place)
    lacking = [place for place in places if not any(Path(place).resolve().is_relative_to(root) for root in roots)]
    if lacking:
        is_python = "python" in Path(lacking[-1]).name
        remedy = 'write "{python}" before it in the command' if is_python else "name them in toolchain.readable"
        names = ", ".join(lacking)
        raise MissingProgramError(f"{path}: a script for {names}, which its commands may not execute; try: {remedy}")


def find_programs(language: Language) -> list[str]:
    """Where the programs of all commands are, but those that a build makes. Raises MissingProgramError."""
    words = (_fill_text(language, str(command[0]), {}) for command in _list_commands(language))
    return [_find_program(language, word) for word in words if not word.startswith("./")]


def _list_commands(language: Language) -> list[list[str | list[str]]]:
    tables = language.tables
    return [*(tables.compile.commands if tables.compile else []), tables.run.command]


def hash_tools(language: Language) -> str:
    """Of the bytes of what decides what programs do: the programs of the commands, the files that their words name, and
    what lies beside the language file and may be read. Raises MissingProgramError and OSError."""
    words = [word for command in _list_commands(language) for word in command[1:]]
    texts = [text for word in words for text in ([word] if isinstance(word, str) else word)]
    arguments = [_fill_text(language, text, {}) for text in texts]
    named = [language.folder / text for text in (*find_programs(language), *arguments) if "/" in text]
    digest = hashlib.sha256()
    for path in sorted({*named, *_list_own_files(language)}):
        if str(path) == _find_python():
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


# -- arrays


def read_arrays(language: Language, arrays: RunArrays, result: CommandResult) -> list[bytes] | str:
    """The bytes of each output, without heads; or what is wrong with them, in words."""
    _, names = _name_files(language, arrays)
    sizes = [_count_bytes(type_, arrays.sizes) for type_ in arrays.outputs.values()]
    if language.tables.run.arrays == "stdio":
        if len(result.printed) != sum(sizes):
            return f"{len(result.printed)} bytes on the standard output in place of {sum(sizes)}"
        ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
        return [result.printed[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    pieces = []
    for name, type_, size in zip(names, arrays.outputs.values(), sizes, strict=True):
        data = result.files.get(name)
        if data is None:
            obstacle = result.obstacles.get(name)
            return f"{obstacle} in place of the file {name}" if obstacle else f"no file {name}"
        if language.tables.run.arrays == "npy":
            body = _strip_npy_head(data, type_, arrays.sizes)
            if isinstance(body, str):
                return f"{name}: {body}"
            data = body
        if len(data) != size:
            return f"{len(data)} bytes in {name} in place of {size}"
        pieces.append(data)
    return pieces


def _count_bytes(type_: ArrayType, sizes: Mapping[str, int]) -> int:
    return int(_NPY_KINDS[type_.dtype][2:]) * prod(type_.shape_at(sizes))


def _describe_npy(type_: ArrayType, sizes: Mapping[str, int]) -> dict[str, object]:
    return {"descr": _NPY_KINDS[type_.dtype], "fortran_order": False, "shape": type_.shape_at(sizes)}


def _write_npy_head(type_: ArrayType, sizes: Mapping[str, int]) -> bytes:
    """That of version 1.0 of numpy's format."""
    text = repr(_describe_npy(type_, sizes)).encode()
    text += b" " * (-(len(_NPY_MARK) + 4 + len(text) + 1) % 64) + b"\n"
    return _NPY_MARK + b"\x01\x00" + struct.pack("<H", len(text)) + text


def _strip_npy_head(data: bytes, type_: ArrayType, sizes: Mapping[str, int]) -> bytes | str:
    """The numbers of a file of numpy's, or what is wrong with it. The file is a stranger's."""
    if data[:6] != _NPY_MARK or len(data) < 12:
        return "no file of numpy's"
    width = 2 if data[6] == 1 else 4
    length = int.from_bytes(data[8 : 8 + width], "little")
    if length > _LONGEST_HEAD:
        return "a head that is too long"
    try:
        head = ast.literal_eval(data[8 + width : 8 + width + length].decode("latin1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return "a head that is no mapping"
    expected = _describe_npy(type_, sizes)
    return data[8 + width + length :] if head == expected else _compare_heads(head, expected)


def _compare_heads(head: object, expected: Mapping[str, object]) -> str:
    """What differs, in numpy's words: `shape (48, 1) in place of (48,)`."""
    if not isinstance(head, dict) or head.keys() != expected.keys():
        return f"a head {head!r:.200} in place of {expected!r}"
    rows = [(key, head[key], wanted) for key, wanted in expected.items() if head[key] != wanted]
    return ", ".join(f"{key} {actual!r:.100} in place of {wanted!r}" for key, actual, wanted in rows)
