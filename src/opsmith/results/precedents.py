"""How long runs take: the rounds of stored runs, in shares of their tasks, and what is expected of another run.

A run of 26 tasks tells so of one of 40. Where no finished run of a store is like the other one, a guess stands in,
which says so. Not covered: what prompts and replies of such rounds cost (`forecast`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from opsmith.records import Usage
from opsmith.store import Store
from opsmith.store.queries import RunSummary
from opsmith.store.rows import FUNCTIONAL, RoundInfo
from opsmith.store.spending import RunPace, read_pace

ADAPTIVE = "adaptive"  # `Settings.selection` as it is by default
MOST = 8  # runs that are asked, the latest
GUESS = "half of the open tasks are solved in each of the first two rounds and none later"


@dataclass(frozen=True)
class Precedent:
    """The rounds of a finished run, in shares of its tasks."""

    run: str  # "": a guess
    model: str
    asked: tuple[float, ...]  # by round that solves tasks: those that it asked for
    shown: tuple[float, ...]  # by such round: the demonstrations of its prompts
    improved: float = 0.0  # rounds that make programs better, each counted by the share that it asked for
    reply_tokens: float | None = None  # output of a sample or request, the mean; None: not known

    def list_rounds(self, tasks: int, limit: int | None) -> list[tuple[int, int]]:
        """(tasks, demonstrations) of each round that a run of so many tasks would take.

        >>> Precedent("", "", (1, 0.5, 0.1), (0, 0.5, 0.9)).list_rounds(4, None)
        [(4, 0), (2, 2), (1, 4)]
        """
        shares = zip(self.asked, self.shown, strict=True)
        return [(max(1, round(asked * tasks)), round(shown * tasks)) for asked, shown in shares][:limit]


def guess_rounds(levels: int, optimise: int) -> Precedent:
    """What is expected where no stored run tells: GUESS, then a round for each level; every second task is improved."""
    asked = (1.0, 0.5, *[0.25] * levels)
    shown = (0.0, 0.5, *[0.75 * (level + 1) / levels for level in range(levels)])
    return Precedent("", "", asked, shown, min(1, optimise) + max(0, optimise - 1) / 2)


def read_precedents(
    store: Store, settings: Mapping[str, Any], target: str, tasks: Collection[str]
) -> tuple[Precedent, ...]:
    """Of the latest finished runs that are like the one with these settings, by their flat names; () where none is.

    They are in its language, choose demonstrations as it does and have no smaller limit of rounds. Those of the same
    model are taken alone if there are any, and of these those of the same tasks; of another model only those of the
    same tasks.
    """
    alike = [run for run in store.list_runs() if run.finished and run.samples and _is_alike(run, settings, target)]
    own = [run for run in alike if run.info.model == settings["model"]]
    latest = (own or alike)[-4 * MOST :]
    same = [run for run in latest if {task.id for task in store.read_tasks(run.info.id)} == set(tasks)]
    return tuple(_read_precedent(store, run) for run in (same or own)[-MOST:])


def find_pace(store: Store, settings: Mapping[str, Any], target: str) -> RunPace | None:
    """Of the latest run that asked the model of these settings, where they do, in that language, however it ended."""
    where = ("model", "base_url")
    runs = [run.info for run in reversed(store.list_runs()) if run.samples and run.info.target == target]
    same = (run for run in runs if all(run.settings.get(name) == settings.get(name) for name in where))
    return next((pace for pace in (read_pace(store, run) for run in same) if pace is not None), None)


def _is_alike(run: RunSummary, settings: Mapping[str, Any], target: str) -> bool:
    stored = run.info.settings
    is_free = stored.get("budget_from") is None and stored.get("tokens_from") is None
    is_long = stored.get("max_rounds") in (None, settings.get("max_rounds"))
    is_equal = stored.get("selection", ADAPTIVE) == settings.get("selection", ADAPTIVE)
    is_improving = bool(stored.get("optimise")) == bool(settings.get("optimise"))
    return run.info.target == target and is_free and is_long and is_equal and is_improving


def _read_precedent(store: Store, run: RunSummary) -> Precedent:
    rounds = [info for info, _ in store.read_rounds(run.info.id)]
    tasks = max(1, *(len(info.attempted) for info in rounds)) if rounds else 1
    solving = [info for info in rounds if info.phase == FUNCTIONAL]
    improving = [info for info in rounds if info.phase != FUNCTIONAL]
    return Precedent(
        run.info.id,
        run.info.model,
        tuple(len(info.attempted) / tasks for info in solving),
        tuple(len(info.demonstrations) / tasks for info in solving),
        sum(len(info.attempted) for info in improving) / tasks,
        run.usage.output_tokens / max(run.samples, run.usage.requests) if run.usage.output_tokens else None,
    )


@dataclass(frozen=True)
class Outlook:
    """What a run that goes on is expected to ask for yet, at what a sample of it has taken so far."""

    samples: int
    usage: Usage
    basis: str  # what it follows from


def expect_rest(
    precedents: Sequence[Precedent], rounds: Sequence[RoundInfo], judged: int, spent: Usage, limit: int | None
) -> Outlook | None:
    """Of a run with these rounds so far, `judged` of whose samples have their verdict; None before there is any."""
    if not judged or not rounds[0].attempted:
        return None
    tasks, begun, open_tasks = len(rounds[0].attempted), len(rounds), len(rounds[-1].attempted)
    later = mean(
        sum(min(open_tasks, asked) for asked, _ in precedent.list_rounds(tasks, limit)[begun:])
        for precedent in precedents
    )
    under_way = max(0, sum(info.planned for info in rounds) - judged)
    samples = round(under_way + later * rounds[0].planned / tasks)
    return Outlook(samples, spent.scale(samples / judged), describe_basis(name_runs(precedents)))


def name_runs(precedents: Iterable[Precedent]) -> tuple[str, ...]:
    """The stored runs among them; () for the guess."""
    return tuple(precedent.run for precedent in precedents if precedent.run)


def describe_basis(runs: Sequence[str]) -> str:
    """What an expectation follows from.

    >>> describe_basis(["a", "b"])
    'as many rounds as finished runs like it took (a, b)'
    """
    if runs:
        return f"as many rounds as finished runs like it took ({', '.join(runs)})"
    return f"a guess, as no finished run like it is stored: {GUESS}"
