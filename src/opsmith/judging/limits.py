"""How long a verdict may take: the parent's deadlines, whatever a candidate or a task's author does.

A candidate has `candidate` seconds for all its trials. One that is executed has `trial` seconds for each of them too;
an interpreted one computes in its task's worker, where only the whole verdict can be stopped. What is made ready once
for a task is no candidate's doing and may take PREPARE_S, however little a candidate is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsmith.errors import UsageError
from opsmith.records import WHOLE_RUN, Diagnostic, Level

CANDIDATE_S = 60.0
TRIAL_S = 10.0
PREPARE_S = 10.0  # to draw a task's data and ask its reference, at least
FIGURES_S = 60.0  # for an audit, a cost model, a measurement, at least
MOST_S = 86_400.0  # a day
FULL_TIMES = 3  # as long, where the full level adds a hundred small trials, and passes to each
OPTIONS = {"candidate": "--candidate-seconds", "trial": "--trial-seconds"}


@dataclass(frozen=True)
class Limits:
    """Seconds, above 0 and at most MOST_S. Raises UsageError for others."""

    candidate: float = CANDIDATE_S
    trial: float = TRIAL_S
    times: int = 1  # what was asked for, where a level gives more

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            seconds = getattr(self, name)
            if not 0 < seconds <= MOST_S:
                raise UsageError(f"{option}: given {seconds:g}; expected seconds, above 0 and at most {MOST_S:g}")

    def at_level(self, level: Level) -> Limits:
        """Those of the trials of a level."""
        if level is not Level.FULL:
            return self
        candidate, trial = (min(MOST_S, FULL_TIMES * seconds) for seconds in (self.candidate, self.trial))
        return Limits(candidate, trial, FULL_TIMES)

    @property
    def of_task(self) -> float:
        """For an answer about a task's data, which the first candidate may have to wait for."""
        return max(PREPARE_S, self.candidate)

    def refuse_late(self, trial: str, of_all: bool) -> Diagnostic:
        """The finding against a program that passed the limit of a trial, or that of them all."""
        name, what = ("candidate", "all trials") if of_all else ("trial", "this trial")
        given = f"no outputs within {getattr(self, name):g} s for {what}"
        more = "" if self.times == 1 else f", which the full level takes times {self.times}"
        remedy = f"look for a loop or a wait; {OPTIONS[name]} sets the limit{more}"
        return Diagnostic("RUN", trial, given, WHOLE_RUN, remedy)

    @property
    def of_figures(self) -> float:
        return max(FIGURES_S, self.candidate)


def limits_of_run(settings: Mapping[str, Any], candidate: float | None = None, trial: float | None = None) -> Limits:
    """Those that a run was judged with, by its stored settings, where an option does not say otherwise."""
    stored = settings.get("candidate_seconds", CANDIDATE_S), settings.get("trial_seconds", TRIAL_S)
    return Limits(stored[0] if candidate is None else candidate, stored[1] if trial is None else trial)
