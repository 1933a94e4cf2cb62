"""The mutation score: how often the verdict accepts a wrong program or refuses a right one, around one right program.

An accepted program is right by normal form, explained in the table of accepted changes, or a false accept until
somebody explains it. A refused program that is right by normal form or by construction is a false refusal, unless it
is not well-typed at some shape set, which terms do not show. Whatever else is refused may be right or wrong: the score
says nothing about it, but counts apart what is refused for rounding, in the declared precision after the same shape had
passed in float64.

The table is `accepted.yaml`: a list of entries with `why`, `tasks` and `changes`; every change of an entry is accepted
in every one of its tasks. A change that is not accepted any more is stale, and a full score says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from opsmith.records import Outcome, Stage, Task, Verdict
from opsmith_lab.step.mutation.populations import POPULATIONS, Mutant, Populations

JudgeAll = Callable[[Sequence[tuple[Task, str]]], Sequence[Verdict]]

EQUIVALENT, EXPLAINED, ROUNDING, UNJUDGED = "equivalent", "explained", "rounding", "unjudged"
FALSE_ACCEPT, FALSE_REFUSAL = "false accept", "false refusal"
FALSE = (FALSE_ACCEPT, FALSE_REFUSAL)


@dataclass(frozen=True)
class FalseVerdict:
    """A verdict that is false as far as we know."""

    what: str  # one of FALSE
    population: str
    change: str
    message: str  # of the verdict


@dataclass(frozen=True)
class MutationScore:
    """One task. `tallies`: population -> stage that refused, or one of the words above -> programs."""

    task: str
    tallies: Mapping[str, Mapping[str, int]]
    findings: tuple[FalseVerdict, ...]
    stale: tuple[str, ...]  # changes of the table that were not accepted; () for a sample

    @property
    def is_clean(self) -> bool:
        return not self.findings and not self.stale

    def count_programs(self, *words: str) -> int:
        """Programs of all populations with one of these ends; no word: all programs."""
        return sum(n for tally in self.tallies.values() for word, n in tally.items() if word in words or not words)


def score_populations(populations: Populations, judge_all: JudgeAll, table: Mapping[str, str]) -> MutationScore:
    """The score of one task. `table`: accepted change -> why the changed program is right."""
    mutants = list(populations.iterate_mutants())
    verdicts = judge_all([(mutant.task, mutant.source) for mutant in mutants])
    classified = [
        (mutant, verdict, _classify_end(mutant, verdict, table))
        for mutant, verdict in zip(mutants, verdicts, strict=True)
    ]
    tallies = {population: Counter[str]() for population in POPULATIONS}
    tallies["edits"].update(populations.refused)
    for mutant, _, end in classified:
        tallies[mutant.population][end] += 1
    findings = [
        FalseVerdict(end, mutant.population, mutant.change, verdict.message)
        for mutant, verdict, end in classified
        if end in FALSE
    ]
    accepted = {mutant.change for mutant, _, end in classified if end == EXPLAINED}
    stale = () if populations.sample else tuple(change for change in table if change not in accepted)
    return MutationScore(
        populations.task.id, {name: dict(tally) for name, tally in tallies.items()}, tuple(findings), stale
    )


def _classify_end(mutant: Mutant, verdict: Verdict, table: Mapping[str, str]) -> str:
    """The stage that refused it, or what its acceptance means."""
    if verdict.passed:
        unproven = EXPLAINED if mutant.change in table else FALSE_ACCEPT
        return EQUIVALENT if mutant.is_right else unproven
    if mutant.is_right and not _is_of_other_sizes(verdict):
        return FALSE_REFUSAL
    if verdict.outcome is Outcome.UNJUDGED:
        return UNJUDGED
    for_rounding = any("declared precision" in error.where for error in verdict.errors)
    return ROUNDING if for_rounding else verdict.stage.name


def _is_of_other_sizes(verdict: Verdict) -> bool:
    """Whether the program breaks a type rule at another shape set: a Reshape by a size that does not divide there."""
    return verdict.stage == Stage.RUN and any(error.kind == "TYPE" for error in verdict.errors)


def read_explanations(task: str) -> Mapping[str, str]:
    """Change -> why the changed program is right, for one task."""
    return {change: entry["why"] for entry in read_entries() if task in entry["tasks"] for change in entry["changes"]}


@lru_cache(maxsize=1)
def read_entries() -> tuple[Mapping[str, Any], ...]:
    """The table as it is written."""
    text = files("opsmith_lab.step.mutation").joinpath("accepted.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load(text) or ())
