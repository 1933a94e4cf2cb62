"""All files of a library in WGSL: programs as they were written, their launch plans, operators, tests."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.targets.gpu.plan import BoundPlan
from opsmith.targets.literals import bracket_rows
from opsmith.targets.native.library.package import LibraryFrame, write_frame
from opsmith.targets.native.library.texts import list_entries
from opsmith.targets.programs import Solved
from opsmith.targets.wgsl.instrumenting import list_checks
from opsmith.targets.wgsl.syntax import read_module

_LIBRARY = '''
"""The programs of this package on a device of WebGPU."""

from {name}._runtime.targets.wgsl.library_programs import WgslPrograms

LIBRARY = WgslPrograms({name!r}, __file__, {plans})
'''.lstrip("\n")


def write_package(name: str, operators: Sequence[Solved], plans: Sequence[BoundPlan]) -> dict[str, str | bytes]:
    """Path -> contents, see `Packaged`. `plans`: of each operator's program."""
    rows = [f"{solved.name!r}: {_write_plan(solved, plan)}" for solved, plan in zip(operators, plans, strict=True)]
    library = _LIBRARY.format(name=name, plans=bracket_rows("{", rows, "}", 0))
    frame = LibraryFrame("WGSL", "opsmith.targets.wgsl.library_programs", library)
    places = [f"programs/{solved.name}.wgsl" for solved in operators]
    files: dict[str, str | bytes] = {**write_frame(name, list_entries(operators), places, frame)}
    files |= {f"{name}/{place}": solved.source for place, solved in zip(places, operators, strict=True)}
    files["MANIFEST.in"] = f"include manifest.json\ngraft {name}\nglobal-exclude __pycache__ *.pyc\n"
    return files


def _write_plan(solved: Solved, plan: BoundPlan) -> str:
    kernels = {
        kernel: {"widths": dict(widths), "has_numbers": has_numbers}
        for kernel, (_, widths, _, has_numbers) in list_checks(read_module(solved.source), plan)["kernels"].items()
    }
    return repr({"plan": plan.write_json(), "kernels": kernels})
