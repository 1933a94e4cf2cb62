"""What cachegrind counts of one call: instructions, accesses and misses by line of the source.

The program is executed, confined, by valgrind, which simulates two levels of cache. It knows no AVX-512: a program for
a processor that has it is built for x86-64-v3. Tens of times as slow as the program itself, so that it must be named.
"""

from __future__ import annotations

import platform
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import choose_largest_set, choose_timed_sets
from opsmith.profiling.profiler import ProfileSubject, ProfilingError, make_report
from opsmith.records import ProfileReport, Task
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, run_commands
from opsmith.targets import get_target
from opsmith.targets.programs import StandaloneProgram
from opsmith.targets.protocols import StandingAlone, Timed

MOST_LINES = 15  # with most instructions first
_FOLDERS = ("/usr/libexec/valgrind", "/usr/lib/valgrind", "/usr/local/libexec/valgrind")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", "/proc/self/maps", "/proc/self/cmdline")
_PROGRAM, _CALLS, _COUNTS = "program", "calls.bin", "counts.txt"
_LIMITS = CommandLimits(cpu_seconds=110, seconds=120.0, memory=None, resident=4 << 30, file_bytes=64 << 20)
_HEADING = """\
What cachegrind counts of one call at {sizes}, built for {isa}: the lines with most instructions first.
{own} instructions are of the program's own lines; the process executes {total}, of which functions of libraries and its
start are the others. "instructions": that the processor executes for the line. "accesses": numbers or vectors read and
written. "near misses": accesses that the nearest cache ({near}) did not hold; "far misses": that no cache held.
"""


class CachegrindProfiler:
    """Fits `Profiler`."""

    name = "cachegrind"
    is_quick = False

    def fits_task(self, task: Task) -> bool:
        target = get_target(task.target)
        return isinstance(target, StandingAlone) and isinstance(target, Timed)

    def explain_lack(self, task: Task) -> str:
        if find_tool() is None:
            return f"profile {self.name}: valgrind is not installed; try: install Debian's package valgrind"
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        target = get_target(subject.task.target)
        assert isinstance(target, StandingAlone)
        sizes, inputs = _draw_inputs(subject.task)
        program = target.build_standalone(subject.task, subject.source, inputs)
        counts = _run_tool(program)
        by_line = read_counts(counts, program.source_name)
        own, total = sum(row["Ir"] for row in by_line.values()), re.search(r"^summary: (\d+)", counts, re.MULTILINE)
        near = re.search(r"^desc: D1 cache:\s+(.*)$", counts, re.MULTILINE)
        place = ", ".join(f"{name}={size}" for name, size in sizes.items())
        heading = _HEADING.format(
            sizes=place,
            isa=program.isa,
            own=own,
            total=total[1] if total else "more",
            near=near[1] if near else "the first",
        )
        yield make_report(self.name, "\n".join([heading, *_describe_lines(by_line, subject.source), ""]))


def find_tool() -> Path | None:
    """The program that simulates; None: it is not installed, or not for this processor."""
    machine = _MACHINES.get(platform.machine(), "")
    if shutil.which("valgrind") is None:
        return None
    places = (Path(folder) / f"cachegrind-{machine}-linux" for folder in _FOLDERS)
    return next((place for place in places if place.is_file()), None)


def _draw_inputs(task: Task) -> tuple[Mapping[str, int], bytes]:
    """The largest sizes that the task is timed at, and inputs of them, drawn by a worker. Raises OpsmithError."""
    sizes = choose_timed_sets(task)[choose_largest_set(task)]
    with TimingRoom() as room, room.asking_worker(task, task.target) as worker:
        return sizes, worker.draw_inputs(sizes)


def _run_tool(program: StandaloneProgram) -> str:
    """What it counted, as it writes it. Raises ProfilingError."""
    tool, launcher = find_tool(), shutil.which("valgrind")
    if tool is None or launcher is None:
        raise ProfilingError("valgrind is not installed")
    options = ("--cache-sim=yes", f"--cachegrind-out-file={_COUNTS}", "--vgdb=no", "-q")
    order = CommandOrder(
        {_PROGRAM: program.executable, _CALLS: program.stdin},
        [[str(tool), "--tool=cachegrind", *options, f"./{_PROGRAM}"]],
        [_COUNTS],
        {"VALGRIND_LIB": str(tool.parent), "VALGRIND_LAUNCHER": launcher},
        [tool.parent, *(Path(name) for name in _SYSTEM if name.startswith("/proc") or Path(name).exists())],
        stdin=_CALLS,
        has_processes=False,
        executes_folder=True,
    )
    result = run_commands(order, _LIMITS)
    if isinstance(result, CommandFailure):
        raise ProfilingError(f"valgrind: {result.reason}")
    if not result.is_ended_well or _COUNTS not in result.files:
        raise ProfilingError(f"valgrind: {result.limit or ' '.join(result.messages.split())[-300:]}")
    return result.files[_COUNTS].decode(errors="replace")


def read_counts(text: str, source_name: str) -> dict[int, Counter[str]]:
    """The counts of each line of the source, by the names of events."""
    events: list[str] = []
    by_line: dict[int, Counter[str]] = {}
    is_own = False
    for row in text.splitlines():
        if row.startswith("events:"):
            events = row.split()[1:]
        elif row.startswith(("fl=", "fi=", "fe=")):
            is_own = row.endswith(source_name) and row.rpartition("/")[2].rpartition("=")[2] == source_name
        elif is_own and row[:1].isdigit():
            line, *numbers = map(int, row.split())
            by_line.setdefault(line, Counter()).update(dict(zip(events, numbers, strict=False)))
    return by_line


def _describe_lines(by_line: Mapping[int, Counter[str]], source: str) -> Iterator[str]:
    lines: Sequence[str] = source.splitlines()
    for number, row in sorted(by_line.items(), key=lambda pair: -pair[1]["Ir"])[:MOST_LINES]:
        text = lines[number - 1].strip()[:100] if 0 < number <= len(lines) else ""
        near, far = row["D1mr"] + row["D1mw"], row["DLmr"] + row["DLmw"]
        yield f"line {number}: {text}"
        yield (f"  {row['Ir']} instructions, {row['Dr'] + row['Dw']} accesses, {near} near misses, {far} far misses")
