"""All files of a library of C programs: sources, headers, builds, operators as modules, the runtime, the tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.targets.c.library.building import write_makefile, write_setup
from opsmith.targets.c.library.header import write_isa_unit, write_public_header, write_unit_header
from opsmith.targets.c.library.sized import write_choosing_unit
from opsmith.targets.native.flags import BuildFlags, Isa, find_isa
from opsmith.targets.native.library.module import OperatorEntry
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.task import read_native_task
from opsmith.targets.programs import Solved

LANGUAGE = "C"
_PROGRAMS = "opsmith.targets.native.library.shared_object"
_LIBRARY = '''
"""The shared object with all programs."""

from pathlib import Path

from {name}._runtime.targets.native.library.shared_object import SharedObject

LIBRARY = SharedObject("{name}", Path(__file__).parent / "lib{name}.so")
'''.lstrip("\n")


@dataclass(frozen=True)
class SizedUnit:
    """One of an operator's several programs."""

    name: str  # of its files and, behind the package's, its symbol
    source: str
    flags: BuildFlags


@dataclass(frozen=True)
class CProgram:
    """An operator to be packaged: what its module says, its source, and how it is built."""

    entry: OperatorEntry
    source: str
    flags: BuildFlags
    by_size: tuple[SizedUnit, ...] = ()  # several programs: `source` is what chooses among them

    @property
    def units(self) -> dict[str, BuildFlags]:
        """What is compiled, by name, and how."""
        return {self.entry.name: self.flags, **{unit.name: unit.flags for unit in self.by_size}}


def write_package(name: str, operators: Sequence[Solved], language: str = LANGUAGE) -> dict[str, str]:
    """Path -> text, see `Packaged`. `language`: that the programs were made C from."""
    return write_programs(name, [_read_program(name, operator) for operator in operators], language)


def _read_program(package: str, solved: Solved) -> CProgram:
    problem, options = read_native_task(solved.task.text)
    entry = OperatorEntry(solved.name, solved.task.id, problem, solved.facts, options.threads, solved.secret)
    units = tuple(
        SizedUnit(f"{solved.name}__{number}", program.source, options.choose_flags(find_judged_isa(program.build)))
        for number, program in enumerate(solved.by_size)  # two underscores: no operator is called so
    )
    symbols = [f"{package}_{unit.name}" for unit in units]
    sizes = [program.sizes for program in solved.by_size]
    source = write_choosing_unit(symbols, problem, sizes) if units else solved.source
    return CProgram(entry, source, options.choose_flags(find_judged_isa(solved.build)), units)


def find_judged_isa(build: str) -> Isa:
    """The one that a verdict names among its flags; that of this machine where it names none."""
    match = re.search(r"(?<!\S)-march=(\S+)", build)
    return Isa(match[1]) if match else find_isa()


def write_programs(name: str, programs: Sequence[CProgram], language: str = LANGUAGE) -> dict[str, str]:
    """The files of a package with these programs."""
    flags = {unit: own for program in programs for unit, own in program.units.items()}
    entries = [program.entry for program in programs]
    places = [f"csrc/{entry.name}.c, {name}_{entry.name} in lib{name}.so" for entry in entries]
    files = write_frame(name, entries, places, LibraryFrame(language, _PROGRAMS, _LIBRARY.format(name=name)))
    files |= _write_sources(name, programs)
    files["setup.py"], files["Makefile"] = write_setup(name, flags), write_makefile(name, flags)
    files["MANIFEST.in"] = "include Makefile manifest.json\n"
    return files


def _write_sources(name: str, programs: Sequence[CProgram]) -> dict[str, str]:
    files = {f"{name}/include/{name}.h": write_public_header(name, [program.entry for program in programs])}
    files[f"{name}/csrc/_isa.c"] = write_isa_unit(name)
    for program in programs:
        files[f"{name}/csrc/{program.entry.name}.c"] = program.source
        files[f"{name}/csrc/{program.entry.name}.h"] = write_unit_header(name, program.entry)
        for unit in program.by_size:
            files[f"{name}/csrc/{unit.name}.c"] = unit.source
            files[f"{name}/csrc/{unit.name}.h"] = write_unit_header(name, program.entry, unit.name)
    return files
