"""What llvm-mca says of the innermost loops of the machine code: cycles of a round, and what a round waits for.

It simulates a processor that it has a model of, which is seldom the one at hand: what it says ranks loops and programs.
It is confined, since it reads what a compiler made of a text of others.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from opsmith.profiling.assembly import MachineLoop, list_innermost_loops
from opsmith.profiling.profiler import ProfileSubject, ProfilingError, make_report
from opsmith.records import ProfileReport, Task
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, run_commands
from opsmith.targets import get_target
from opsmith.targets.protocols import Assembled

PROGRAM = "llvm-mca"
MOST_LOOPS = 8  # those with most instructions first
ROUNDS = 100  # that are simulated
_MODELS = (  # of an instruction set: the narrowest processor that llvm-mca 14 has a model of, for all that is in it
    ("x86-64-v4", "skylake-avx512"),
    ("x86-64", "skylake"),
    ("armv8", "neoverse-n1"),
)
_FILE = "loops.s"
_LIMITS = CommandLimits(memory=8 << 30, seconds=30.0, printed_bytes=1 << 20)
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache")
_MOST_MNEMONICS = 8
_HEADING = """\
What llvm-mca says of the innermost loops of the machine code, the longest first, by a model of the processor {model}
({rounds} rounds are simulated, all data in the nearest cache). It is not this machine: compare loops, not times.
"cycles a round": how long a round takes, one after the other. "at least": what it would take if no instruction waited
for another's result, only for free units. "waits for results": in that part of the cycles an instruction waited for the
result of another one (a chain, such as a sum with one accumulator); "waits for units": for a unit that is busy.
"""


class McaProfiler:
    """Fits `Profiler`."""

    name = "mca"
    is_quick = True

    def fits_task(self, task: Task) -> bool:
        return isinstance(get_target(task.target), Assembled)

    def explain_lack(self, task: Task) -> str:
        if shutil.which(PROGRAM) is None:
            return f"profile {self.name}: {PROGRAM} is not installed; try: install Debian's package llvm"
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        """One text; nothing for a program without loops."""
        target = get_target(subject.task.target)
        assert isinstance(target, Assembled)
        assembly, isa = target.write_assembly(subject.task, subject.source)
        loops = sorted(list_innermost_loops(assembly), key=lambda loop: -len(loop.instructions))[:MOST_LOOPS]
        if not loops:
            return
        model = _choose_model(isa)
        summaries = _split_summaries(_run_simulator(loops, model))
        rows = [_HEADING.format(model=model, rounds=ROUNDS)]
        for number, loop in enumerate(loops):
            rows += _describe_loop(loop, summaries.get(number, ""))
        yield make_report(self.name, "\n".join(rows) + "\n")


def _choose_model(isa: str) -> str:
    """Raises ProfilingError."""
    model = next((model for beginning, model in _MODELS if isa.startswith(beginning)), None)
    if model is None:
        raise ProfilingError(f"{PROGRAM}: no model of a processor is known for the instruction set {isa}")
    return model


def _run_simulator(loops: Sequence[MachineLoop], model: str) -> str:
    """What it prints. Raises ProfilingError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise ProfilingError(f"{PROGRAM} is not installed")
    regions = [
        "\n".join([f"# LLVM-MCA-BEGIN {number}", *loop.instructions, "# LLVM-MCA-END", ""])
        for number, loop in enumerate(loops)
    ]
    options = (f"-mcpu={model}", f"-iterations={ROUNDS}", "-bottleneck-analysis")
    quiet = ("-instruction-info=0", "-resource-pressure=0")
    path = Path(program).resolve()
    readable = [path, *(Path(name) for name in _SYSTEM if Path(name).exists())]
    order = CommandOrder({_FILE: "".join(regions).encode()}, [[str(path), *options, *quiet, _FILE]], readable=readable)
    result = run_commands(order, _LIMITS)
    if isinstance(result, CommandFailure):
        raise ProfilingError(f"{PROGRAM}: {result.reason}")
    if not result.is_ended_well:
        raise ProfilingError(f"{PROGRAM}: {result.limit or ' '.join(result.messages.split())[:300]}")
    return result.printed.decode(errors="replace")


def _split_summaries(text: str) -> dict[int, str]:
    """What is said of each region, by its number."""
    pieces = re.split(r"^\[\d+\] Code Region - (\d+)$", text, flags=re.MULTILINE)
    return {int(number): body for number, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def _describe_loop(loop: MachineLoop, summary: str) -> Iterator[str]:
    lines = (
        f"line {loop.first_line}" if loop.first_line == loop.last_line else f"lines {loop.first_line}-{loop.last_line}"
    )
    counts = Counter(loop.mnemonics).most_common(_MOST_MNEMONICS)
    names = ", ".join(name if count == 1 else f"{name} x {count}" for name, count in counts)
    yield f"{lines}: {len(loop.instructions)} instructions a round ({names})"
    cycles, least = _find_figure(r"Total Cycles:\s+(\d+)", summary), _find_figure(r"RThroughput:\s+([\d.]+)", summary)
    if cycles is None or least is None:
        yield "  nothing is said of it"
        return
    yield f"  {cycles / ROUNDS:.1f} cycles a round; at least {least:.1f}"
    waits = _find_figure(r"Data Dependencies:\s+\[ ([\d.]+)%", summary)
    units = _find_figure(r"Resource Pressure\s+\[ ([\d.]+)%", summary)
    if waits is None or units is None:
        yield "  it waits neither for results nor for units"
    else:
        yield f"  waits for results in {waits:.0f} % of the cycles, for units in {units:.0f} %"


def _find_figure(pattern: str, text: str) -> float | None:
    match = re.search(pattern, text)
    return float(match[1]) if match else None
