"""What came of one task of a run, told in four parts: asked, tried, nearly right, kept. Read from the store alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from opsmith.records import Outcome, Stage, Task
from opsmith.report.attempts import PROGRAMS, AttemptGroup, CandidateView, find_task, task_view
from opsmith.report.closing import NOT_A_MODEL
from opsmith.report.views import RunView, TaskRow, run_view
from opsmith.store import Store
from opsmith.targets import get_target
from opsmith.targets.protocols import Costed

MEANINGS = {  # of the stages that every language has, and of those that several have
    "FORMAT": "no program in the reply",
    "PARSE": "not a text of the language",
    "TYPE": "the types do not fit",
    "AFFINE": "a stream is used twice",
    "COMPILE": "it does not compile",
    "RUN": "it fails while it runs",
    "MATCH": "it runs, and the values are wrong",
}
_FIGURES = {  # of a cost model, in words
    "cycles": "{} cycles",
    "off_chip_bytes": "{} bytes moved off the chip",
    "on_chip_bytes": "{} bytes held on it",
}


@dataclass(frozen=True)
class ShownProgram:
    """A program of the task with its verdict."""

    label: str  # passed, or the stage that refused it
    samples: int  # that hold it, by isomorphic group
    source: str
    message: str
    trials: int


@dataclass(frozen=True)
class TaskStory:
    """One task of a run, from the reference to the program that was kept."""

    task: str
    language: str
    reference: str
    functions: tuple[str, ...]  # that a program may call, where the task file lists them
    ends: tuple[tuple[str, int], ...]  # samples by where they ended: passed first, then the furthest
    nearest: ShownProgram | None  # of those refused; None: there is none
    solution: ShownProgram | None  # None: no program is right yet
    costs: tuple[str, ...]  # of the kept program, a sentence each
    origin: str  # model, seed, and what the model is not

    @property
    def judged(self) -> int:
        return sum(count for _, count in self.ends)


def tell_story(store: Store, run: str, name: str) -> TaskStory:
    """Of the task of that name; `run` is a whole id. Raises UsageError for a task that the run has not."""
    task = find_task(store, run, name)
    viewed = run_view(store, run)
    row = next((row for row in viewed.tasks if row.id == name), None) or _make_row(task)
    view = task_view(store, run, row, PROGRAMS)
    solution = next((group for group in view.groups if group.is_kept), None)
    speeds = [f"{speed.time} at {speed.sizes}" for speed in view.speeds]
    return TaskStory(
        task=task.id,
        language=task.target,
        reference=_read_reference(task),
        functions=_list_functions(task),
        ends=view.stages,
        nearest=_show_program(choose_nearest(view.groups)),
        solution=_show_program(solution),
        costs=tuple(speeds),
        origin=_name_origin(viewed),
    )


def choose_nearest(groups: Sequence[AttemptGroup]) -> AttemptGroup | None:
    """The refused program that came furthest, of those the one with the smallest largest error, then the commonest."""
    refused = [group for group in groups if group.label not in {Outcome.PASSED.value, Outcome.UNJUDGED.value}]
    return min(refused, key=_measure_distance, default=None)


def describe_costs(figures: Mapping[str, Any]) -> str:
    """The main figures of a cost model in words.

    >>> describe_costs({"cycles": 130, "off_chip_bytes": 2828, "flops": 3535})
    'by the cost model: 130 cycles, 2,828 bytes moved off the chip'
    """
    return "by the cost model: " + ", ".join(
        words.format(f"{figures[name]:,}") for name, words in _FIGURES.items() if name in figures
    )


def has_cost_model(task: Task) -> bool:
    """Whether the task's language can say what a program costs without running it."""
    return isinstance(get_target(task.target), Costed)


def _read_reference(task: Task) -> str:
    """The PyTorch text of a task file, or of a problem file; the whole text where it has neither."""
    stated = _read_statement(task)
    if isinstance(stated.get("reference"), str):
        return str(stated["reference"]).rstrip()
    texts = [text for output in _list_mappings(stated, "outputs") for text in output.get("data_transform", ())]
    return "\n".join(str(text).rstrip() for text in texts) or task.prompt_text


def _list_functions(task: Task) -> tuple[str, ...]:
    names = (entry.get("func_name") for entry in _list_mappings(_read_statement(task), "fns"))
    return tuple(str(name) for name in names if name)


def _list_mappings(stated: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [entry for entry in stated.get(key) or () if isinstance(entry, dict)]


def _read_statement(task: Task) -> Mapping[str, Any]:
    """What a prompt shows of the task, by key; nothing where that is no YAML mapping."""
    try:
        stated = yaml.safe_load(task.prompt_text)
    except yaml.YAMLError:
        return {}
    return stated if isinstance(stated, dict) else {}


def _measure_distance(group: AttemptGroup) -> tuple[float, float, int]:
    error = _final_candidate(group).max_abs_error
    is_measured = error is not None and not math.isnan(error)
    return -Stage(group.label).rank, error if error is not None and is_measured else math.inf, -group.samples


def _final_candidate(group: AttemptGroup) -> CandidateView:
    return next(candidate for candidate in group.sample.candidates if candidate.final)


def _show_program(group: AttemptGroup | None) -> ShownProgram | None:
    if group is None:
        return None
    final = _final_candidate(group)
    return ShownProgram(group.label, group.samples, final.source or "", final.message, final.trials)


def _name_origin(view: RunView) -> str:
    note = f" ({NOT_A_MODEL})" if not view.is_language_model else ""
    return f"model {view.model}{note}, seed {view.seed}"


def _make_row(task: Task) -> TaskRow:
    """Of a node that a plan split off, which a run's view does not list."""
    return TaskRow(task.id, task.group, "untried", None, 0.0, 0, 0, None, False, ())
