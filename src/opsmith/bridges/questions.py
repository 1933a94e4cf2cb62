"""What is asked where another system asks the model: the same messages as in a run, and a way back to the task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from opsmith.agents.prompt import compose_prompt
from opsmith.errors import UsageError
from opsmith.judging.trust import is_bundled
from opsmith.learn.select import hardest_first
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.results.counting import group_of
from opsmith.store import FILE, Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target


@dataclass(frozen=True)
class Question:
    """A task and what is sent for it."""

    task: Task
    messages: tuple[Message, ...]  # system, then user
    demonstrations: tuple[str, ...]  # the tasks shown as examples, hardest first

    @property
    def about(self) -> dict[str, str]:
        """What another system keeps beside the prompt, so that `find_task` finds the task when a reply is judged."""
        name = self.task.id if is_bundled(self.task) else str(Path(self.task.path).resolve())
        return {"task": name, "digest": self.task.digest, "group": group_of(self.task)}


def make_questions(
    tasks: str | Sequence[str] = (), from_run: str | None = None, out: str | Path = "runs"
) -> tuple[Question, ...]:
    """A question for every task (none named: the paper's 26), with the solutions of a run as demonstrations.

    No task's prompt shows a solution of that task. Raises UsageError for a task, run or store that does not exist.
    """
    loaded = load_tasks(split_names(tasks))
    demonstrations = _load_solutions(from_run, Path(out)) if from_run is not None else []
    return tuple(_make_question(task, demonstrations) for task in loaded)


def split_names(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a list, or as one text with commas, as command lines pass them."""
    names = text.split(",") if isinstance(text, str) else text or ()
    return tuple(name.strip() for name in names if name.strip())


def _make_question(task: Task, demonstrations: Sequence[Experience]) -> Question:
    foreign = [experience for experience in demonstrations if experience.task.digest != task.digest]
    prompt = compose_prompt(task, foreign, get_target(task.target), None, 0)
    return Question(task, prompt.messages, tuple(experience.task.id for experience in prompt.demonstrations_used))


def _load_solutions(run: str, out: Path) -> list[Experience]:
    if not (out if out.is_file() else out / FILE).is_file():
        raise UsageError(f"{out}: no runs here; expected the folder of a store made by `opsmith run`; try: out=DIR")
    with Store.open(out) as store:
        return hardest_first([solution.experience for solution in store.read_experiences(store.find_run(run))])


@lru_cache(maxsize=1024)
def find_task(name: str, digest: str) -> Task:
    """The task that was asked. Raises UsageError when its file has changed since: the verdict would be on another."""
    (task,) = load_tasks([name])
    if task.digest != digest:
        raise UsageError(f"task {name}: its file has changed since it was asked; try: ask again")
    return task
