"""The program that leaves after an optimisation is the one that the full grade says to be faster, at every door."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from speed_store import make_measurement
from targets.native.programs import needs_compiler

from opsmith.executors.local import LocalExecutor
from opsmith.export.flashinfer import export_traces
from opsmith.export.library import export_library
from opsmith.export.torch_modules import export_torch_modules
from opsmith.judging.pool import Pool
from opsmith.learn.loop import improve
from opsmith.measuring.claims import Claim
from opsmith.measuring.measure import choose_timed_sets
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.models import Reply, Request
from opsmith.records import Candidate, Experience, Task, Usage
from opsmith.results.bests import list_best
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.suites import load_task

pytestmark = needs_compiler
TASK = load_task("row_sum", "c")
LOOP = "sum += x[m * N + n];"
NAMES = ("unpublishable", "slower-at-odd", "true", "slow")
PROGRAMS = {name: (TASK.impl or "").replace(LOOP, LOOP + " sum += 0.0f;" * at) for at, name in enumerate(NAMES, 1)}
SCREENED = {"unpublishable": 4.0, "slower-at-odd": 3.0, "true": 2.0, "slow": 1.2}
GRADED = {"true": {"small": 1.5, "odd": 1.5, "large": 1.5}, "slower-at-odd": {"small": 3.0, "odd": 0.3, "large": 3.0}}


class ScriptedModel:
    """A generator that answers with one program after another."""

    name = "scripted"
    context_window: int | None = None
    is_language_model = False

    def __init__(self) -> None:
        self._left = [*PROGRAMS.values()]

    async def complete(self, request: Request) -> Reply:
        return Reply((f"```c\n{self._left.pop()}```\n",), Usage(1, 1, 1), self.name, ("stop",))

    async def close(self) -> None:
        """Nothing is open."""


class ScriptedDevice:
    """Screens that flatter, and a full grade that does not."""

    def __init__(self) -> None:
        self.graded: list[str] = []
        self.screened: dict[str, set[str]] = defaultdict(set)

    def explain_lack(self, task: Task) -> str:
        return ""

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        (name,) = [name for name, source in PROGRAMS.items() if source.split() == order.source.split()]
        is_full = order.grade is MeasuringGrade.FULL
        self.graded += [name] * is_full
        for shape_set in order.shape_sets or choose_timed_sets(order.task):
            ratio = GRADED.get(name, {}).get(shape_set) if is_full else SCREENED[name]
            claim = Claim.SLOWER if ratio is not None and ratio < 1 else Claim.FASTER
            reason = "" if ratio else "the clocks contradict each other"
            time = 1.0 if ratio else None
            program = Candidate(order.source).id
            report = make_measurement(
                program, shape_set, time, ratio, order.grade, claim if is_full and ratio else None, reason
            )
            if not is_full:
                self.screened[name].add(shape_set)
            yield SpeedReport(replace(report, sought_partner="plain" if reason else ""), None)


def test_what_the_full_grade_denies_does_not_leave_and_what_it_shows_does(tmp_path: Path) -> None:
    settings = Settings(
        samples=1, temperatures=(0.7,), optimise=1, attempts=len(NAMES), fixes=0, analyst="none", profiles=("none",),
        concurrency=1, workers=1,
    )  # fmt: skip
    device, given = ScriptedDevice(), [Experience(TASK, TASK.impl or "", 1.0, -1, "import")]
    with LocalExecutor(settings, [TASK]) as executor, Store.open(tmp_path / "runs") as store, Pool(1) as pool:
        run = improve(
            [TASK], ScriptedModel(), settings, store, judge=executor.judge, measurer=device, experiences=given
        ).run
        assert {name: len(sizes) for name, sizes in device.screened.items()} == dict.fromkeys(NAMES, 3)
        assert device.graded == ["unpublishable", "slower-at-odd", "true"]
        (best,) = list_best(store, run)
        assert best.experience.source.split() == PROGRAMS["true"].split()
        export_library(store, run, tmp_path / "library", None, pool)
        export_torch_modules(store, run, tmp_path / "modules", pool)
        export_traces(store, run, tmp_path / "traces", pool)
    texts = [path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".c", ".py", ".json", ".jsonl")]
    doors = [text for text in texts if LOOP in text or LOOP in text.replace("\\n", "\n")]
    assert len(doors) >= 3
    assert {text.count("sum += 0.0f;") for text in doors} == {NAMES.index("true") + 1}
    assert (
        "row_sum` is better than the program that the run began with by a factor of 1.500"
        in (tmp_path / "library" / "README.md").read_text()
    )
