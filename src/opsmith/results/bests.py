"""The best programs that a run has to give: what it solved, as optimisation rounds left it, with what that gained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from opsmith.records import Experience
from opsmith.results.lineage import Lineage, read_optimised
from opsmith.store import Store


def list_best(store: Store, run: str) -> list[Experience]:
    """A run's solutions in their order, each in the best form that the run gave it."""
    lineages = read_optimised(store, run)
    return [_take_best(solution.experience, lineages) for solution in store.read_experiences(run)]


def _take_best(experience: Experience, lineages: Mapping[str, Lineage]) -> Experience:
    if experience.task.id not in lineages or not lineages[experience.task.id].beams:
        return experience
    best = lineages[experience.task.id].best
    return replace(experience, source=best.source, gain=best.gain)
