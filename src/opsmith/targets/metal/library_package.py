"""All files of a library in Metal: programs as they were written, their launch plans, operators, tests."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.errors import UsageError
from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.literals import bracket_rows
from opsmith.targets.metal.syntax import list_kernels
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.library.texts import list_entries
from opsmith.targets.programs import Solved

_LIBRARY = '''
"""The programs of this package on the GPU of a Mac."""

from {name}._runtime.targets.metal.library_programs import MetalPrograms

LIBRARY = MetalPrograms({name!r}, __file__, {plans})
'''.lstrip("\n")
_DTYPES = {"float": "float32", "long": "int64", "int64_t": "int64", "ulong": "int64", "uint64_t": "int64"}
_SHORT = frozenset({"short", "ushort"})


def write_package(name: str, operators: Sequence[Solved], plans: Sequence[BoundPlan]) -> dict[str, str | bytes]:
    """Path -> contents, see `Packaged`. `plans`: of each operator's program. Raises UsageError for one that torch
    cannot launch."""
    rows = [f"{solved.name!r}: {_write_plan(solved, plan)}" for solved, plan in zip(operators, plans, strict=True)]
    library = _LIBRARY.format(name=name, plans=bracket_rows("{", rows, "}", 0))
    frame = LibraryFrame("Metal", "opsmith.targets.metal.library_programs", library)
    places = [f"programs/{solved.name}.metal" for solved in operators]
    files: dict[str, str | bytes] = {**write_frame(name, list_entries(operators), places, frame)}
    files |= {f"{name}/{place}": solved.source for place, solved in zip(places, operators, strict=True)}
    files["MANIFEST.in"] = f"include manifest.json\ngraft {name}\nglobal-exclude __pycache__ *.pyc\n"
    return files


def _write_plan(solved: Solved, plan: BoundPlan) -> str:
    if any(launch.shared != "0" for launch in plan.launches):
        expected = "threadgroup memory that kernels declare themselves: torch passes none"
        raise UsageError(f"{solved.task.id}: given shared= in its launch plan; expected {expected}")
    numbers = {}
    for head in list_kernels(solved.source):
        types = [head.parameters[place].type for _, place in sorted(head.buffers.items())]
        numbers[head.name] = [_DTYPES.get(type_, "int16" if type_ in _SHORT else "int32") for type_ in types]
    return repr({"plan": plan.write_json(), "numbers": numbers})
