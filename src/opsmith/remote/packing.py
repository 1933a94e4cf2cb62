"""What is sent or carried: right programs built for the runner, the data that their inputs follow from, a manifest.

Equal requests on one machine make equal packs, so that what comes back is known by its keys, and a measurement that was
stopped goes on. Nothing of it tells an expected value, and no seed of a call's inputs is in it: the runner draws those.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.measuring.grain import is_fresh, list_inputs
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import PROTOCOLS, SpeedRequest, TimedProgram, asks_trusted, find_obstacle
from opsmith.measuring.record import MeasuringGrade
from opsmith.measuring.timing import TimingError
from opsmith.measuring.timing_data import DataWorker
from opsmith.problems.authored import compile_function
from opsmith.problems.digest import hash_problem
from opsmith.problems.dtypes import TORCH_NAMES
from opsmith.records import Task, content_hash
from opsmith.remote import runner, torch_beside
from opsmith.targets import Target, get_target
from opsmith.targets.native.layout import DrawLayout, read_inputs
from opsmith.targets.programs import CallConvention, CarriedBuild
from opsmith.targets.protocols import Carried
from opsmith.targets.vendoring import close_imports
from opsmith.timing.carried import FORMAT, MANIFEST, read_protocol
from opsmith.timing.engine import PairProtocol, Side
from opsmith.timing.inputs import InputArray, read_arrays

Verify = Callable[..., Any]  # (task, source) -> Verdict
POOL_BYTES = 128 << 10  # of one array, of whose entries the runner makes as many as it needs
DRAWS, MOST_WHOLE, WHOLE_BYTES = 4, 16, 8 << 20  # draws, where they cannot be mixed, and the bytes of all of these
CHECK_BYTES = 16 << 20  # of the outputs of one shape set that come back
DEADLINE_S = 300.0  # of one process that a language's module asks a whole measurement of
_ENGINE = ("opsmith.timing.engine", "opsmith.timing.inputs", "opsmith.timing.carried")  # what all modules there import
_README = """Programs to be timed on another machine, packed by opsmith {version}.

There (Linux, Python 3.8 or newer, nothing else), in this folder:

    python3 runner.py

Stopped, the same command goes on. Then bring `results/` back whole, and where this was packed:

    {command}
"""


@dataclass(frozen=True)
class PackedSet:
    """One shape set of one request: what the answer is compared by."""

    request: SpeedRequest
    name: str
    entry: Mapping[str, Any]  # of the manifest
    layout: DrawLayout
    artefact: str  # sha256 of the program that is timed
    toolchain: str
    convention: CallConvention
    read_file: Callable[[str], bytes]  # of the pack, by sha256
    protocol: PairProtocol  # what is asked for, as the runner reads it
    inputs: tuple[InputArray, ...]


@dataclass
class Pack:
    """What goes there, and what is expected back."""

    manifest: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)  # by sha256
    sets: dict[str, PackedSet] = field(default_factory=dict)  # by key
    refused: list[tuple[SpeedRequest, str, str, str]] = field(default_factory=list)  # request, shape set, reason, flags

    def add_file(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.files[digest] = data
        return digest

    @property
    def text(self) -> str:
        return json.dumps(self.manifest, sort_keys=True)

    @property
    def id(self) -> str:
        """As results name it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def list_files(self) -> dict[str, bytes]:
        """All of the folder by path."""
        files = {f"files/{digest}": data for digest, data in self.files.items()}
        return {**self.list_code(), MANIFEST: self.text.encode(), **files}

    def list_code(self) -> dict[str, bytes]:
        """The runner and the modules that it imports, by path."""
        modules = close_imports([*_ENGINE, *(program["module"] for program in self.manifest["programs"])])
        code = {"runner.py": Path(runner.__file__).read_bytes()}
        for module, text in modules.items():
            *rooms, name = module.split(".")
            code |= {"/".join([*rooms[: place + 1], "__init__.py"]): b"" for place in range(len(rooms))}
            code["/".join([*rooms, f"{name}.py"])] = text.encode()
        return code

    def leave_out(self, keys: frozenset[str]) -> Pack:
        """The same without what is measured already."""
        programs = [
            {**program, "sets": [entry for entry in program["sets"] if entry["key"] not in keys]}
            for program in self.manifest["programs"]
        ]
        programs = [program for program in programs if program["sets"]]
        return Pack({**self.manifest, "programs": programs}, self.files, self.sets, self.refused)


def pack_requests(room: TimingRoom, verify: Verify, requests: Sequence[SpeedRequest]) -> Pack:
    """All requests of one grade. Each program is judged and built here; what is not right is refused and not packed."""
    grade = requests[0].grade
    pack = Pack({"format": FORMAT, "protocol": _write_protocol(requests), "programs": []})
    for request in requests:
        assert request.grade is grade
        _pack_request(pack, room, verify, request)
    return pack


def _write_protocol(requests: Sequence[SpeedRequest]) -> dict[str, Any]:
    protocol = PROTOCOLS[requests[0].grade]
    return {
        "grade": requests[0].grade.value,
        "pairs": protocol.pairs,
        "warm_ups": protocol.warm_ups,
        "turn_ns": protocol.turn_ns,
        "controls": protocol.controls,
        "apart": any(asks_trusted(request) for request in requests),
        "checks": 2,
        "check_bytes": CHECK_BYTES,
        "deadline_s": DEADLINE_S,
    }


def _pack_request(pack: Pack, room: TimingRoom, verify: Verify, request: SpeedRequest) -> None:
    reason = find_obstacle(verify, request)
    builds = {} if reason else _build_sides(request)
    for carried in builds.values():
        errors = carried.build.errors
        reason = reason or carried.build.failure or (str(errors[0]) if errors else "")
    if reason:
        pack.refused += [(request, name, reason, "") for name in request.shape_sets]
        return
    built, convention = builds[Side.PROGRAM], _require_carried(request.task).convention
    artefacts = {side.value: pack.add_file(builds[side].build.artefacts["program"]) for side in Side}
    artefacts |= {name: pack.add_file(built.build.artefacts[name]) for name in convention.helpers}
    program: dict[str, Any] = {
        "name": request.task.id,
        "module": convention.module,
        "processes": _count_processes(convention, request.grade),
        "threads": built.build.threads,
        "has_partner": request.partner is not None,
        "needs": dict(built.needs),
        "artefacts": artefacts,
        "sets": [],
    }
    with room.asking_worker(request.task, request.task.target) as worker:
        for name in request.shape_sets:
            try:
                _pack_set(pack, worker, request, builds, program, name)
            except OpsmithError as error:
                pack.refused.append((request, name, str(error), built.build.toolchain))
    if program["sets"]:
        pack.manifest["programs"].append(program)


def _count_processes(convention: CallConvention, grade: MeasuringGrade) -> int:
    count = convention.full_processes if grade is MeasuringGrade.FULL else None
    return PROTOCOLS[grade].processes if count is None else count


def _build_sides(request: SpeedRequest) -> dict[Side, CarriedBuild]:
    programs: dict[Side, TimedProgram] = {
        Side.PROGRAM: request.program,
        Side.PARTNER: request.partner or request.program,
    }
    return {side: _build_program(request, program) for side, program in programs.items()}


def _build_program(request: SpeedRequest, program: TimedProgram) -> CarriedBuild:
    task = program.task or request.task
    return _require_carried(task).build_carried(task, program.source)


def _require_carried(task: Task) -> Carried:
    target: Target = get_target(task.target)
    if not isinstance(target, Carried):
        raise TimingError(
            f"programs of target {task.target} cannot be timed elsewhere; try, for its problem: --target c"
        )
    return target


def _pack_set(
    pack: Pack,
    worker: DataWorker,
    request: SpeedRequest,
    builds: Mapping[Side, CarriedBuild],
    program: dict[str, Any],
    name: str,
) -> None:
    layout, inputs, draws = _pack_inputs(pack, worker, request, name)
    target = _require_carried(request.task)
    entry: dict[str, Any] = {
        "name": name,
        "sizes": dict(request.shape_sets[name]),
        "inputs": inputs,
        "outputs": list(layout.outputs),
        "numbers": list(layout.numbers),
        "draws": draws,
        "calls": {side.value: dict(target.plan_call(builds[side].build, layout.numbers)) for side in Side},
    }
    facts = {key: value for key, value in program.items() if key != "sets"}
    key = entry["key"] = hashlib.sha256(
        json.dumps([facts, entry, pack.manifest["protocol"]], sort_keys=True).encode()
    ).hexdigest()[:32]
    program["sets"].append(entry)
    build = builds[Side.PROGRAM]
    pack.sets[key] = PackedSet(
        request,
        name,
        entry,
        layout,
        program["artefacts"]["program"],
        build.build.toolchain,
        target.convention,
        pack.files.__getitem__,
        read_protocol(pack.manifest["protocol"], program),
        read_arrays(entry["inputs"]),
    )


def _pack_inputs(
    pack: Pack, worker: DataWorker, request: SpeedRequest, name: str
) -> tuple[DrawLayout, list[dict[str, Any]], int]:
    """How arrays are called with, of what each input is made, and how many draws the runner makes of that."""
    problem, sizes = request.problem, request.shape_sets[name]
    first = int(content_hash("pack", hash_problem(problem), json.dumps(sizes, sort_keys=True))[:8], 16)

    def draw_arrays(number: int) -> tuple[DrawLayout, list[bytes]]:
        layout, (arrays,) = read_inputs(memoryview(worker.draw_inputs(sizes, first + number)))
        return layout.draws[0], [bytes(array) for array in arrays]

    layout, arrays = draw_arrays(0)
    can_mix = is_fresh(problem)
    inputs = list_inputs(problem, sizes)
    inputs = inputs if can_mix else [InputArray(array.size, array.width) for array in inputs]
    count = DRAWS if can_mix else max(2, min(MOST_WHOLE, WHOLE_BYTES // max(1, sum(layout.inputs))))
    is_drawn_again = not can_mix or not all(array.unit for array in inputs)
    draws = [arrays, *(draw_arrays(number)[1] for number in range(1, count if is_drawn_again else 1))]
    rows = []
    for place, array in enumerate(inputs):
        # some entries, or some rows; the whole of an array that cannot be taken apart
        size = max(1, POOL_BYTES // array.unit) * array.unit if array.unit else None
        pools = [draw[place][:size] for draw in (draws[:1] if array.unit else draws)]
        digests = [pack.add_file(pool) for pool in pools]
        rows.append(asdict(replace(array, pools=tuple(digests if len(set(digests)) > 1 else digests[:1]))))
    return layout, rows, count


def _write_reference(packed: PackedSet) -> dict[str, Any]:
    problem, sizes = packed.request.problem, packed.request.shape_sets[packed.name]
    inputs = [
        (tensor.name, TORCH_NAMES[tensor.type.dtype], list(tensor.type.shape_at(sizes))) for tensor in problem.tensors
    ]
    _, function = compile_function(problem.reference, "reference")
    return {"text": problem.reference, "function": function, "inputs": inputs, "scalars": dict(problem.scalars)}


def _is_packed(folder: Path) -> bool:
    """Whether it holds what was packed before: many a folder has a manifest.json of something else."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(manifest, dict) and {"format", "protocol", "programs"} <= manifest.keys()


def write_pack(pack: Pack, folder: Path, command: str, version: str) -> int:
    """Write the folder, and say how many bytes it has. Raises OpsmithError for one that holds something else."""
    if folder.exists() and any(folder.iterdir()) and not _is_packed(folder):
        raise OpsmithError(f"--pack {folder}: given a folder with files of something else; expected a new one")
    files = pack.list_files() | {"README.txt": _README.format(version=version, command=command).encode()}
    if device := next(filter(None, (packed.convention.torch_device for packed in pack.sets.values())), ""):
        references = {key: _write_reference(each) for key, each in pack.sets.items() if each.request.problem.reference}
        files[torch_beside.REFERENCES] = json.dumps({"device": device, "references": references}).encode()
        files["torch_beside.py"] = Path(torch_beside.__file__).read_bytes()
    for old in (folder / "files").glob("*"):
        if f"files/{old.name}" not in files:
            old.unlink()
    if (folder / "results").is_dir() and (folder / MANIFEST).read_bytes() != files[MANIFEST]:
        shutil.rmtree(folder / "results")
    for name, data in files.items():
        draft = folder / f"{name}.unfinished"
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
        os.replace(draft, folder / name)
    return sum(map(len, files.values()))
