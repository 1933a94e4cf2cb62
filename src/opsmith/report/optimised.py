"""A run's optimisation rounds in words: a timeline of steps by task, and what was gained, for pages and terminals."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from opsmith.records import Suggestion
from opsmith.report.speed_rows import NOTHING, write_interval
from opsmith.results.intervals import Estimate
from opsmith.results.optimisation import ImprovingStep, OptimisedRun, OptimisedTask, PartnerMetrics, read_optimisation
from opsmith.results.states import AttemptState
from opsmith.store import Store
from opsmith.store.measurements import Profile
from opsmith.store.rows import FUNCTIONAL, OPTIMISATION

STATES: tuple[AttemptState | None, ...] = (*AttemptState, None)
UNJUDGED = "unjudged"
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class StepLine:
    """A step in words."""

    sample: str
    round: int
    number: int
    state: str
    is_right: bool
    suggestion: Suggestion | None
    ratio: str  # to what it set out from
    to_start: str
    reason: str
    is_kept: bool
    origin: str | None  # the sample that holds what it set out from; None: the start program


@dataclass(frozen=True)
class GainLine:
    """A task and what was gained for it, in words."""

    task: str
    rounds: int
    attempts: int
    right: int
    gain: str
    claim: str
    to_partners: tuple[str, ...]  # ratios to the run's other partners
    spread: str


@dataclass(frozen=True)
class StateLine:
    """A round and how many of its samples ended in each of STATES."""

    round: int
    phase: str
    counts: tuple[int, ...]


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
    partners: tuple[str, ...]  # but for the start program
    gains: tuple[GainLine, ...]
    state_names: tuple[str, ...]
    states: tuple[StateLine, ...]


def view_optimisation(run: OptimisedRun | None) -> OptimisedView | None:
    """None for a run without such rounds."""
    if run is None:
        return None
    return OptimisedView(
        run, tuple(describe_gain(run)), name_partners(run), list_gains(run), name_states(), list_states(run)
    )


def list_steps(task: OptimisedTask) -> tuple[StepLine, ...]:
    """The timeline of a task, in the order of its samples."""
    return tuple(map(_word_step, task.steps))


def list_gains(run: OptimisedRun) -> tuple[GainLine, ...]:
    return tuple(_word_gain(task, name_partners(run)) for task in run.tasks)


def name_partners(run: OptimisedRun) -> tuple[str, ...]:
    """Whom the best programs were measured beside, but for the start program."""
    return tuple(metrics.partner for metrics in run.partners[1:])


def list_states(run: OptimisedRun) -> tuple[StateLine, ...]:
    """A line for each round of both phases."""
    return tuple(
        StateLine(
            number,
            FUNCTIONAL if number < run.first else OPTIMISATION,
            tuple(counts.get(state, 0) for state in STATES),
        )
        for number, counts in sorted(run.states.items())
    )


def name_states() -> tuple[str, ...]:
    return tuple(UNJUDGED if state is None else state.value for state in STATES)


def describe_gain(run: OptimisedRun) -> Iterator[str]:
    """The headlines: what was gained over each partner, and what that cost."""
    for metrics in run.partners:
        yield _describe_metrics(metrics)
    usage = run.usage
    measured = "" if run.measured_seconds is None else f", {run.measured_seconds:.1f} s of measuring"
    usd = "unknown cost" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    tokens = usage.input_tokens + usage.output_tokens
    yield f"spent on it: {usage.requests:,} requests, {tokens:,} tokens, {usd}{measured}"
    cost = run.cost
    if cost is not None:
        dollars = "unknown cost" if cost.usd is None else f"${cost.usd:.5f}"
        seconds = "" if cost.measured_seconds is None else f", {cost.measured_seconds:.2f} s of measuring"
        yield f"for each per cent of the mean gain: {cost.tokens:,.0f} tokens, {dollars}{seconds}"
    if run.spread is not None:
        yield f"spread of right attempts (standard deviation by mean, mean over tasks): {run.spread:.3f}"


def summarise_gain(run: OptimisedRun) -> str:
    """A few words for a list of runs."""
    return NOTHING if run.gain is None else f"{run.gain.value:.3f} over {_count_tasks(run.gain)}"


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


def _word_step(step: ImprovingStep) -> StepLine:
    row = step.row
    return StepLine(
        sample=row.sample,
        round=row.round,
        number=row.number,
        state=UNJUDGED if step.state is None else step.state.value,
        is_right=step.state is AttemptState.CORRECT,
        suggestion=row.suggestion,
        ratio=write_interval(step.ratio),
        to_start=write_interval(step.to_start),
        reason=step.reason,
        is_kept=step.is_kept,
        origin=step.parent_sample,
    )


def _word_gain(task: OptimisedTask, partners: Sequence[str]) -> GainLine:
    ratios = (task.to_partner(name) for name in partners)
    return GainLine(
        task=task.task,
        rounds=len({step.row.round for step in task.steps}),
        attempts=len(task.steps),
        right=sum(step.state is AttemptState.CORRECT for step in task.steps),
        gain=write_interval(task.gain),
        claim=_word_claim(task),
        to_partners=tuple(NOTHING if ratio is None else f"{ratio:.3f}" for ratio in ratios),
        spread=NOTHING if task.spread is None else f"{task.spread:.3f}",
    )


def _word_claim(task: OptimisedTask) -> str:
    if task.best is None:
        return task.lack or "no gain shown"
    return "counted" if task.claim is None else task.claim.value


def _describe_metrics(metrics: PartnerMetrics) -> str:
    geometric, mean = metrics.geometric, metrics.mean
    if geometric is None or mean is None:
        return f"beside {metrics.partner}: no ratio that may be said"
    return f"beside {metrics.partner}: geometric mean {geometric}, mean {mean} over {_count_tasks(geometric)}"


def _count_tasks(estimate: Estimate) -> str:
    return f"{estimate.tasks} task{'' if estimate.tasks == 1 else 's'}"
