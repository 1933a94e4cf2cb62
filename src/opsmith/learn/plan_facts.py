"""The plan book of a run as its store has it: the facts that plans follow from, and the trees of its tasks."""

from __future__ import annotations

from opsmith.learn.plans import PlanFacts, PlanForest, grow_forest
from opsmith.records import Boundary
from opsmith.settings import Planning
from opsmith.store import Store
from opsmith.store.joins import list_joins
from opsmith.store.rows import FUNCTIONAL, NOBODY


def read_facts(store: Store, run: str) -> PlanFacts:
    """All that decides on a run's plans."""
    charges, joins = store.read_charges(run), {join.sample for join in list_joins(store, run)}
    experiences = store.read_experiences(run, with_children=True)
    return PlanFacts(
        plans=tuple(store.read_plans(run)),
        rounds=tuple(
            (info.number, frozenset(info.attempted))
            for info, solved in store.read_rounds(run, with_children=True)
            if solved is not None and info.phase == FUNCTIONAL
        ),
        solved=frozenset(solution.experience.task.digest for solution in experiences),
        joined=frozenset(solution.experience.task.digest for solution in experiences if solution.sample in joins),
        exhausted=frozenset(task for _, task, whom in charges if whom == NOBODY),
        faulty=frozenset(task for _, task, whom in charges if whom == Boundary.TASK),
    )


def read_forest(store: Store, run: str) -> PlanForest | None:
    """The trees of a run's tasks, as its own settings plan them; None for a run without plans."""
    info = store.read_info(run)
    if info is None or not store.has_plans(run):
        return None
    facts = read_facts(store, run)
    own = {name: info.settings[name] for name in Planning.model_fields if name in info.settings}
    return grow_forest(store.read_tasks(run), facts, Planning(**own))
