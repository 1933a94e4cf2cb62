"""The runs of an experiment, made one after the other on one store; a run that is there already is found.

The cap on costs is shared: what the experiment's earlier runs cost counts, whenever they were made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.agents.repair import write_findings
from opsmith.api import improve, open_workers
from opsmith.learn.events import OnEvent
from opsmith.models import ChatModel
from opsmith.models.table import get_model, make_models
from opsmith.records import Experience, Task
from opsmith.results.result import RunResult
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.refused import list_functional_rounds, list_refused_programs
from opsmith.store.verdicts import verdict_of
from opsmith.targets import get_target
from opsmith_lab.evaluation.experiment import Experiment
from opsmith_lab.evaluation.plan import PlannedRun, list_start, load_run_tasks
from opsmith_lab.evaluation.showing import ALL_RENAMED, Learned, RenamedModel, make_demonstrations


@dataclass(frozen=True)
class PerformedRun:
    """A run of the experiment, as far as it has come."""

    planned: PlannedRun
    result: RunResult


@dataclass(frozen=True)
class PerformedRuns:
    runs: tuple[PerformedRun, ...]
    stopped: str  # why the rest was not done; "": all runs are finished


def perform_runs(
    experiment: Experiment,
    planned: Sequence[PlannedRun],
    store: Store,
    max_cost: float | None = None,
    on_event: OnEvent | None = None,
) -> PerformedRuns:
    """Every run that is not there yet, until one stops. The same call goes on from there.

    They share workers, unless one has limits of its own: those of each would import torch anew.
    """
    _check_models(planned)
    performed: list[PerformedRun] = []
    spent: dict[str, float] = {}
    if not planned:
        return PerformedRuns((), "")
    with contextlib.closing(open_workers(planned[0].settings)) as pool:
        for run in planned:
            if _lacks_arm(run, performed):
                continue
            remaining = None if max_cost is None else max_cost - sum(spent.values())
            if remaining is not None and remaining <= 0:
                return PerformedRuns(tuple(performed), "max cost")
            settings = _resolve_arms(run, performed).replace(max_cost=remaining)
            tasks, shown = load_run_tasks(settings), list[Experience]()
            model: ChatModel | str = settings.provider.model
            start = list_start(experiment, tasks) if run.is_plain else ()
            if settings.method.from_run is not None:
                right = {kept.experience.task.id for kept in store.read_experiences(settings.method.from_run)}
                tasks = tuple(task for task in tasks if task.id in right)
                if not tasks:  # nothing was solved, so that there is nothing to do
                    continue
            if run.arm.shows and run.arm.learns_from:
                learned = _read_learned(store, tasks, performed, run)
                shown = make_demonstrations(run.arm.shows, learned, tasks)
                if run.arm.shows == ALL_RENAMED:
                    model = RenamedModel(get_model(settings, learned.target), learned.names)
            result = improve(
                tasks,
                model,
                settings,
                store,
                on_event=on_event,
                experiences=shown,
                solutions=start,
                pool=pool if run.settings.place == planned[0].settings.place else None,
            )
            spent[result.run] = result.usage.cost_usd or 0.0
            performed.append(PerformedRun(run, result))
            if not result.finished:
                return PerformedRuns(tuple(performed), result.end)
    return PerformedRuns(tuple(performed), "")


def _read_learned(store: Store, tasks: Sequence[Task], performed: Sequence[PerformedRun], run: PlannedRun) -> Learned:
    """What the run of the arm that this one learns from has left."""
    source = _find_run(performed, run, run.arm.learns_from)
    assert source is not None
    experiences = [kept.experience for kept in store.read_experiences(source)]
    rows = [row for n in list_functional_rounds(store, source) for row in list_refused_programs(store, source, n)]
    texts = store.read_texts(row.program for row in rows)
    refused: dict[str, list[str]] = {}
    findings: dict[str, str] = {}
    for row in rows:
        if row.program in texts:
            refused.setdefault(row.task, []).append(texts[row.program])
            verdict = verdict_of(store, row.body)
            findings[texts[row.program]] = f"refused at {verdict.stage.name}\n{write_findings(verdict)}"
    return Learned(get_target(tasks[0].target), experiences, refused, run.settings.seed, findings)


def _check_models(planned: Sequence[PlannedRun]) -> None:
    """A key that is missing for the last model, or a language for the last arm, is said before the first is asked."""
    by_need = {
        (run.settings.provider, run.settings.optimisation.analyst, run.settings.teamwork, run.settings.target): (
            run.settings
        )
        for run in planned
    }
    for settings in by_need.values():
        make_models(settings, get_target(load_run_tasks(settings)[0].target))


def _resolve_arms(run: PlannedRun, performed: Sequence[PerformedRun]) -> Settings:
    """The settings with runs in place of the arms that they name."""
    return run.settings.replace(**{name: _find_run(performed, run, arm) for name, arm in run.named_arms.items()})


def _lacks_arm(run: PlannedRun, performed: Sequence[PerformedRun]) -> bool:
    """Whether an arm that it names had nothing to do."""
    named = (*run.named_arms.values(), *filter(None, [run.arm.learns_from]))
    return any(_find_run(performed, run, arm) is None for arm in named)


def _find_run(performed: Sequence[PerformedRun], run: PlannedRun, arm: str | None) -> str | None:
    """The id of an arm's run with the same model and seed; None: there is none."""
    place = (arm, run.series, run.settings.seed)
    return next(
        (
            earlier.result.run
            for earlier in performed
            if (earlier.planned.arm.name, earlier.planned.series, earlier.planned.settings.seed) == place
        ),
        None,
    )
