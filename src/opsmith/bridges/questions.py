"""What is asked where another system asks the model: the same messages as in a run, and a way back to the task."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from opsmith.agents.prompt import compose_prompt
from opsmith.errors import UsageError
from opsmith.judging.trust import is_bundled
from opsmith.learn.select import hardest_first
from opsmith.models import Message
from opsmith.records import Experience, Task
from opsmith.results.bests import list_best
from opsmith.results.counting import group_of
from opsmith.store import FILE, Store
from opsmith.suites import load_tasks
from opsmith.targets import get_target


@dataclass(frozen=True)
class AskedLanguage:
    """What tasks are asked for in; nothing: in that of their files."""

    target: str = ""
    options: str = ""  # of the target, as JSON

    def load_named(self, names: Sequence[str]) -> tuple[Task, ...]:
        """Raises UsageError and TaskError."""
        return load_tasks(names, self.target or None, json.loads(self.options) if self.options else {})


AS_STATED = AskedLanguage()


@dataclass(frozen=True)
class Question:
    """A task and what is sent for it."""

    task: Task
    messages: tuple[Message, ...]  # system, then user
    demonstrations: tuple[str, ...]  # the tasks shown as examples, hardest first
    language: AskedLanguage = AS_STATED

    @property
    def about(self) -> dict[str, str]:
        """What another system keeps beside the prompt, so that `find_task` finds the task when a reply is judged."""
        name = self.task.id if is_bundled(self.task) else str(Path(self.task.path).resolve())
        words = {"target": self.language.target, "options": self.language.options}
        return {"task": name, "digest": self.task.digest, "group": group_of(self.task), **words}


def make_questions(
    tasks: str | Sequence[str] = (),
    from_run: str | None = None,
    out: str | Path = "runs",
    language: AskedLanguage = AS_STATED,
) -> tuple[Question, ...]:
    """A question for every task (none named: the paper's 26), with the solutions of a run as demonstrations.

    No task's prompt shows a solution of that task, or one in another language. Raises UsageError for a task, run or
    store that does not exist.
    """
    loaded = language.load_named(split_names(tasks))
    demonstrations = _load_solutions(from_run, Path(out)) if from_run is not None else []
    return tuple(_make_question(task, demonstrations, language) for task in loaded)


def choose_language(target: str | None, options: str | Mapping[str, object] | None) -> AskedLanguage:
    """The language of these settings; options as a mapping, or as one text: `threads=2 'flags=-O2 -ffast-math'`.

    Raises UsageError for a text that is no list of NAME=VALUE.
    """
    if isinstance(options, Mapping):
        return AskedLanguage(target or "", json.dumps(dict(options), sort_keys=True) if options else "")
    pairs = [word.partition("=") for word in shlex.split(options or "")]
    for name, sign, value in pairs:
        if not name or not sign:
            raise UsageError(f"options: given {name + sign + value!r}; expected NAME=VALUE, such as threads=2")
    named = {name: value for name, _, value in pairs}
    return AskedLanguage(target or "", json.dumps(named, sort_keys=True) if named else "")


def split_names(text: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names as a list, or as one text with commas, as command lines pass them."""
    names = text.split(",") if isinstance(text, str) else text or ()
    return tuple(name.strip() for name in names if name.strip())


def _make_question(task: Task, demonstrations: Sequence[Experience], language: AskedLanguage) -> Question:
    foreign = [
        experience
        for experience in demonstrations
        if experience.task.digest != task.digest and experience.task.target == task.target
    ]
    prompt = compose_prompt(task, foreign, get_target(task.target), None, 0)
    names = tuple(experience.task.id for experience in prompt.demonstrations_used)
    return Question(task, prompt.messages, names, language)


def _load_solutions(run: str, out: Path) -> list[Experience]:
    if not (out if out.is_file() else out / FILE).is_file():
        raise UsageError(f"{out}: no runs here; expected the folder of a store made by `opsmith run`; try: out=DIR")
    with Store.open(out) as store:
        return hardest_first([best.experience for best in list_best(store, store.find_run(run))])


@lru_cache(maxsize=1024)
def find_task(name: str, digest: str, language: AskedLanguage = AS_STATED) -> Task:
    """The task that was asked. Raises UsageError when its file has changed since: the verdict would be on another."""
    (task,) = language.load_named([name])
    if task.digest != digest:
        raise UsageError(f"task {name}: its file has changed since it was asked; try: ask again")
    return task
