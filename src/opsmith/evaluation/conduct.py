"""An experiment from its file to its pages: plan, perform, study, analyse, write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from opsmith.benchmarks import load_tasks
from opsmith.evaluation import files
from opsmith.evaluation.analyses import ANALYSES
from opsmith.evaluation.experiment import Experiment
from opsmith.evaluation.index import write_index
from opsmith.evaluation.marks import mark
from opsmith.evaluation.page import Made
from opsmith.evaluation.perform import perform
from opsmith.evaluation.plan import Asked, command, plan, tasks_of
from opsmith.evaluation.study import study_of
from opsmith.learn.events import OnEvent
from opsmith.store import Store


@dataclass(frozen=True)
class Conducted:
    """What is told of an experiment that was run."""

    name: str
    stopped: str  # "": it is complete
    cost: float  # USD of its runs, as far as known
    lines: tuple[str, ...]
    data: dict[str, Any]


def conduct(
    experiment: Experiment,
    asked: Asked,
    store: Store,
    results: Path,
    max_cost: float | None = None,
    on_event: OnEvent | None = None,
) -> Conducted:
    """Run what is not there yet, and write the result as far as it has come."""
    tasks = load_tasks(tasks_of(experiment, asked))
    performed = perform(plan(experiment, asked), tasks, store, max_cost, on_event)
    if not performed.done:  # the money was spent by other experiments: what was written before stays
        return Conducted(experiment.name, performed.stopped, 0.0, (f"{experiment.name}: nothing was asked",), {})
    study = study_of(experiment, store, tasks, performed.done, performed.stopped)
    analysis = ANALYSES[experiment.analysis](study)
    made = Made(command(experiment, asked), date.today().isoformat(), metadata.version("opsmith"))
    written = files.write(results, study, analysis, made)
    write_index(results)
    runs = {item.result.run: item.result.usage.cost_usd or 0.0 for item in performed.done}
    lines = tuple(_lines(experiment.name, mark(study), analysis.headline, written))
    return Conducted(
        experiment.name, performed.stopped, sum(runs.values()), lines, files.as_json(study, analysis, made)
    )


def _lines(name: str, said: str, headline: str, written: tuple[Path, ...]) -> Iterator[str]:
    yield f"{name}: {headline}"
    if said:
        yield f"  {said}"
    yield f"  {', '.join(map(str, written))}"
