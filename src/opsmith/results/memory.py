"""Memory of slow and fast: changes of other tasks' programs that gained or, reversed, lost (after AccelOpt).

A pure function of lineages, so that a run which was killed remembers what one that was not does. A change that gained
is a pair of its program before and after; one that lost teaches the way back: the slower program is the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from opsmith.agents.generation import MemoryPair
from opsmith.records import Suggestion, Task
from opsmith.results.lineage import Lineage, OptimisationStep

LEAST_GAIN = 1.04  # ratio to the parent above which a change is worth remembering
LEAST_LOSS = 1 / 1.15  # ... and below which its reverse is
LONGEST_TITLE = 80  # characters
LONGEST_PROGRAM = 12_000  # characters of each program of a pair that a prompt may show


@dataclass(frozen=True)
class RememberedChange:
    """A pair with what it came from."""

    pair: MemoryPair
    task: Task
    sample: str
    is_reversed: bool  # the sample's program is the slow one


def list_changes(tasks: Mapping[str, Task], lineages: Mapping[str, Lineage]) -> list[RememberedChange]:
    """All changes of ended rounds that are worth remembering, task by task in the order of the samples' keys."""
    return [
        change
        for name, lineage in sorted(lineages.items())
        if name in tasks
        for step in lineage.steps
        if (change := remember_step(tasks[name], step)) is not None
    ]


def remember_step(task: Task, step: OptimisationStep) -> RememberedChange | None:
    """None: it changed too little, or that is not known or not beyond the noise."""
    ratio, source = step.ratio, step.row.source
    if ratio is None or source is None or source == step.parent.source:
        return None
    suggestion = step.row.suggestion
    bounds = [interval for interval in step.ratios if interval is not None]
    if ratio > LEAST_GAIN and all(bound.low > 1 for bound in bounds):
        words = " ".join([*_list_reasons(suggestion), f"It gained {ratio:.2f}."])
        pair = MemoryPair(task.id, title_change(suggestion), words, step.parent.source, source, ratio)
        return RememberedChange(pair, task, step.row.sample, False)
    if ratio < LEAST_LOSS and all(bound.high < 1 for bound in bounds):
        title = f"not: {title_change(suggestion)}"[:LONGEST_TITLE]
        lost = f"This was tried and lost: the program became {1 / ratio:.2f} times as dear. The way back is shown."
        words = " ".join([*_list_reasons(suggestion), lost])
        pair = MemoryPair(task.id, title, words, source, step.parent.source, 1 / ratio)
        return RememberedChange(pair, task, step.row.sample, True)
    return None


def choose_pairs(changes: Iterable[RememberedChange], task: Task, count: int) -> tuple[MemoryPair, ...]:
    """At most `count` for the prompt of a task: of other tasks in its language, the largest gains first, as many tasks
    and titles as there are."""
    usable = [change for change in changes if _is_usable(change, task)]
    ordered = sorted(usable, key=lambda change: (change.is_reversed, -change.pair.ratio, change.task.id, change.sample))
    return tuple(change.pair for change in _spread_choice(ordered, count))


def _is_usable(change: RememberedChange, task: Task) -> bool:
    is_other = change.task.id != task.id and change.task.digest != task.digest
    lengths = (len(change.pair.before), len(change.pair.after))
    return is_other and change.task.target == task.target and max(lengths) <= LONGEST_PROGRAM


def _spread_choice(ordered: Sequence[RememberedChange], count: int) -> list[RememberedChange]:
    """First those of another task and another title than any before, then of another title, then any."""
    chosen: list[RememberedChange] = []
    for is_new in (_has_new_task_and_title, _has_new_title, _is_new_pair):
        for change in ordered:
            if len(chosen) < count and is_new(change, chosen):
                chosen.append(change)
    return chosen


def _has_new_task_and_title(change: RememberedChange, chosen: Sequence[RememberedChange]) -> bool:
    return _has_new_title(change, chosen) and all(other.task.id != change.task.id for other in chosen)


def _has_new_title(change: RememberedChange, chosen: Sequence[RememberedChange]) -> bool:
    return all(other.pair.title != change.pair.title for other in chosen)


def _is_new_pair(change: RememberedChange, chosen: Sequence[RememberedChange]) -> bool:
    return all((other.pair.before, other.pair.after) != (change.pair.before, change.pair.after) for other in chosen)


def title_change(suggestion: Suggestion | None) -> str:
    """A change in a few words: the first clause of what was suggested.

    >>> title_change(Suggestion("tile j by 64: rows of B stay in L1. Then unroll."))
    'tile j by 64'
    """
    if suggestion is None or not suggestion.what.strip():
        return "a change that nobody suggested"
    line = suggestion.what.strip().split("\n")[0]
    cuts = [place for mark in (": ", "; ", ". ") if (place := line.find(mark)) > 0]
    title = line[: min(cuts)] if cuts else line.rstrip(".")
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 4].rstrip()} ..."


def _list_reasons(suggestion: Suggestion | None) -> Iterator[str]:
    for text in (suggestion.what, suggestion.where, suggestion.why) if suggestion else ():
        line = " ".join(text.split())
        if line:
            yield line if line.endswith((".", "!", "?")) else f"{line}."
