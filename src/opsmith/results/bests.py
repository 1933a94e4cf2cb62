"""The best programs that a run has to give: what it solved, as optimisation rounds left it, with what that gained."""

from __future__ import annotations

from dataclasses import replace

from opsmith.measuring.objectives import FRONT, TIME, choose_figures
from opsmith.records import Experience
from opsmith.results.lineage import Lineage, trace_lineages
from opsmith.store import Store


def list_best(store: Store, run: str) -> list[Experience]:
    """The experiences of a run in their order; of an optimised task the best program, and its gain over the first."""
    experiences = [kept.experience for kept in store.read_experiences(run)]
    if store.find_optimisation(run) is None:
        return experiences
    lineages = trace_run(store, run, read_objective(store, run))
    return [_improve_experience(experience, lineages.get(experience.task.id)) for experience in experiences]


def _improve_experience(experience: Experience, lineage: Lineage | None) -> Experience:
    if lineage is None or not lineage.beams or lineage.start.source != experience.source:
        return experience
    return replace(experience, source=lineage.best.source, gain=lineage.best.gain)


def read_objective(store: Store, run: str) -> str:
    """What the optimisation rounds of a run were for."""
    return str(store.summarise_run(run).info.settings.get("objective", TIME))


def trace_run(store: Store, run: str, objective: str) -> dict[str, Lineage]:
    """The lineages of a run by the figures of an objective; without a step that has them where it had another one."""
    tasks = {task.id: task for task in store.read_tasks(run)}
    if not tasks:
        return {}
    figures = (objective,) if objective != FRONT else choose_figures(next(iter(tasks.values())), FRONT)
    starts = {
        kept.experience.task.id: kept.experience.source
        for kept in store.read_experiences(run)
        if kept.experience.task.id in tasks
    }
    ended = [info for info, solved in store.read_rounds(run) if solved is not None]
    beam = int(store.summarise_run(run).info.settings.get("beam", 1))
    return trace_lineages(starts, ended, store.read_steps(run), store.read_speeds(run), figures, beam)
