"""Searches side by side, at equal numbers of builds: each tunes a kernel at one size.

What came of it is measured at all sizes beside the plain program and torch. Both are kept line by line, from which an
interrupted table goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from opsmith.api import improve
from opsmith.errors import UsageError
from opsmith.judging.judge import Solution
from opsmith.measuring.intervals import Interval, chain_ratios
from opsmith.models.table import get_model
from opsmith.problems.files.reading import LEAST_BENCH
from opsmith.records import Task, to_json
from opsmith.results.optimisation import read_optimisation
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.bench.kernel_speeds import KernelSpeed, SpeedTable

SEARCHES = {"tuner": "c", "metaschedule": "tvm", "templates": "tvm"}  # by model, the language that it writes
_ROWS = tuple((m, n) for n in (256, 509, 96, 1000, 2048) for m in (64, 127))
SIZES: dict[str, Sequence[Sequence[int]]] = {  # ten of each kernel, odd and uncommon ones among them
    "gemm_at": (
        *((64, 48, 72), (127, 131, 113), (192, 208, 192), (31, 37, 29), (32, 32, 32), (128, 128, 128)),
        *((97, 64, 80), (16, 512, 64), (320, 24, 200), (256, 256, 256)),
    ),
    "softmax": _ROWS,
    "layer_norm": _ROWS,
}


@dataclass(frozen=True)
class SizedKernel:
    """What a search came to at one size of a kernel."""

    search: str
    kernel: str
    tuned_at: str  # sizes, with `x` between them
    builds: int  # samples that it was allowed
    seconds: float  # of the search, judging and measuring among them
    source: str | None  # None: nothing was shown to be faster than the plain program


@dataclass(frozen=True)
class TunedRow:
    """How fast it is at one size."""

    tuned: SizedKernel
    speed: KernelSpeed
    over_eager: Interval | None  # how many times as fast as torch eager; both are measured beside the plain program


@dataclass
class ScheduleTable:
    """Tunes and measures; problem files, programs and what was tuned lie in `folder`."""

    store: Store
    table: SpeedTable
    folder: Path
    rounds: int
    attempts: int
    seed: int = 0

    def list_rows(
        self, searches: Sequence[str], kernels: Sequence[str], count: int, tell: Callable[[str], None]
    ) -> Iterator[TunedRow]:
        """SizedKernel at each of the first `count` sizes of a kernel, measured at all of these. Raises UsageError."""
        for search in searches:
            if search not in SEARCHES:
                raise UsageError(f"search {search!r}: expected one of {', '.join(SEARCHES)}")
            get_model(Settings(model=search, target=SEARCHES[search]), get_target(SEARCHES[search]))
        if unknown := set(kernels) - set(SIZES):
            raise UsageError(f"kernel {min(unknown)!r}: expected one of {', '.join(SIZES)}")
        for kernel in kernels:
            for size in SIZES[kernel][:count]:
                for search in searches:
                    tell(f"{kernel} at {_name_size(size)}: {search}")
                    tuned = self._recall(search, kernel, size) or self._tune(search, kernel, size)
                    yield from self._measure(tuned, size, SIZES[kernel][:count], tell)

    @property
    def _kept(self) -> Path:
        return self.folder / "tuned.jsonl"

    def _recall(self, search: str, kernel: str, size: Sequence[int]) -> SizedKernel | None:
        """What was tuned before, at the same number of builds."""
        asking = [search, kernel, _name_size(size), self.rounds * self.attempts]
        lines = self._kept.read_text("utf-8").splitlines() if self._kept.exists() else []
        passed = (SizedKernel(**json.loads(line)) for line in lines if line.endswith("}"))
        return next((each for each in passed if [each.search, each.kernel, each.tuned_at, each.builds] == asking), None)

    def _tune(self, search: str, kernel: str, size: Sequence[int]) -> SizedKernel:
        begin, task = time.monotonic(), self._load_task(kernel, SEARCHES[search], size, [size])
        settings = Settings(
            tasks=(task.id,),
            target=task.target,
            model=search,
            optimise=self.rounds,
            attempts=self.attempts,
            fixes=0,
            seed=self.seed,
            temperatures=(0.7,),
            memory=0,
            example_pair=False,
        )
        run = improve([task], search, settings, self.store, solutions=[Solution(task, task.impl or "")]).run
        passed, source = read_optimisation(self.store, run), None
        for each in passed.tasks if passed is not None else ():
            source = next((step.row.source for step in each.steps if step.row.candidate == each.best), source)
        builds, seconds = self.rounds * self.attempts, time.monotonic() - begin
        tuned = SizedKernel(search, kernel, _name_size(size), builds, seconds, source)
        with self._kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_json(tuned)) + "\n")
        return tuned

    def _measure(
        self, tuned: SizedKernel, size: Sequence[int], sizes: Sequence[Sequence[int]], tell: Callable[[str], None]
    ) -> Iterator[TunedRow]:
        task = self._load_task(tuned.kernel, SEARCHES[tuned.search], size, sizes)
        programs = self.folder / "programs" / tuned.search / tuned.tuned_at
        programs.mkdir(parents=True, exist_ok=True)
        if tuned.source is not None:
            (programs / f"{task.id}.txt").write_text(tuned.source, "utf-8")
        self.table.programs = programs
        for speed in (row for row in self.table.measure_tasks([task], tell).rows if row.shape_set.startswith("at_")):
            own, torch = speed.program_ratio, speed.eager_ratio
            yield TunedRow(tuned, speed, chain_ratios(own, torch.invert()) if own and torch else None)

    def _load_task(self, kernel: str, language: str, size: Sequence[int], timed: Sequence[Sequence[int]]) -> Task:
        """The suite's problem, stated at a size and timed at some."""
        (task,) = load_tasks((kernel,), language)
        problem = yaml.safe_load(Path(task.path).read_text("utf-8"))
        names = list(problem["dims"])
        problem["dims"] = dict(zip(names, size, strict=True))
        named = [(f"at_{_name_size(each)}", each) for each in timed]
        named += [(f"again_{number}", timed[0]) for number in range(LEAST_BENCH - len(timed))]  # a file states so many
        problem["bench"] = {name: dict(zip(names, each, strict=True)) for name, each in named}
        folder = self.folder / language / f"{_name_size(size)}-{len(timed)}"
        plain = folder / "plain" / f"{kernel}.{language}"
        plain.parent.mkdir(parents=True, exist_ok=True)
        plain.write_text(task.impl or "", "utf-8")
        path = folder / f"{kernel}.yaml"
        path.write_text(yaml.safe_dump(problem, sort_keys=False), "utf-8")
        (stated,) = load_tasks((str(path),), language)
        return stated


def _name_size(size: Sequence[int]) -> str:
    return "x".join(map(str, size))
