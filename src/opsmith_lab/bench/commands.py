"""How long commands take from the shell, each beside a bare `import torch`, in turns, so that a slow moment hits both.

A command is started as a user starts it: in a process of its own, in a folder with a store of `RUNS` runs. The first
pair of each is thrown away: it reads files that the later ones find in memory. Intervals are of medians, by order
statistics; below six pairs they are the whole range, which covers less than 95 %.
"""

from __future__ import annotations

import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from opsmith.errors import OpsmithError
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith_lab.bench.growth.questions import make_info, make_settings
from opsmith_lab.filling import fill_run

RUNS = 50  # of two tasks each, in the store that is listed
TASK = "bmm_0"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("tasks",),
    ("models",),
    ("runs",),
    ("codegen", TASK),
    ("verify", TASK),
    ("cost", TASK),
)


@dataclass(frozen=True)
class CommandTimes:
    """Wall times of one command, in seconds; each `low` and `high`: the 95 % interval of the median before them."""

    command: str
    pairs: int
    median: float
    low: float
    high: float
    over: float  # of the differences to the `import torch` beside it
    over_low: float
    over_high: float
    cpu: float  # the median of the processor's seconds, of its workers too: less moved by what else is running
    over_cpu: float  # of the differences


def time_commands(
    pairs: int,
    tell: Callable[[str], None],
    commands: Sequence[tuple[str, ...]] = COMMANDS,
    code: str = "import torch",
) -> list[CommandTimes]:
    """`code`: what is run in a bare Python beside each. Raises OpsmithError for a command that fails."""
    with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
        _fill_store(Path(folder) / "runs")
        return [_time_command(command, pairs, folder, code, tell) for command in commands]


def bracket_median(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics that covers the median with at least 95 %; else the least and the largest.

    >>> bracket_median([3.0, 1.0, 2.0]), bracket_median(list(map(float, range(1, 11))))
    ((1.0, 3.0), (2.0, 9.0))
    """
    ranked, count = sorted(values), len(values)
    tails = accumulate(math.comb(count, hits) / 2**count for hits in range(count))
    rank = max(0, sum(tail <= 0.025 for tail in tails) - 1)
    return ranked[rank], ranked[-1 - rank]


def _fill_store(folder: Path) -> None:
    tasks = load_tasks((TASK, "gemm_0"))
    with Store.open(folder) as store:
        for seed in range(RUNS):
            fill_run(store, make_info(tasks, make_settings(1, seed)), tasks, 1)


def _time_command(
    command: tuple[str, ...], pairs: int, folder: str, code: str, tell: Callable[[str], None]
) -> CommandTimes:
    words, times, over = " ".join(command), list[_Spent](), list[_Spent]()
    for number in range(pairs + 1):
        tell(f"opsmith {words}: {number} of {pairs}")
        bare = _time_process(("-c", code), folder)
        times.append(_time_process(("-m", "opsmith", *command), folder))
        over.append(_Spent(times[-1].wall - bare.wall, times[-1].cpu - bare.cpu))
    walls, differences = [spent.wall for spent in times[1:]], [spent.wall for spent in over[1:]]
    return CommandTimes(
        words,
        pairs,
        statistics.median(walls),
        *bracket_median(walls),
        statistics.median(differences),
        *bracket_median(differences),
        statistics.median(spent.cpu for spent in times[1:]),
        statistics.median(spent.cpu for spent in over[1:]),
    )


class _Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def _time_process(arguments: Sequence[str], folder: str) -> _Spent:
    before, begun = _sum_cpu(), time.perf_counter()
    process = subprocess.run(
        [sys.executable, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    spent = _Spent(time.perf_counter() - begun, _sum_cpu() - before)
    if process.returncode:
        raise OpsmithError(f"bench commands: {' '.join(arguments)} ended with {process.returncode}: {process.stderr}")
    return spent


def _sum_cpu() -> float:
    """Of all processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
