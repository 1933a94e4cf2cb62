"""What is asked where another system asks the model? The same messages as in a run, and a way back to the task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from opsmith.agents.prompt import compose
from opsmith.benchmarks import load_tasks
from opsmith.errors import UsageError
from opsmith.learn.result import group_of
from opsmith.learn.select import hardest_first
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.store import FILE, Store
from opsmith.targets import get_target
from opsmith.verification.trust import is_bundled


@dataclass(frozen=True)
class Question:
    """A task and what is sent for it."""

    task: Task
    messages: tuple[Message, ...]  # system, then user
    demonstrations: tuple[str, ...]  # the tasks shown as examples, hardest first

    @property
    def about(self) -> dict[str, str]:
        """What another system keeps beside the prompt, so that `task_of` finds the task when a reply is judged."""
        name = self.task.id if is_bundled(self.task) else str(Path(self.task.path).resolve())
        return {"task": name, "digest": self.task.digest, "group": group_of(self.task)}


def questions(
    tasks: str | Sequence[str] = (), from_run: str | None = None, out: str | Path = "runs"
) -> tuple[Question, ...]:
    """A question for every task (none named: the paper's 26), with the solutions of a run as demonstrations.

    No task's prompt shows a solution of that task. Raises UsageError for a task, run or store that does not exist.
    """
    found = load_tasks(names_in(tasks))
    shown = _solutions(from_run, Path(out)) if from_run is not None else []
    return tuple(_question(task, shown) for task in found)


def names_in(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a list, or as one text with commas, as command lines pass them."""
    parts = given.split(",") if isinstance(given, str) else given or ()
    return tuple(name.strip() for name in parts if name.strip())


def _question(task: Task, shown: Sequence[Experience]) -> Question:
    others = [item for item in shown if item.task.digest != task.digest]
    prompt = compose(task, others, get_target(task.target), None, 0)
    return Question(task, prompt.messages, tuple(item.task.id for item in prompt.demonstrations_used))


def _solutions(run: str, out: Path) -> list[Experience]:
    if not (out if out.is_file() else out / FILE).is_file():
        raise UsageError(f"{out}: no runs here; expected the folder of a store made by `opsmith run`; try: out=DIR")
    with Store.open(out) as store:
        return hardest_first([kept.experience for kept in store.experiences(store.find_run(run))])


@lru_cache(maxsize=1024)
def task_of(name: str, digest: str) -> Task:
    """The task that was asked. Raises UsageError when its file has changed since: the verdict would be on another."""
    (task,) = load_tasks([name])
    if task.digest != digest:
        raise UsageError(f"task {name}: its file has changed since it was asked; try: ask again")
    return task
