"""All files of a library in a language of commands: programs as they were written, the toolchain, operators, tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from opsmith.errors import UsageError
from opsmith.targets.command.language import Language
from opsmith.targets.literals import bracket_rows, write_literal
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.library.texts import list_entries
from opsmith.targets.programs import TOOLCHAIN, Solved

_PROGRAMS = "opsmith.targets.command.library_programs"
_MOST_FILES, _MOST_BYTES = 1000, 64 << 20  # of a toolchain that goes into a package
_LIBRARY = '''
"""How programs of {language} are built and run here."""

from {name}._runtime.targets.command.library_programs import make_programs

LIBRARY = make_programs({name!r}, __file__, {commands})
'''.lstrip("\n")
_MAIN = '''
"""`python -m {name}`: builds every operator, and runs the language's commands of installation."""

from {name}._library import LIBRARY

LIBRARY.build_all([{names}])
'''.lstrip("\n")
_MAKEFILE = """
# Builds all operators of {name} in their folder, and tests them. Made by `opsmith export`.
PYTHON ?= python3

.PHONY: all test clean
all:
\t$(PYTHON) -m {name}
test: all
\t$(PYTHON) -m pytest
clean:
\trm -rf {name}/build
""".lstrip("\n")


def write_package(language: Language, name: str, operators: Sequence[Solved]) -> dict[str, str | bytes]:
    """Path -> contents, see `Packaged`. Raises UsageError for a toolchain that no package should hold."""
    suffix = Path(language.tables.source).suffix or ".txt"
    entries = list_entries(operators)
    tools = dict(_list_tools(language))
    commands = _write_commands(language, suffix, bool(tools))
    frame = LibraryFrame(
        language.tables.name,
        _PROGRAMS,
        _LIBRARY.format(name=name, language=language.tables.name, commands=commands),
    )
    places = [f"programs/{entry.name}{suffix}" for entry in entries]
    files: dict[str, str | bytes] = {**write_frame(name, entries, places, frame)}
    files |= {f"{name}/{place}": solved.source for place, solved in zip(places, operators, strict=True)}
    files |= {f"{name}/{TOOLCHAIN}/{path}": file.read_bytes() for path, file in tools.items()}
    files[f"{name}/__main__.py"] = _MAIN.format(name=name, names=", ".join(f'"{entry.name}"' for entry in entries))
    files["Makefile"] = _MAKEFILE.format(name=name)
    files["MANIFEST.in"] = f"include Makefile manifest.json\ngraft {name}\nglobal-exclude __pycache__ *.pyc\n"
    return files


def _list_tools(language: Language) -> Iterator[tuple[str, Path]]:
    """The files of the toolchain that go along, by their path below the language file's folder."""
    named = language.tables.library.files
    roots = language.readable if named is None else [language.folder / path for path in named]
    count = size = 0
    for root in roots:
        if not root.exists():
            raise UsageError(f"library.files: given {root}; expected a file or folder beside the language file")
        if not root.resolve().is_relative_to(language.folder.resolve()):
            if named is None:
                continue
            raise UsageError(f"library.files: given {root}; expected one below {language.folder}")
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if not path.is_file() or "__pycache__" in path.parts:
                continue
            count, size = count + 1, size + path.stat().st_size
            if count > _MOST_FILES or size > _MOST_BYTES:
                given = f"given {root}, with more than {_MOST_FILES} files or {_MOST_BYTES >> 20} MiB"
                remedy = "name fewer files, or none: files = [] under [library]"
                raise UsageError(f"library.files: {given}; expected what a package can hold; try: {remedy}")
            yield path.relative_to(language.folder).as_posix(), path


def _write_commands(language: Language, suffix: str, has_tools: bool) -> str:
    """The record of `LibraryCommands`, as Python."""
    tables = language.tables
    own = tables.library
    values = {
        "language": tables.name,
        "source": tables.source,
        "suffix": suffix,
        "build": own.build or (tables.compile.commands if tables.compile else []),
        "outputs": tables.compile.outputs if tables.compile else [],
        "install": own.install,
        "run": tables.run.command,
        "arrays": tables.run.arrays,
        "cycles": tables.run.cycles,
        "environment": dict(tables.toolchain.environment),
        "has_tools": has_tools,
    }
    rows = [f"{write_literal(key, 4)}: {value!r}" for key, value in values.items()]
    return bracket_rows("{", rows, "}", 0)
