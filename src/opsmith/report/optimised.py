"""A run's optimisation rounds in words: a timeline of steps by task, and what was gained, for pages and terminals."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from opsmith.measuring.intervals import Interval
from opsmith.records import TIME, Suggestion, to_json
from opsmith.report.record import COUNT, RATIO, SHARE, TEXT, DataTable, Said
from opsmith.report.speeds import write_time
from opsmith.report.tables import NOTHING, count_noun, format_cost
from opsmith.results.optimisation import OptimisedRun, OptimisedTask, PartnerMetrics, read_optimisation
from opsmith.results.states import AttemptState
from opsmith.store import Store
from opsmith.store.measurements import Profile
from opsmith.store.rows import FUNCTIONAL, OPTIMISATION

STATES: tuple[AttemptState | None, ...] = (*AttemptState, None)
UNJUDGED = "unjudged"
_MOODS = {AttemptState.CORRECT: "good", None: ""}
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class ProfileView:
    """A profile as a page shows it: a text, or a picture."""

    kind: str
    text: str
    picture: str | None  # a `data:` address of a PNG


@dataclass(frozen=True)
class OptimisedView:
    """What came of a run's optimisation rounds, in words."""

    result: OptimisedRun
    headlines: tuple[str, ...]
    gains: DataTable
    states: DataTable


def view_optimisation(run: OptimisedRun | None) -> OptimisedView | None:
    """None for a run without such rounds."""
    if run is None:
        return None
    return OptimisedView(run, tuple(describe_gain(run)), tabulate_gains(run), tabulate_states(run))


def tabulate_steps(tasks: Sequence[OptimisedTask], is_of_run: bool = False) -> DataTable:
    """The timeline: a row for each attempt; `is_of_run`: task after task."""
    named = {"task": TEXT} if is_of_run else {}
    columns = {"round": COUNT, "sample": TEXT, "state": TEXT, "ratio": RATIO, "to start": RATIO, "kept": TEXT}
    rows = [
        [
            *([Said(task.task, link=("task", task.task))] if is_of_run else []),
            step.row.round,
            Said(step.row.sample[:12], step.row.sample, link=("sample", step.row.sample)),
            Said(UNJUDGED if step.state is None else step.state.value, mood=_MOODS.get(step.state, "bad")),
            step.ratio,
            step.to_start,
            "kept" if step.is_kept else "",
            Said(
                step.row.suggestion.what if step.row.suggestion else NOTHING,
                to_json(step.row.suggestion),
                note=f"No ratio: {step.reason}" if step.reason else "",
            ),
        ]
        for task in tasks
        for step in task.steps
    ]
    return DataTable("timeline", {**named, **columns, "suggestion": TEXT}, rows, ("to start", "suggestion", "kept"))


def tabulate_gains(run: OptimisedRun) -> DataTable:
    """A row for each task: its gain, which is over the start program, and that over the run's other partners."""
    partners = [metrics.partner for metrics in run.partners[1:]]
    ratios = {f"over {name.partition(' of ')[0]}": RATIO for name in partners}
    counts = {"rounds": COUNT, "attempts": COUNT, "right": COUNT}
    times = {"start → best": TEXT} if any(task.times for task in run.tasks) else {}
    screens = {"best screen": RATIO} if any(task.screen for task in run.tasks) else {}
    rows = [
        [
            Said(task.task, link=("task", task.task)),
            task.gain,
            *([task.screen] if screens else []),
            *([_word_times(task)] if times else []),
            task.claim.value if task.best and task.claim else "counted" if task.best else task.lack or "no gain shown",
            *map(task.to_partner, partners),
            len({step.row.round for step in task.steps}),
            len(task.steps),
            sum(step.state is AttemptState.CORRECT for step in task.steps),
            task.spread,
            "; then ".join(change.rstrip(".") for change in task.changes) or NOTHING,
        ]
        for task in run.tasks
    ]
    columns = {"task": TEXT, "gain": RATIO, **screens, **times, "claim": TEXT, **ratios}
    columns |= {**counts, "spread": SHARE, "change": TEXT}
    note = (
        "Gain and screen: times as good as the start program. A screen is a quick first timing, no result."
        if screens
        else ""
    )
    least = ("spread", "rounds", "attempts", "right", "change", "start → best")
    return DataTable("gain of each task over its start program", columns, rows, least, note=note)


def _word_times(task: OptimisedTask) -> str:
    """Of the start program and the best, at the shape set where the start program takes longest."""
    longest = max(task.times, key=lambda times: times.start.value, default=None)
    if longest is None:
        return NOTHING
    start, best = (
        write_time(Interval(time.value, time.value, time.value), longest.objective)
        for time in (longest.start, longest.best)
    )
    return f"{start} → {best} at {longest.shape_set}"


def tabulate_states(run: OptimisedRun) -> DataTable:
    """A row for each round of both phases: how many of its samples ended in each of STATES."""
    names = (UNJUDGED if state is None else state.value for state in STATES)
    rows = [
        [number, FUNCTIONAL if number < run.first else OPTIMISATION, *(counts.get(state, 0) for state in STATES)]
        for number, counts in sorted(run.states.items())
    ]
    return DataTable("states by round", {"round": COUNT, "phase": TEXT, **dict.fromkeys(names, COUNT)}, rows)


def describe_gain(run: OptimisedRun) -> Iterator[str]:
    """The headlines: what was gained over each partner, and what that cost."""
    screens = [f"{task.task} {task.screen}" for task in run.tasks if task.screen is not None]
    if screens:
        yield f"screens so far, first timings that are no result: {', '.join(screens)} times as good as the start"
        yield "the full measurement comes at the run's end; a run that was stopped goes on with the same command"
    for metrics in run.partners:
        yield _describe_metrics(metrics, "fast" if run.objective == TIME.name else "good")
    usage = run.usage
    measured = "" if run.measured_seconds is None else f", {run.measured_seconds:.1f} s of measuring"
    tokens = usage.input_tokens + usage.output_tokens
    yield f"it took {count_noun(usage.requests, 'request')}, {tokens:,} tokens, cost {format_cost(usage)}{measured}"
    cost = run.cost
    if cost is not None and cost.usd != 0:  # rules, or a model of one's own: nothing was paid
        dollars = "cost unknown" if cost.usd is None else f"${cost.usd:.5f}" if cost.usd else "$0"
        seconds = "" if cost.measured_seconds is None else f", {cost.measured_seconds:.2f} s of measuring"
        yield f"one per cent of the mean gain took {cost.tokens:,.0f} tokens, {dollars}{seconds}"
    if run.spread is not None:
        yield f"spread of a task's right attempts (standard deviation by mean): {run.spread:.3f}, mean over the tasks"


def summarise_gain(run: OptimisedRun) -> str:
    """A few words for a list of runs."""
    screens = [task.screen.value for task in run.tasks if task.screen is not None]
    if run.gain is None and screens:
        return f"screens only, {max(screens):.3f} at best"
    return NOTHING if run.gain is None else f"{run.gain.value:.3f} over {count_noun(run.gain.tasks, 'task')}"


def summarise_gains(store: Store) -> dict[str, str]:
    """By run, in a few words, what its optimisation rounds gained; runs without such rounds are left out."""
    results = {run: read_optimisation(store, run) for run in store.list_optimised_runs()}
    return {run: summarise_gain(result) for run, result in results.items() if result is not None}


def view_profiles(profiles: Iterable[Profile]) -> tuple[ProfileView, ...]:
    """Each once, in their order."""
    return tuple(dict.fromkeys(map(_view_profile, profiles)))


def read_picture(media: str, body: str) -> str | None:
    """The `data:` address of a picture in base64; None: it is no PNG."""
    if media != "image/png":
        return None
    try:
        is_png = base64.b64decode(body, validate=True).startswith(_PNG)
    except (binascii.Error, ValueError):
        return None
    return f"data:image/png;base64,{body}" if is_png else None


def describe_suggestion(suggestion: Suggestion) -> str:
    """On one line."""
    pairs = (("where", suggestion.where), ("why", suggestion.why), ("expected", suggestion.effect))
    return "; ".join([suggestion.what, *(f"{name}: {words}" for name, words in pairs if words)])


def _view_profile(profile: Profile) -> ProfileView:
    picture = read_picture(profile.media, profile.body)
    is_text = profile.media.startswith("text/")
    text = profile.body if is_text else "" if picture else f"a profile of {profile.media} that cannot be shown"
    return ProfileView(profile.kind, text, picture)


def _describe_metrics(metrics: PartnerMetrics, quality: str) -> str:
    geometric, mean = metrics.geometric, metrics.mean
    if geometric is None or mean is None:
        return f"beside {metrics.partner}: no ratio that may be said"
    if geometric.tasks == 1:
        return f"{geometric.value:.3f} times as {quality} as {metrics.partner} (one task)"
    means = f"geometric mean over {geometric.tasks} tasks; plain mean {mean}"
    return f"{geometric} times as {quality} as {metrics.partner}, {means}"
