"""A language in one TOML file: what it is called, how its programs are compiled and run, where the toolchain lies.

Paths are relative to the file's folder, which texts call `{here}`. A wrong file is a TaskError that names file, line
and key. Reading executes nothing; that a program of a command is missing shows when it is to be run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from opsmith.errors import TaskError
from opsmith.outside import read_text, read_toml
from opsmith.records import content_hash
from opsmith.targets.command.words import LISTS, PLACEHOLDER, PLACES

MOST_ERRORS = 5  # that are told at once
_OWN_FILE = re.compile(r"\{here\}/([^{}]+)")  # a word that is a file beside the language file


def _check_placeholders(text: str) -> str:
    for match in PLACEHOLDER.finditer(text):
        if match[1] not in PLACES or (match[2] and match[1] not in LISTS):
            expected = ", ".join(f"{{{name}}}" for name in PLACES)
            raise ValueError(f"no placeholder {match[0]}; known: {expected}, and {{sizes=}} and the like for names too")
    return text


def _check_word(word: object) -> str | list[str]:
    if isinstance(word, str):
        return _check_placeholders(word)
    if not isinstance(word, list) or not all(isinstance(text, str) for text in word):
        raise ValueError("a word, or a list of words that is repeated for each value of a list")
    named = {match[1] for text in word for match in PLACEHOLDER.finditer(_check_placeholders(text))} & LISTS
    if len(named) != 1:
        raise ValueError(f"a list of words that names one of {', '.join(f'{{{name}}}' for name in sorted(LISTS))}")
    return word


def _check_command(words: list[str | list[str]]) -> list[str | list[str]]:
    if not isinstance(words[0], str):
        raise ValueError("a command whose first word is a program")
    return words


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression: {error}") from error
    return text


def _check_file_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][\w.+-]{0,99}", text, re.ASCII):
        raise ValueError("the name of a file without a folder")
    return text


Words = Annotated[str, AfterValidator(_check_placeholders)]
Word = Annotated[str | list[str], PlainValidator(_check_word)]
Command = Annotated[list[Word], Field(min_length=1), AfterValidator(_check_command)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
FileName = Annotated[str, AfterValidator(_check_file_name)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CompileTable(_Table):
    """How a program is built; without this table the program itself is what is run."""

    commands: Annotated[list[Command], Field(min_length=1)]
    outputs: Annotated[list[FileName], Field(min_length=1)]  # the files that runs are given beside the program
    processes: bool = True  # may its commands start others, as drivers of compilers do?
    diagnostics: Pattern = ""  # groups `message`, and where there are such: line, column, file, expected, remedy


class RunTable(_Table):
    """How a built program is run once, on one set of inputs."""

    command: Command
    processes: bool = False  # may it start others? They are not counted, and each may use all that one may
    arrays: Literal["raw", "npy", "stdio"] = "raw"  # files of bytes, files of numpy's, or standard input and output
    diagnostics: Pattern = ""  # of a run that ended badly: groups as those of compile.diagnostics
    cycles: Pattern = ""  # its group `cycles`, or its first one, is a whole number on the output or the messages


class ProfileTable(_Table):
    """What of a run's output and messages says why a program takes as long as it does. It decides no verdict."""

    lines: Pattern  # of those lines
    words: Annotated[str, Field(min_length=1)]  # what the figures in them mean, for people and models


class ToolchainTable(_Table):
    """What the commands need of this machine."""

    readable: list[str] = []  # files and folders that may be read and executed, beside the system's libraries
    environment: Mapping[str, Words] = {}  # all variables that they see
    licence_ports: list[Annotated[int, Field(ge=1, le=65535)]] = []  # of TCP: a licence server's


class LimitsTable(_Table):
    """What a command may use. How long a trial may take is a setting of the run: --trial-seconds."""

    compile_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    cpu_seconds: Annotated[int, Field(gt=0, le=36000)] = 600  # of processor time, each process
    memory_mib: Annotated[int, Field(gt=0)] = 4096  # addresses of each process
    file_mib: Annotated[int, Field(gt=0)] = 256  # each file
    source_kib: Annotated[int, Field(gt=0, le=1024)] = 256  # a program


class ImprovementTable(_Table):
    """What the agents of an optimisation round are told: texts, or names of .md or .txt files."""

    platform: str = ""  # for the analyst: what costs time, what usually helps, what cannot be changed
    example: str = ""  # for the generator: a program, a suggestion, and the better program that came of it


class LibraryTable(_Table):
    """What a library of programs takes along, and how it is built where it is installed."""

    files: list[str] | None = None  # beside this file: part of the package, whose commands find them in {here}; without
    # it those of `toolchain.readable`; []: none, {here} is a variable of the environment
    build: list[Command] = []  # in place of `compile.commands`: for the machine, where programs were judged on a model
    install: list[Command] = []  # once all operators were built, in the folder of what was built


class ManualTable(_Table):
    """What is quoted to models for a task, by likeness to it."""

    files: Annotated[list[str], Field(min_length=1, max_length=8)]  # .md, .txt, .html and .pdf, beside this file
    tokens: Annotated[int, Field(ge=100, le=100_000)] = 3000  # of one prompt, at most


class LanguageTables(_Table):
    """The whole file."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][\w.+-]{0,29}$")]
    version: Annotated[str, Field(pattern=r"^[\w.+-]{1,20}$")] = "1"  # raise it when the meaning of programs changes
    comment: Annotated[str, Field(min_length=1, max_length=4)] = "#"
    source: FileName = "program.txt"  # what a program's file is called
    prompt: str  # what a model is told of the language: the text, or the name of a .md or .txt file
    programs: str = ""  # a folder of programs, which the embedded model varies; "": it cannot be asked
    compile: CompileTable | None = None
    run: RunTable
    profile: ProfileTable | None = None
    toolchain: ToolchainTable = ToolchainTable()
    limits: LimitsTable = LimitsTable()
    improvement: ImprovementTable = ImprovementTable()
    library: LibraryTable = LibraryTable()
    manual: ManualTable | None = None


UNJUDGED_KEYS = {
    "prompt",
    "programs",
    "improvement",
    "library",
    "manual",
}  # what models are told, or libraries: no verdict's


@dataclass(frozen=True)
class Language:
    """A language that was read, with the folder that its paths are relative to."""

    tables: LanguageTables
    folder: Path
    prompt: str
    platform: str = ""
    example: str = ""  # of an improvement

    @property
    def digest(self) -> str:
        """Of all that decides a verdict: all in the file but what models are told, and what libraries take along."""
        said = self.tables.model_dump(exclude=UNJUDGED_KEYS)
        if not self.tables.run.diagnostics:
            del said["run"]["diagnostics"]  # languages that have none are called what they were
        return content_hash("language", json.dumps(said, sort_keys=True))

    @property
    def version(self) -> str:
        """`vex-1-0f3a9c21`: the name, its author's version, and what the file says."""
        return f"{self.tables.name}-{self.tables.version}-{self.digest[:8]}"

    @property
    def readable(self) -> list[Path]:
        return [self.folder / Path(path).expanduser() for path in self.tables.toolchain.readable]


def read_language(path: Path) -> Language:
    """The language of a TOML file. Raises TaskError."""
    text, data = read_toml(path)
    try:
        tables = LanguageTables(**data)
    except ValidationError as error:
        findings = list(_list_errors(path, text, error))
        further = [f"and {len(findings) - MOST_ERRORS} more"] if findings[MOST_ERRORS:] else []
        raise TaskError("\n".join([*findings[:MOST_ERRORS], *further])) from error
    improvement = tables.improvement
    texts = (_read_prompt(path, text) for text in (tables.prompt, improvement.platform, improvement.example))
    language = Language(tables, path.resolve().parent, *texts)
    for readable in language.readable:
        if not readable.exists():
            place = _find_place(path, text, ("toolchain", "readable"))
            raise TaskError(
                f"{place}: toolchain.readable: given {str(readable)!r}; expected a file or folder that exists"
            )
    _check_own_files(path, text, language)
    return language


def _check_own_files(path: Path, text: str, language: Language) -> None:
    """Raises TaskError for a word `{here}/NAME` after a command's program that its commands could not read: every
    program would be refused for it."""
    tables = language.tables
    keyed = [("compile", "commands", command) for command in (tables.compile.commands if tables.compile else [])]
    roots = [root.resolve() for root in language.readable]
    commands = [*keyed, ("run", "command", tables.run.command)]
    programs = {command[0] for _, _, command in commands}
    for table, key, command in commands:
        for word in command[1:]:
            match = _OWN_FILE.fullmatch(word) if isinstance(word, str) and word not in programs else None
            file = language.folder / match[1] if match else None
            if match is None or file is None or any(file.resolve().is_relative_to(root) for root in roots):
                continue
            is_there = file.exists()
            expected = "one that its commands may read" if is_there else "a file that exists"
            remedy = f'; try: readable = ["{match[1]}"] under [toolchain]' if is_there else ""
            place = _find_place(path, text, (table, key))
            raise TaskError(f"{place}: {table}.{key}: given the file {word!r}; expected {expected}{remedy}")


def _read_prompt(path: Path, prompt: str) -> str:
    is_file = "\n" not in prompt and prompt.endswith((".md", ".txt"))
    return read_text(path.parent / prompt) if is_file else prompt


def _list_errors(path: Path, text: str, error: ValidationError) -> Iterator[str]:
    """Every finding on a line of its own: where, given, expected."""
    for finding in error.errors(include_url=False, include_context=False):
        keys = [str(key) for key in finding["loc"]]
        problem = finding["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        problem = "a list, in brackets" if finding["type"] == "list_type" else problem
        place = _find_place(path, text, keys)
        if finding["type"] == "missing":
            yield f"{place}: {'.'.join(keys)}: given nothing; expected this key, which every language has"
        elif finding["type"] == "extra_forbidden":
            known_keys = ", ".join(_list_keys(keys))
            yield f"{place}: {'.'.join(keys)}: given an unknown key; expected one of {known_keys}"
        else:
            yield f"{place}: {'.'.join(keys)}: given {_shorten_value(finding['input'])}; expected {problem}"


def _list_keys(keys: Sequence[str]) -> list[str]:
    """The keys of the table that a wrong key stands in."""
    table: Any = LanguageTables
    for key in keys[:-1]:
        table = _TABLES.get(key, table)
    return list(table.model_fields)


_TABLES = {
    "compile": CompileTable,
    "run": RunTable,
    "toolchain": ToolchainTable,
    "limits": LimitsTable,
    "improvement": ImprovementTable,
    "library": LibraryTable,
    "manual": ManualTable,
}


def _shorten_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:96]} ..."


def _find_place(path: Path, text: str, keys: Sequence[str]) -> str:
    """`file:line` of a key, as far as a search can tell: of its table's head where the key itself is missing."""
    lines, start, place = text.splitlines(), 0, 0
    if len(keys) > 1:
        heads = (number for number, line in enumerate(lines, 1) if line.split("#")[0].strip() == f"[{keys[0]}]")
        start = place = next(heads, 0)
    else:
        place = next((number for number, line in enumerate(lines, 1) if line.startswith(f"[{keys[0]}]")), 0)
    name = keys[1] if start else keys[0]
    pattern = re.compile(rf"""[ \t]*["']?{re.escape(name)}["']?[ \t]*[=.]""")
    for number, line in enumerate(lines[start:], start + 1):
        if start and line.startswith("["):
            break
        if pattern.match(line):
            place = number
            break
    return f"{path}:{place}" if place else str(path)
