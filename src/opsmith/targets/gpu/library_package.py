"""All files of a library in a language of GPUs: programs as they were written, their plans, operators, tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opsmith.targets.literals import bracket_rows
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.library.texts import DRIVER_RUNS, OWNERSHIP, PROOF, describe_usage, list_entries
from opsmith.targets.programs import Solved

_LIBRARY = '''
"""The programs of this package{where}."""

from {name}._runtime{module} import {programs}

LIBRARY = {programs}({name!r}, __file__, {plans})
'''.lstrip("\n")


@dataclass(frozen=True)
class PackageWords:
    """What one language's packages have of their own."""

    language: str  # in words
    programs: str  # `module:class`: the `Programs` that run them, vendored with all that it imports
    where: str  # they run, behind "The programs of this package"


@dataclass(frozen=True)
class PackedProgram:
    """One operator's program, beside its source."""

    plan: Mapping[str, Any]  # what `Programs` are given of it: literals
    files: Mapping[str, bytes] = field(default_factory=dict)  # by their ending


class GpuPackages(ABC):
    """The part of a GPU language that writes packages: fits `Packaged`."""

    suffix: str
    needs: str  # what a package's operators need, in Markdown
    package: PackageWords
    requirements: Sequence[str] = ("torch>=2.6",)

    @abstractmethod
    def pack_program(self, solved: Solved) -> PackedProgram:
        """Raises UsageError for one that no package can hold."""

    def write_package(self, name: str, operators: Sequence[Solved]) -> dict[str, str | bytes]:
        packed = list(map(self.pack_program, operators))
        module, _, programs = self.package.programs.partition(":")
        rows = [f"{solved.name!r}: {dict(one.plan)!r}" for solved, one in zip(operators, packed, strict=True)]
        library = _LIBRARY.format(
            where=self.package.where,
            name=name,
            module=module.removeprefix("opsmith"),
            programs=programs,
            plans=bracket_rows("{", rows, "}", 0),
        )
        places = [f"programs/{solved.name}{self.suffix}" for solved in operators]
        frame = LibraryFrame(self.package.language, module, library)
        files: dict[str, str | bytes] = {**write_frame(name, list_entries(operators), places, frame)}
        for solved, place, one in zip(operators, places, packed, strict=True):
            files[f"{name}/{place}"] = solved.source
            files |= {f"{name}/programs/{solved.name}{ending}": data for ending, data in one.files.items()}
        files["MANIFEST.in"] = f"include manifest.json\ngraft {name}\nglobal-exclude __pycache__ *.pyc\n"
        return files

    def describe_usage(self, name: str, operators: Sequence[Solved]) -> str:
        return describe_usage(name, operators, self.needs)

    def describe_proof(self, name: str) -> str:
        return PROOF

    def describe_ownership(self, name: str) -> str:
        return OWNERSHIP.format(name=name, runner=DRIVER_RUNS)
