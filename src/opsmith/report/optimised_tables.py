"""What `opsmith show` and `opsmith runs` say of optimisation rounds, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.table import Table

from opsmith.records import printable
from opsmith.report.differences import find_difference
from opsmith.report.optimised import (
    OptimisedView,
    describe_suggestion,
    list_steps,
    view_optimisation,
)
from opsmith.report.speed_rows import NOTHING
from opsmith.report.tables import make_table, print_fact
from opsmith.results.optimisation import OptimisedTask, find_parent, read_optimisation
from opsmith.store import Store
from opsmith.store.measurements import Profile
from opsmith.store.queries import SampleDetail

_WORDS = 100  # of a suggestion, in a table


def print_optimisation(console: Console, store: Store, run: str, task: str | None = None) -> None:
    """A run's gains, states and timelines, or one task's timeline; nothing where it has none."""
    view = view_optimisation(read_optimisation(store, run))
    if view is None:
        return
    if task is None:
        console.print(tabulate_states(view), tabulate_gains(view))
    tasks = [improved for improved in view.result.tasks if task in (None, improved.task)]
    if tasks:
        console.print(tabulate_steps(tasks))
    if task is None:
        for line in view.headlines:
            print_fact(console, f"gain    {line}")


def print_gains(console: Console, store: Store, run: str) -> None:
    """What a run's optimisation rounds gained; nothing where it has none."""
    view = view_optimisation(read_optimisation(store, run))
    if view is not None:
        console.print(tabulate_gains(view))


def tabulate_gains(view: OptimisedView) -> Table:
    """A row for each task."""
    numbers = ("rounds", "attempts", "right", "over the start program", *(f"over {name}" for name in view.partners))
    grid = make_table(
        "task",
        *numbers,
        "claim",
        "spread",
        right=(*numbers, "spread"),
        title="optimisation",
        least=("spread", "rounds", "attempts", "right"),
    )
    for row in view.gains:
        counts = map(str, (row.rounds, row.attempts, row.right))
        grid.add_row(row.task, *counts, row.gain, *row.to_partners, row.claim, row.spread)
    return grid


def tabulate_states(view: OptimisedView) -> Table:
    """A row for each round."""
    grid = make_table("round", "phase", *view.state_names, right=("round", *view.state_names), title="states by round")
    for row in view.states:
        grid.add_row(str(row.round), row.phase, *map(str, row.counts))
    return grid


def tabulate_steps(tasks: Iterable[OptimisedTask]) -> Table:
    """The timeline: a row for each attempt, task after task."""
    figures = ("round", "ratio", "to start")
    grid = make_table(
        "task",
        "round",
        "sample",
        "state",
        "ratio",
        "to start",
        "kept",
        "suggestion",
        right=figures,
        least=("kept", "suggestion", "to start"),
    )
    grid.title = "timeline"
    for task in tasks:
        for step in list_steps(task):
            mark = "kept" if step.is_kept else ""
            words = _shorten_words(describe_suggestion(step.suggestion)) if step.suggestion else NOTHING
            place = (task.task, str(step.round), step.sample[:12])
            grid.add_row(*place, step.state, step.ratio, step.to_start, mark, words)
    return grid


def list_improvement(store: Store, run: str, detail: SampleDetail) -> Iterator[str]:
    """What a sample of an optimisation round was given, and what it changed; nothing of any other sample."""
    parent = find_parent(store, run, detail.row)
    if parent is None:
        return
    suggestion = store.read_suggestion(detail.row.id)
    yield f"--- suggestion ---\n{describe_suggestion(suggestion) if suggestion else 'none was made'}"
    for profile in store.read_profiles(run, detail.row.task, [parent]):
        yield f"--- {printable(f'profile: {profile.kind}')} ---\n{_write_profile(profile)}"
    yield from _list_differences(detail, store.read_text(parent))


def _list_differences(detail: SampleDetail, parent: str) -> Iterator[str]:
    for candidate in detail.candidates:
        if candidate.source is None:
            continue
        place = "the start program" if candidate.parent_sample is None else f"sample {candidate.parent_sample[:12]}"
        difference = find_difference(candidate.source, parent, f"what it set out from, of {place}")
        if difference is not None:
            lines = ("..." if line.sign == "@" else f"{line.sign} {line.text}" for line in difference.lines)
            yield "\n".join([f"--- difference of the {candidate.agent} from {difference.against} ---", *lines])


def _write_profile(profile: Profile) -> str:
    if profile.media.startswith("text/"):
        return profile.body
    return f"a picture ({profile.media}, {len(profile.body) * 3 // 4:,} bytes); `opsmith ui` shows it"


def _shorten_words(text: str) -> str:
    return text if len(text) <= _WORDS else f"{text[: _WORDS - 1]}…"
