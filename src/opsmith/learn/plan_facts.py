"""The plan book of a run as its store has it: the facts that plans follow from, and the trees of its tasks."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.learn.plans import PlanFacts, PlanForest, grow_forest
from opsmith.records import Boundary
from opsmith.settings import Planning
from opsmith.store import Store
from opsmith.store.proposers import list_exhausted
from opsmith.store.queries import KeptExperience
from opsmith.store.rows import FUNCTIONAL, RoundInfo


def read_facts(store: Store, run: str, ended: Sequence[RoundInfo], solutions: Sequence[KeptExperience]) -> PlanFacts:
    """All that decides on plans. `ended`: functional rounds; `solutions`: those of children too."""
    numbers = {info.number for info in ended}
    charged = [(task, whom) for number, task, whom in store.read_charges(run) if number in numbers]
    plans = tuple(store.read_plans(run))
    return PlanFacts(
        plans,
        tuple((info.number, frozenset(info.attempted)) for info in ended),
        frozenset(solution.experience.task.digest for solution in solutions),
        store.read_joined(run) if plans else frozenset(),
        list_exhausted(store, run, numbers),
        frozenset(task for task, whom in charged if whom == Boundary.TASK.value),
        store.read_compared(run, numbers) if plans else frozenset(),
        store.read_tried_joins(run, numbers) if plans else frozenset(),
    )


def read_forest(store: Store, run: str) -> PlanForest | None:
    """The trees of a run's tasks, as its own settings plan them; None for a run without plans."""
    info = store.read_info(run)
    if info is None or not store.has_plans(run):
        return None
    rounds = store.read_rounds(run, with_children=True)
    ended = [of_round for of_round, solved in rounds if solved is not None and of_round.phase == FUNCTIONAL]
    facts = read_facts(store, run, ended, store.read_experiences(run, with_children=True))
    own = {name: info.settings[name] for name in Planning.model_fields if name in info.settings}
    return grow_forest(store.read_tasks(run), facts, Planning(**own))
