"""The C compiler of this machine, and those for C++ and its kin: their versions, and what they read and execute.

All of it is what they say of themselves; nothing is compiled to find out. A toolchain is found once a process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

COMPILER, CXX_COMPILER, CLANG = "gcc", "g++", "clang-19"
NO_COMPILER = f"no C compiler: {COMPILER} is not on the path; try: install Debian's packages gcc and libc6-dev"
NO_CXX_COMPILER = f"no C++ compiler: {CXX_COMPILER} is not on the path; try: install Debian's package g++"
NO_CLANG = f"no clang: {CLANG} is not on the path; try: install Debian's packages {CLANG} and libc6-dev (250 MB)"

_PROGRAMS = ("as", "ld", "collect2")  # what the driver starts, beside the compiler proper
_LANGUAGES = {COMPILER: ("c", "cc1"), CXX_COMPILER: ("c++", "cc1plus"), CLANG: ("c++", "clang")}  # what compiles it
_START_FILES = ("crti.o", "libgcc.a", "libm.so")
_SYSTEM = ("/lib", "/lib64", "/etc/ld.so.cache")  # what its programs are loaded with
_SECONDS = 20.0  # for one question


@dataclass(frozen=True)
class Toolchain:
    """A compiler and what it needs of this machine."""

    driver: Path
    version: str  # `gcc 12.2.0 x86_64-linux-gnu`: part of the name of what it builds
    readable: tuple[Path, ...]  # files and folders that it may read and execute
    search_path: str  # PATH of its programs

    @property
    def environment(self) -> Mapping[str, str]:
        """All variables that it is started with, but for the folder of its temporary files."""
        return {"PATH": self.search_path, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}


@cache
def find_toolchain(compiler: str = COMPILER) -> Toolchain | None:
    """The toolchain of `gcc`, `g++` or `clang-19`; None: there is none, as `explain_no_compiler` says in words."""
    language, proper = _LANGUAGES[compiler]
    name = shutil.which(compiler)
    if name is None:
        return None
    driver = Path(name).resolve()
    try:
        programs = [driver, *_find_programs(driver, proper)]
        readable = {*programs, *_find_folders(driver, language), *map(Path, _SYSTEM)}
        number = _ask_driver(driver, "-dumpversion" if compiler == CLANG else "-dumpfullversion")
        version = f"{compiler} {number} {_ask_driver(driver, '-dumpmachine')}"
    except (OSError, subprocess.SubprocessError):
        return None
    folders = dict.fromkeys(str(program.parent) for program in (Path(name), *_link_programs(), *programs))
    return Toolchain(driver, version, tuple(sorted(filter(_is_specific, readable))), os.pathsep.join(folders))


def explain_no_compiler(compiler: str) -> str:
    """That it is not here, and what to install."""
    return {COMPILER: NO_COMPILER, CXX_COMPILER: NO_CXX_COMPILER, CLANG: NO_CLANG}[compiler]


def _find_programs(driver: Path, proper: str) -> Iterator[Path]:
    """Where its programs are; a bare name is one that it looks for on the path."""
    for program in (proper, *_PROGRAMS):
        place = shutil.which(_ask_driver(driver, f"-print-prog-name={program}"))
        if place is not None:
            yield Path(place).resolve()


def _link_programs() -> Iterator[Path]:
    """Assembler and linker as they are called: their names may be links whose folder must be on the path."""
    for program in ("as", "ld"):
        place = shutil.which(program)
        if place is not None:
            yield Path(place)


def _find_folders(driver: Path, language: str) -> Iterator[Path]:
    """Its headers, libraries and start files, as real paths that exist."""
    text = _ask_driver(driver, "-print-search-dirs")
    block = re.search(r"^libraries: =(.*)$", text, re.MULTILINE)
    libraries = map(Path, block[1].split(os.pathsep) if block else ())
    for folder in (*_list_headers(driver, language), *libraries):
        if folder.is_dir():
            yield folder.resolve()
    for name in _START_FILES:
        file = Path(_ask_driver(driver, f"-print-file-name={name}"))
        if file.is_absolute() and file.exists():
            yield file.resolve().parent


def _list_headers(driver: Path, language: str) -> list[Path]:
    text = _ask_driver(driver, f"-x{language}", "-E", "-v", "-", both=True)
    block = re.search(
        r"#include <\.\.\.> search starts here:\n(.*?)^End of search list", text, re.DOTALL | re.MULTILINE
    )
    return [Path(line.strip()) for line in block[1].splitlines()] if block else []


def _is_specific(path: Path) -> bool:
    """Not the root or a home: a toolchain that claims these is given less."""
    return path.parent != path and str(path) != os.path.expanduser("~")


def _ask_driver(driver: Path, *options: str, both: bool = False) -> str:
    """What it prints; `both`: its messages too. Raises OSError or SubprocessError."""
    result = subprocess.run(
        [driver, *options],
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=True,
        text=True,
        errors="replace",
    )
    return (result.stdout + result.stderr if both else result.stdout).strip()
