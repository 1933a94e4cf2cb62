"""All files of a library in CUDA: programs as they were written, their cubins and launch plans, operators, tests."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.errors import UsageError
from opsmith.targets.gpu.nvidia.carrying import KERNELS, PLAN, PROGRAM
from opsmith.targets.literals import bracket_rows
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.library.texts import list_entries
from opsmith.targets.programs import CarriedBuild, Solved

_LIBRARY = '''
"""The programs of this package, launched by NVIDIA's driver."""

from {name}._runtime.targets.gpu.nvidia.library_programs import CubinPrograms

LIBRARY = CubinPrograms({name!r}, __file__, {plans})
'''.lstrip("\n")


def write_package(name: str, operators: Sequence[Solved], builds: Sequence[CarriedBuild]) -> dict[str, str | bytes]:
    """Path -> contents, see `Packaged`. `builds`: of each operator's program, as it is timed on a GPU. Raises
    UsageError for one that could not be built."""
    for solved, carried in zip(operators, builds, strict=True):
        if not carried.build.artefacts:
            reason = carried.build.failure or "; ".join(str(error) for error in carried.build.errors)
            raise UsageError(f"{solved.task.id}: its kernels were not built: {reason}; expected a cubin of each")
    rows = [f"{solved.name!r}: {_write_plan(carried)}" for solved, carried in zip(operators, builds, strict=True)]
    library = _LIBRARY.format(name=name, plans=bracket_rows("{", rows, "}", 0))
    frame = LibraryFrame("CUDA", "opsmith.targets.gpu.nvidia.library_programs", library)
    places = [f"programs/{solved.name}.cu" for solved in operators]
    files: dict[str, str | bytes] = {**write_frame(name, list_entries(operators), places, frame)}
    for solved, carried in zip(operators, builds, strict=True):
        files[f"{name}/programs/{solved.name}.cu"] = solved.source
        files[f"{name}/programs/{solved.name}.cubin"] = carried.build.artefacts[PROGRAM]
    files["MANIFEST.in"] = f"include manifest.json\ngraft {name}\nglobal-exclude __pycache__ *.pyc\n"
    return files


def _write_plan(carried: CarriedBuild) -> str:
    plan, kernels = (carried.build.artefacts[key].decode() for key in (PLAN, KERNELS))
    return repr({"plan": plan, "kernels": kernels, "architecture": str(carried.needs["architecture"])})
