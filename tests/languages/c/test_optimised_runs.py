"""Programs in C are made better on the real device: no cheat is ever the best, and a killed run goes on where it was."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter, defaultdict
from pathlib import Path

from chaos.books import Contents
from chaos.processes import Commands, wait_until
from targets.native.programs import needs_compiler

from languages.c.test_cheats import CHEATS
from opsmith.agents.generation import read_generation_prompt
from opsmith.executors.local import LocalExecutor
from opsmith.learn.loop import improve
from opsmith.measuring.orders import name_measurement
from opsmith.models import Reply, Request
from opsmith.records import TIME, Experience, Outcome, Usage
from opsmith.results.lineage import trace_lineages
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import OPTIMISATION, PROPOSER

pytestmark = needs_compiler
RUNNABLE = [cheat for cheat in CHEATS if cheat.runs_here]


class CheatingModel:
    """A generator that answers with every cheat for its task, one after another."""

    name = "cheater"
    context_window: int | None = None
    is_language_model = False

    def __init__(self) -> None:
        self._left = defaultdict(list)
        for cheat in RUNNABLE:
            self._left[cheat.task.impl or ""].append(cheat.source)

    async def complete(self, request: Request) -> Reply:
        prompt = read_generation_prompt(request.messages)
        assert prompt is not None
        [task] = [plain for plain in self._left if plain.split() == prompt.source.split()]
        source = self._left[task].pop() if self._left[task] else prompt.source
        return Reply((f"```c\n{source}```\n",), Usage(1, 1, 1), self.name, ("stop",))

    async def close(self) -> None:
        """Nothing is open."""


def test_no_cheat_ever_becomes_the_best_program(tmp_path: Path) -> None:
    tasks = list({cheat.task.id: cheat.task for cheat in RUNNABLE}.values())
    settings = Settings(
        samples=1, temperatures=(0.7,), optimise=1, attempts=len(RUNNABLE), fixes=0, analyst="none", measure="screen",
        concurrency=1, workers=1, trial_seconds=5.0,
    )  # fmt: skip
    starts = {task.id: task.impl or "" for task in tasks}
    given = [Experience(task, starts[task.id], 1.0, -1, "import") for task in tasks]
    with LocalExecutor(settings, tasks) as executor, Store.open(tmp_path) as store:
        result = improve(
            tasks, CheatingModel(), settings, store, judge=executor.judge, measurer=executor.measurer, experiences=given
        )
        steps, speeds = store.read_steps(result.run), store.read_speeds(result.run)
        ended = [info for info, solved in store.read_rounds(result.run) if solved is not None]
        lineages = trace_lineages(starts, ended, steps, speeds, (TIME.name,), 1)
    cheats = {cheat.source.strip(): cheat.path.stem for cheat in RUNNABLE}
    tried = {cheats[step.source.strip()]: step for step in steps if step.source and step.source.strip() in cheats}
    assert set(tried) == set(cheats.values())
    gained = {}
    for lineage in lineages.values():
        for step in lineage.steps:
            name = cheats.get((step.row.source or "").strip())
            if name is not None and step.program is not None:
                gained[name] = step.program.gain
    print({name: step.stage.name if step.stage else None for name, step in tried.items()}, gained)
    assert {step.outcome for step in tried.values()} <= {Outcome.REFUSED, Outcome.PASSED}
    assert all(gain <= 1.0 for gain in gained.values()), gained
    assert all(lineage.leader.source == starts[task] for task, lineage in lineages.items())


def test_a_run_killed_ten_times_loses_nothing_and_measures_nothing_twice(tmp_path: Path) -> None:
    options = ("--target", "c", "--model", "tuner", "--analyst", "analyst", "--rounds", 2, "--attempts", 3,
               "--measure", "screen", "--workers", 1, "--json", "--no-report", "--out", "runs")  # fmt: skip
    rng, stages = random.Random(5), []
    with Commands(tmp_path) as commands:
        alive = 0
        for _ in range(10):
            command = commands.start("optimise", "row_sum", *options)
            wait_until(lambda: "round" in command.said or not command.alive)  # noqa: B023  (asked in this turn)
            time.sleep(rng.uniform(0.0, 2.0))
            alive += command.kill()
            stages.append(read_rows(tmp_path / "runs"))
        run = commands.start("optimise", "row_sum", *options).result()["run"]
    final = read_rows(tmp_path / "runs")
    with Store.open(tmp_path / "runs") as store:
        assert store.end_reason(run) is not None
        assert [row.info.id for row in store.list_runs()] == [run]
        keys = [name_measurement(speed.task, speed.report.measurement) for speed in store.read_speeds(run)]
        details = [store.find_sample(run, row.id) for row in store.list_samples(run)]
        planned = sum(info.planned for info, _ in store.read_rounds(run) if info.phase == OPTIMISATION)
    print(f"{alive} of 10 alive when killed; {len(keys)} measurements, {len(details)} samples")
    assert alive >= 3
    assert all(before <= after for before, after in itertools.pairwise([*stages, final])), "what is stored stays"
    assert set(Counter(keys).values()) == {1}
    assert len(details) == planned
    for detail in details:
        assert Counter(call.agent for call in detail.calls)[PROPOSER] == 1
        assert detail.row.outcome is not None


def read_rows(folder: Path) -> Contents:
    """What the store holds of its one run; nothing before there is one."""
    if not folder.exists():
        return frozenset()
    with Store.open(folder) as store:
        runs = store.list_runs()
        return store.read_contents(runs[0].info.id) if runs else frozenset()
