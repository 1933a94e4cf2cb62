"""What a generator is told beside program and suggestion: the user's material, memory of other tasks, a reference.

Read once for a session; what is chosen for a sample depends on its task, its round and the rounds that have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opsmith.agents.generation import GeneratorBrief
from opsmith.errors import UsageError
from opsmith.learn.material import read_material
from opsmith.learn.references import look_up_references
from opsmith.learn.text_rules import refuse_text
from opsmith.records import Suggestion, Task, Verdict
from opsmith.results.lineage import Lineage, read_objective, read_optimised
from opsmith.results.memory import RememberedChange, choose_pairs, list_changes
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.targets import Target
from opsmith.targets.protocols import Improvable


class BriefSource:
    """Makes the generator's briefs of a run. Raises UsageError and TaskError for files and places that are none, and
    for a language that cannot be asked to make a program better."""

    def __init__(self, settings: Settings, target: Target, store: Store, tasks: Sequence[Task]) -> None:
        if not isinstance(target, Improvable):
            raise UsageError(f"optimise: target {target.name!r} has no prompt for making right programs better")
        self._settings = settings
        self._target = target
        self._material = read_material(settings.generation)
        self._tasks = {task.id: task for task in tasks}
        self._references = look_up_references(settings.generation.reference, tasks, store)
        self._earlier = [
            change
            for name in settings.generation.memory_from
            for change in read_changes(store, store.find_run(name), settings.optimisation.objective)
        ]

    @property
    def rules(self) -> str:
        """What no program's text may hold, in words."""
        return self._material.rules.describe()

    def refuse_program(self, source: str) -> Verdict | None:
        """Why the user's rules refuse a program; None: they do not."""
        return refuse_text(self._material.rules, self._target, source)

    def make_brief(
        self,
        task: Task,
        source: str,
        suggestion: Suggestion | None,
        number: int,
        changes: Sequence[RememberedChange],
    ) -> GeneratorBrief:
        """`number`: of the optimisation round, from 1; `changes`: what the run remembers of the rounds before it."""
        generation = self._settings.generation
        return GeneratorBrief(
            task,
            self._settings.optimisation.objective,
            source,
            suggestion,
            choose_pairs([*changes, *self._earlier], task, generation.memory),
            self._references.get(task.id),
            self._material.find_instructions(number),
            self._material.sources,
            generation.example_pair,
            self.rules,
        )

    def remember(self, lineages: Mapping[str, Lineage]) -> list[RememberedChange]:
        """What the run's own ended rounds teach; nothing where prompts show no memory."""
        return list_changes(self._tasks, lineages) if self._settings.generation.memory else []


def read_changes(store: Store, run: str, objective: str) -> list[RememberedChange]:
    """What the optimisation rounds of a run teach; nothing where it had another objective."""
    if read_objective(store, run) != objective:
        return []
    return list_changes({task.id: task for task in store.read_tasks(run)}, read_optimised(store, run))
