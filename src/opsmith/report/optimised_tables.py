"""What `opsmith show` and `opsmith runs` say of optimisation rounds, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from opsmith.records import printable
from opsmith.report.differences import find_difference
from opsmith.report.optimised import describe_suggestion, tabulate_steps, view_optimisation
from opsmith.report.tables import print_fact
from opsmith.results.optimisation import find_parent, read_optimisation
from opsmith.store import Store
from opsmith.store.measurements import Profile
from opsmith.store.queries import SampleDetail


def print_optimisation(console: Console, store: Store, run: str, task: str | None = None) -> None:
    """A run's gains, states and timelines, or one task's timeline; nothing where it has none."""
    view = view_optimisation(read_optimisation(store, run))
    if view is None:
        return
    if task is None:
        console.print(view.states, view.gains)
    tasks = [improved for improved in view.result.tasks if task in (None, improved.task)]
    if tasks:
        console.print(tabulate_steps(tasks, is_of_run=True))
    if task is None:
        for line in view.headlines:
            print_fact(console, f"gain    {line}")


def print_gains(console: Console, store: Store, run: str) -> None:
    """What a run's optimisation rounds gained, and where more of it is; nothing where it has none."""
    view = view_optimisation(read_optimisation(store, run))
    if view is not None:
        console.print(view.gains)
        print_fact(console, f"gain    {view.headlines[0]}; every attempt: opsmith show {run}")


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
