"""Peaks of this machine, measured: a C program of ours is compiled, and run for one thread and for all processors, each
time confined. A few seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from opsmith.devices.describe import Device
from opsmith.devices.peaks import Bandwidth, Peaks
from opsmith.errors import OpsmithError
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands
from opsmith.running.compiler import Artefact, CompileOrder, CompileRefusal, run_compiler
from opsmith.running.toolchain import find_toolchain
from opsmith.targets.native.flags import BuildFlags, Isa

SOURCE, PROGRAM = "peaks.c", "peaks"
MOST_THREADS = 64
_CPU_SECONDS = 30  # for each thread


class PeaksError(OpsmithError):
    """The peaks of this machine could not be measured."""


def measure_peaks(device: Device) -> Peaks:
    """Those of this machine, which `device` describes. Raises PeaksError."""
    if device.isa is None:
        raise PeaksError(f"peaks: given a processor of {device.architecture}; expected x86_64 or aarch64")
    program = _build_program(Isa(device.isa))
    processors = min(device.usable_cores or 1, MOST_THREADS)
    alone, *teams = (_measure_team(device, program, threads) for threads in sorted({1, processors}))
    return replace(alone, teams=tuple(teams))


def _measure_team(device: Device, program: bytes, threads: int) -> Peaks:
    lines = _run_program(program, threads).decode("ascii", "replace").splitlines()
    return replace(read_figures(device.digest, lines), threads=threads)


def read_figures(device: str, lines: Iterable[str]) -> Peaks:
    """What the program printed. Raises PeaksError."""
    rows = [line.split() for line in lines]
    try:
        gflops = {dtype: float(figure) for kind, dtype, figure in (row for row in rows if row[0] == "gflops")}
        others = [row for row in rows if row[0] != "gflops"]
        sets = [(int(size), float(read), float(triad)) for _, size, read, triad in others]
        return Peaks(device, gflops, tuple(Bandwidth(*row) for row in sets))
    except (ValueError, IndexError) as error:
        raise PeaksError(f"peaks: the program printed something else than figures: {error}") from None


def _build_program(isa: Isa) -> bytes:
    source = (Path(__file__).parent / SOURCE).read_bytes()
    command = (*BuildFlags(isa).compile_flags, "-pthread", SOURCE, "-o", PROGRAM)
    result = run_compiler(CompileOrder({SOURCE: source}, (command,), PROGRAM))
    if isinstance(result, Artefact):
        return result.data
    reason = (result.limit or result.messages.strip()) if isinstance(result, CompileRefusal) else result.reason
    raise PeaksError(f"peaks: the program could not be compiled: {reason}")


def _run_program(program: bytes, threads: int) -> bytes:
    toolchain = find_toolchain()
    readable = () if toolchain is None else toolchain.readable
    command = [f"./{PROGRAM}", str(threads)]
    order = CommandOrder({PROGRAM: program}, [command], readable=readable, has_processes=False, executes_folder=True)
    result = run_commands(
        order, CommandLimits(cpu_seconds=_CPU_SECONDS * threads, seconds=60.0, threads=4096, cores=threads + 1)
    )
    if isinstance(result, CommandResult) and result.is_ended_well:
        return result.printed
    raise PeaksError(f"peaks: the program did not end well: {_explain_end(result)}")


def _explain_end(result: CommandResult | CommandFailure) -> str:
    if isinstance(result, CommandFailure):
        return result.reason
    return result.limit or f"exit code {result.codes[-1]}: {result.messages.strip()[-200:]}"
