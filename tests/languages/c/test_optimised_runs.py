"""Programs in C are made better on the real device: no cheat is ever the best, and a killed run goes on where it was."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from targets.native.programs import needs_compiler

from languages.c.test_cheats import CHEATS
from opsmith.agents.generation import read_generation_prompt
from opsmith.executors.local import LocalExecutor
from opsmith.learn.loop import improve
from opsmith.measuring.objectives import TIME
from opsmith.models import Reply, Request
from opsmith.records import Experience, Outcome, Usage
from opsmith.results.lineage import trace_lineages
from opsmith.settings import Settings
from opsmith.store import Store

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
        lineages = trace_lineages(starts, ended, steps, speeds, (TIME,), 1)
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
    assert all(lineage.best.source == starts[task] for task, lineage in lineages.items())
