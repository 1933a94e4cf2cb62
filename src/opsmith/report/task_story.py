"""What came of one task of a run, told in four parts: asked, tried, nearly right, kept. Read from the store alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from opsmith.measuring.objectives import list_objectives
from opsmith.records import Outcome, Stage, Task
from opsmith.report.attempts import find_improvement, find_task, read_task_speeds
from opsmith.report.closing import not_a_model
from opsmith.report.verdicts import label_of
from opsmith.results.bests import find_best
from opsmith.results.optimisation import ImprovingStep, read_optimisation
from opsmith.results.refusals import read_refusals
from opsmith.store import Store
from opsmith.store.attempts import count_stages
from opsmith.store.queries import KeptExperience
from opsmith.store.rows import RunInfo
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
    """A program of the task with what its verdict says."""

    stage: str  # the last that it came to
    source: str
    message: str


@dataclass(frozen=True)
class TaskStory:
    """One task of a run, from the reference to the program that was kept."""

    task: str
    language: str
    reference: str
    functions: tuple[str, ...]  # that a program may call, where the task file lists them
    ends: tuple[tuple[str, int], ...]  # samples by where they ended: passed first, then the furthest
    nearest: ShownProgram | None  # of those refused; None: there is none
    start: ShownProgram | None  # that rounds made the solution from; None: they made nothing better
    solution: ShownProgram | None  # None: no program is right yet
    costs: tuple[str, ...]  # of the solution, a sentence each
    steps: tuple[ImprovingStep, ...]  # of rounds that make it better, in their order; (): there were none
    origin: str  # model, seed, and what the model is not

    @property
    def judged(self) -> int:
        return sum(count for _, count in self.ends)


def tell_story(store: Store, run: str, name: str) -> TaskStory:
    """Of the task of that name; `run` is a whole id. Raises UsageError for a task that the run has not."""
    task = find_task(store, run, name)
    ends = sorted((count_stages(store, run, name) or _count_steps(store, run, name)).items(), key=_order_end)
    best = find_best(store, run, task.digest)
    speeds, _ = read_task_speeds(store, run, name)
    improved = find_improvement(read_optimisation(store, run), name)
    return TaskStory(
        task=task.id,
        language=task.target,
        reference=_read_reference(task),
        functions=_list_functions(task),
        ends=tuple((label_of(*end), count) for end, count in ends),
        nearest=_read_nearest(store, run, name),
        start=_read_start(store, run, best) if best is not None else None,
        solution=_read_solution(store, best) if best is not None else None,
        costs=tuple(f"{speed.figures[0].text} at {speed.sizes}" for speed in speeds),
        steps=improved.steps if improved is not None else (),
        origin=_name_origin(store.read_info(run)),
    )


def _order_end(end: tuple[tuple[Stage, Outcome], int]) -> tuple[bool, float, str]:
    (stage, outcome), _ = end
    return outcome is not Outcome.PASSED, -stage.rank, outcome


def _name_origin(info: RunInfo | None) -> str:
    if info is None:
        return ""
    note = "" if info.is_language_model else f" ({not_a_model(info.model)})"
    return f"model {info.model}{note}, seed {info.seed}"


def _read_nearest(store: Store, run: str, task: str) -> ShownProgram | None:
    miss = read_refusals(store, run, task).nearest.get(task)
    return _read_program(store, miss.sample) if miss is not None else None


def _count_steps(store: Store, run: str, task: str) -> Counter[tuple[Stage, Outcome]]:
    """Where samples of optimisation rounds ended, of a run that had nothing to solve."""
    rows = [row for row in store.read_steps(run) if row.task == task]
    return Counter((row.stage, row.outcome) for row in rows if row.stage is not None and row.outcome is not None)


def _read_start(store: Store, run: str, best: KeptExperience) -> ShownProgram | None:
    task, gain = best.experience.task.digest, best.experience.gain
    starts = (kept.experience.source for kept in store.read_experiences(run) if kept.experience.task.digest == task)
    source = next(starts, best.experience.source)
    if gain is None or source == best.experience.source:
        return None
    return ShownProgram(Stage.MATCH.name, source, f"the kept one is better by a factor of {gain:.3f}, over all sizes")


def _read_solution(store: Store, best: KeptExperience) -> ShownProgram:
    """The program that was kept, with the verdict of its sample; one that the run was given has none."""
    if best.sample is not None:
        return _read_program(store, best.sample)
    return ShownProgram(Stage.MATCH.name, best.experience.source, "passed before this run")


def _read_program(store: Store, sample: str) -> ShownProgram:
    """What a sample counts by."""
    final = next(candidate for candidate in store.read_details([sample])[sample].candidates if candidate.final)
    return ShownProgram(final.verdict.stage.name, final.source or "", final.verdict.message)


def describe_costs(figures: Mapping[str, Any], task: Task | None = None) -> str:
    """The main figures of a cost model in words; `task`: whose language has figures of its own.

    >>> describe_costs({"cycles": 130, "off_chip_bytes": 2828, "flops": 3535})
    'by the cost model: 130 cycles, 2,828 bytes moved off the chip'
    """
    offers = list_objectives(task) if task is not None else ()
    all_words = {**_FIGURES, **{own.name: f"{{}} {own.unit}" for own in offers if own.name not in _FIGURES}}
    return "by the cost model: " + ", ".join(
        words.format(f"{figures[name]:,}") for name, words in all_words.items() if name in figures
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
