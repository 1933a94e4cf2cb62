"""Torch as a partner: how fast a problem's reference is, eager and compiled, beside its plain program.

They are timed in processes without a candidate (`torch_process`), which are confined as commands are: they may read and
execute Python, torch and, for torch.compile, the compiler of C++, write in one temporary folder, and start processes.
A figure that is missing says why.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opsmith.devices.lease import WAIT_S, lease_device
from opsmith.measuring.intervals import Interval
from opsmith.measuring.pairs import compare_times, estimate_median
from opsmith.measuring.record import MeasuringGrade
from opsmith.problems.problem import Problem
from opsmith.records import Task
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands
from opsmith.running.sandbox import readable_by_workers
from opsmith.running.toolchain import CXX_COMPILER, NO_CXX_COMPILER, find_toolchain
from opsmith.running.turnstile import CPU
from opsmith.targets import Build, get_target
from opsmith.targets.native.calls import DRIVER, PROGRAM
from opsmith.targets.protocols import Stating, Timed

PLAIN, EAGER, COMPILE = "plain", "eager", "compile"
PARTNERS = (EAGER, COMPILE)

_PACKAGES = Path(__file__).parents[2]  # where the process imports us from
_FORK_S, _COMPILE_S = 120, 60  # of one fork; of torch.compile in it
_START_S = 120.0  # for importing torch from a cold disk
_MEMORY = 16 << 30  # bytes of addresses, each process: torch and its compiler map more than they use
_KEPT_MEMORY = {  # glibc gives nothing back: else each large output of torch costs its page faults anew
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_ORDER, _PROCESS = "order.json", "opsmith.measuring.torch_process"
_PROGRAMS = ("openssl",)  # which hashes headers
_KERNEL_FILES = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")  # which vectors there are


@dataclass(frozen=True)
class TorchProtocol:
    """How much is measured."""

    processes: int  # fresh ones of each shape set
    rounds: int  # in each: a turn of every side


PROTOCOLS: Mapping[MeasuringGrade, TorchProtocol] = {
    MeasuringGrade.SCREEN: TorchProtocol(processes=1, rounds=12),
    MeasuringGrade.FULL: TorchProtocol(processes=4, rounds=8),
}


@dataclass(frozen=True)
class TorchRequest:
    """What is timed: a task with its plain program."""

    task: Task
    shape_sets: Mapping[str, Mapping[str, int]]
    partners: Sequence[str] = PARTNERS
    grade: MeasuringGrade = MeasuringGrade.FULL
    seed: int = 0


@dataclass(frozen=True)
class TorchFigure:
    """How fast torch is in one way, or why that cannot be said."""

    time: Interval | None = None  # of one call in ns
    to_plain: Interval | None = None  # its time by that of the plain program: above 1 the plain program is faster
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.time is None) != bool(self.reason) or (self.time is None) != (self.to_plain is None):
            raise ValueError(f"TorchFigure: given {self.time}, {self.to_plain}, reason {self.reason!r}")


@dataclass(frozen=True)
class TorchComparison:
    """All sides at one shape set."""

    plain: Interval | None  # its time of one call in ns, in the same processes; None: nothing was timed
    figures: Mapping[str, TorchFigure]  # by the partner's name


@dataclass
class _Answers:
    """What the forks of one shape set said."""

    times: dict[str, list[list[float]]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def measure_torch(request: TorchRequest) -> dict[str, TorchComparison]:
    """One comparison for each shape set, on a processor that is leased meanwhile. Raises BusyError; nothing for a task,
    whatever its reference does."""
    target = get_target(request.task.target)
    if not isinstance(target, Timed) or not isinstance(target, Stating):
        return _withhold_all(request, f"programs of target {request.task.target} cannot be timed here")
    obstacle = _find_obstacle(request.task, target.find_problem(request.task))
    if obstacle or request.task.impl is None:
        return _withhold_all(request, obstacle)
    build = target.build_timed(request.task, request.task.impl)
    if not build.artefacts:
        return _withhold_all(request, build.failure or "the plain program cannot be built")
    return _time_build(request, build)


def _find_obstacle(task: Task, problem: Problem) -> str:
    if task.impl is None:
        return "the task has no program of its own, which torch would be compared with"
    if not problem.reference:
        return "the reference is no function of the inputs, but texts of a STeP task"
    return ""


def _withhold_all(request: TorchRequest, reason: str) -> dict[str, TorchComparison]:
    figures = {partner: TorchFigure(reason=reason) for partner in request.partners}
    return {name: TorchComparison(None, figures) for name in request.shape_sets}


def _time_build(request: TorchRequest, build: Build) -> dict[str, TorchComparison]:
    lacking = {COMPILE: NO_CXX_COMPILER} if COMPILE in request.partners and find_toolchain(CXX_COMPILER) is None else {}
    partners = [partner for partner in request.partners if partner not in lacking]
    protocol = PROTOCOLS[request.grade]
    forks = protocol.processes * len(request.shape_sets)
    limits = CommandLimits(
        cpu_seconds=None,
        seconds=_START_S + _FORK_S + forks * _FORK_S / 4,
        memory=_MEMORY,
        threads=4096,  # torch starts some for each processor, in each of its processes
        file_bytes=256 << 20,
        open_files=256,
    )
    with lease_device(CPU, f"measure torch at {request.task.id}", WAIT_S):
        result = run_commands(_write_order(request, build, partners), limits)
    return read_answers(request, lacking, result)


def _write_order(request: TorchRequest, build: Build, partners: Sequence[str]) -> CommandOrder:
    protocol = PROTOCOLS[request.grade]
    order = {
        "text": request.task.text,
        "shape_sets": {name: dict(sizes) for name, sizes in request.shape_sets.items()},
        "partners": partners,
        "processes": protocol.processes,
        "rounds": protocol.rounds,
        "seed": request.seed,
        "threads": build.threads,
        "seconds": _FORK_S,
        "compile_seconds": _COMPILE_S,
    }
    files = {_ORDER: json.dumps(order).encode(), **{name: build.artefacts[name] for name in (DRIVER, PROGRAM)}}
    return CommandOrder(
        files,
        [[sys.executable, "-P", "-m", _PROCESS, _ORDER]],
        [name for row in _name_files(request).values() for name in row],
        _choose_environment(partners, build.threads),
        [*_list_readable(partners)],
        executes_folder=COMPILE in partners,
        makes_folders=COMPILE in partners,
    )


def _name_files(request: TorchRequest) -> dict[str, list[str]]:
    """The files of answers, by shape set."""
    processes = range(PROTOCOLS[request.grade].processes)
    return {name: [f"{number}-{place}.json" for number in processes] for place, name in enumerate(request.shape_sets)}


def _choose_environment(partners: Sequence[str], threads: int) -> dict[str, str]:
    """All variables of the process. The compiler's cache of torch is in the temporary folder."""
    toolchain = find_toolchain(CXX_COMPILER) if COMPILE in partners else None
    loader = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONHOME") if name in os.environ}
    return {
        **(toolchain.environment if toolchain is not None else {"LC_ALL": "C"}),
        **loader,
        "PYTHONPATH": str(_PACKAGES),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
        **_KEPT_MEMORY,
        "TORCHINDUCTOR_CACHE_DIR": "compiled",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_VEC_ISA_OK": "1",  # the compiler takes what the processor has: asking it takes ten seconds
        "HOME": ".",
    }


def _list_readable(partners: Sequence[str]) -> list[Path]:
    """Python, torch and us; for torch.compile the compiler, and the headers of Python."""
    python = Path(sys.executable)
    paths = [*readable_by_workers(), _PACKAGES, python, python.resolve(), Path(sys.prefix, "pyvenv.cfg")]
    toolchain = find_toolchain(CXX_COMPILER) if COMPILE in partners else None
    if toolchain is not None:
        paths += [*toolchain.readable, Path(sysconfig.get_path("include"))]
        # what torch's compiler starts beside the compiler of C++
        paths += [Path(place).resolve() for place in map(shutil.which, _PROGRAMS) if place is not None]
    return [*paths, *map(Path, _KERNEL_FILES)]


# -- what the process answered


def read_answers(
    request: TorchRequest, lacking: Mapping[str, str], result: CommandResult | CommandFailure
) -> dict[str, TorchComparison]:
    """What was said of each shape set. `lacking`: why partners were not asked for."""
    if isinstance(result, CommandFailure):
        return _withhold_all(request, result.reason)
    silence = _explain_silence(result)
    comparisons = {}
    for name, files in _name_files(request).items():
        answers = _collect_answers([result.files.get(file) for file in files], silence)
        answers.reasons |= lacking
        comparisons[name] = _compare_sides(request.partners, answers)
    return comparisons


def _explain_silence(result: CommandResult) -> str:
    """Why an answer is not there."""
    if result.limit:
        return f"torch was ended at the limit of {result.limit}"
    return f"the process of torch: {' '.join(result.messages.split())[-300:] or 'no answer'}"


def _collect_answers(files: Sequence[bytes | None], silence: str) -> _Answers:
    answers = _Answers()
    for data in files:
        try:
            _add_answer(answers, json.loads(data) if data is not None else {"problem": silence})
        except (ValueError, TypeError, KeyError, AttributeError):
            answers.problem = answers.problem or "the process of torch answers something that is no time"
    return answers


def _add_answer(answers: _Answers, answer: Mapping[str, Any]) -> None:
    if "problem" in answer:
        answers.problem = answers.problem or str(answer["problem"])
        return
    for side, times in answer["times"].items():
        answers.times.setdefault(str(side), []).append([float(time) for time in times])
    answers.reasons |= {str(side): str(reason) for side, reason in answer["reasons"].items()}


def _compare_sides(partners: Sequence[str], answers: _Answers) -> TorchComparison:
    """A figure needs all processes: of those that are missing nobody knows what they would have said."""
    if answers.problem or PLAIN not in answers.times:
        reason = answers.problem or "the process of torch has not timed the plain program"
        return TorchComparison(None, {partner: TorchFigure(reason=reason) for partner in partners})
    try:
        plain = estimate_median(answers.times[PLAIN])
        return TorchComparison(plain, {partner: _make_figure(answers, partner) for partner in partners})
    except ValueError as error:
        return TorchComparison(None, {partner: TorchFigure(reason=str(error)[:300]) for partner in partners})


def _make_figure(answers: _Answers, partner: str) -> TorchFigure:
    processes = answers.times.get(partner, [])
    if partner in answers.reasons or len(processes) != len(answers.times[PLAIN]):
        return TorchFigure(reason=answers.reasons.get(partner) or "some processes have not timed it")
    ratios = [compare_times(plain, times) for plain, times in zip(answers.times[PLAIN], processes, strict=True)]
    return TorchFigure(estimate_median(processes), estimate_median(ratios))
