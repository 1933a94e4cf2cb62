"""The best program of each task that a run has to give: one rule, which every room asks.

Best is the program with the highest geometric mean over all timed shape sets in a full grade beside the start program,
claimed to be faster at one of them at least and slower at none. Figures that are counted speak for themselves: they
need no grade and no claim. Where no program is so, the start stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval, average_ratios
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio
from opsmith.records import TIME, Candidate, Outcome
from opsmith.results.lineage import MeasuredPlace, choose_measured_figures, name_start, read_objective
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import KeptExperience


@dataclass(frozen=True)
class ProgramGrade:
    """What the full grade, or a count, says of a program beside the start program, at every place that is measured."""

    program: str  # Candidate.id
    ratios: Mapping[MeasuredPlace, SpeedRatio | None]  # None: it has no figure there
    reasons: Mapping[MeasuredPlace, str]  # why there is none

    @property
    def gain(self) -> Interval | None:
        """The geometric mean over all places; None where one of them has no figure."""
        ratios = [ratio.precise for ratio in self.ratios.values() if ratio is not None]
        return average_ratios(ratios) if len(ratios) == len(self.ratios) else None

    @property
    def is_better(self) -> bool:
        """Whether it may take the start program's place."""
        ratios = [ratio for ratio in self.ratios.values() if ratio is not None]
        is_complete, is_slower = len(ratios) == len(self.ratios), any(map(_is_slower, ratios))
        return is_complete and not is_slower and any(map(_is_faster, ratios))

    def explain_lack(self) -> str:
        """Why it may not take the start program's place; "": it may."""
        slower = [name for (_, name), ratio in self.ratios.items() if ratio is not None and _is_slower(ratio)]
        missing = [f"{name}: {reason}" for (_, name), reason in self.reasons.items()]
        if missing:
            return f"no figure at {'; '.join(missing)}"
        if slower:
            return f"slower at {', '.join(slower)}"
        return "" if self.is_better else "no difference shown"


def grade_programs(
    speeds: Sequence[StoredSpeed], start: str, figures: Sequence[str] = (TIME.name,)
) -> dict[str, ProgramGrade]:
    """By Candidate.id, of the programs of one task that have a figure, or a reason, at all places beside the start
    program: a grade that was interrupted is none. Places are all that anything of the task was measured at.
    """
    measured = [speed.report.measurement for speed in speeds if speed.report.measurement.objective.name in figures]
    places = sorted({(measurement.objective.name, measurement.shape_set) for measurement in measured})
    partner = name_start(speeds, start)
    costs = _read_costs(measured, start, partner)
    reports: dict[str, dict[MeasuredPlace, SpeedRatio | None]] = {}
    reasons: dict[str, dict[MeasuredPlace, str]] = {}
    for measurement in measured:
        place = (measurement.objective.name, measurement.shape_set)
        ratio, sought = measurement.ratio, measurement.sought_partner
        if measurement.objective.is_counted and measurement.time is not None and place in costs:
            share = measurement.objective.compare(measurement.time.value, costs[place])
            ratio, sought = SpeedRatio(partner, Interval(share, share, share)), ""
        elif measurement.grade is not MeasuringGrade.FULL or partner not in (sought, ratio and ratio.partner):
            continue
        reports.setdefault(measurement.program, {})[place] = None if sought else ratio
        reasons.setdefault(measurement.program, {})[place] = measurement.reason if sought else ""
    return {
        program: ProgramGrade(
            program,
            {place: ratios[place] for place in places},
            {place: reasons[program][place] for place in places if ratios[place] is None},
        )
        for program, ratios in reports.items()
        if program != start and ratios.keys() == {*places}
    }


def choose_best(grades: Iterable[ProgramGrade]) -> ProgramGrade | None:
    """None: the start stays. Of equal ones the first."""
    better = [(grade.gain.value, grade) for grade in grades if grade.is_better and grade.gain is not None]
    return max(better, key=lambda pair: pair[0])[1] if better else None


def list_best(store: Store, run: str, with_children: bool = False) -> list[KeptExperience]:
    """A run's solutions in their order, each with the best program that the run has for it; as of now, of a run that
    was stopped too. `with_children`: those of split tasks as well."""
    solutions = store.read_experiences(run, with_children)
    if store.find_optimisation(run) is None:
        return solutions
    speeds_of: dict[str, list[StoredSpeed]] = {}
    for speed in store.read_speeds(run):
        speeds_of.setdefault(speed.task, []).append(speed)
    right = [row for row in store.read_steps(run) if row.outcome is Outcome.PASSED]
    rows = {(row.task, row.candidate): row for row in reversed(right)}
    objective, bests = read_objective(store, run), []
    for start in solutions:
        experience, speeds, solution = start.experience, speeds_of.get(start.experience.task.id, []), start
        figures = choose_measured_figures(objective, speeds)
        grades = grade_programs(speeds, Candidate(experience.source).id, figures).values()
        best = choose_best(grade for grade in grades if (experience.task.id, grade.program) in rows)
        if best is not None and best.gain is not None:
            row = rows[experience.task.id, best.program]
            assert row.source is not None
            experience = replace(experience, source=row.source, round=row.round, origin=run, gain=best.gain.value)
            solution = KeptExperience(experience, row.sample, contaminated=False)
        bests.append(solution)
    return bests


def find_best(store: Store, run: str, digest: str) -> KeptExperience | None:
    """The best program that a run has for the task of that digest, one of a split task's too; None: it has none."""
    bests = list_best(store, run, with_children=True)
    return next((solution for solution in bests if solution.experience.task.digest == digest), None)


def _read_costs(measured: Sequence[SpeedMeasurement], start: str, partner: str) -> dict[MeasuredPlace, float]:
    """The start program's counted figures, by what stands beside it."""
    costs = {}
    for measurement in measured:
        place, time, ratio = (measurement.objective.name, measurement.shape_set), measurement.time, measurement.ratio
        if measurement.objective.is_counted and time is not None:
            if measurement.program == start:
                costs[place] = time.value
            elif ratio is not None and ratio.partner == partner:
                costs[place] = measurement.objective.find_other(time.value, ratio.precise.value)
    return costs


def _is_faster(ratio: SpeedRatio) -> bool:
    return ratio.claim is Claim.FASTER or (ratio.claim is None and ratio.precise.low > 1)


def _is_slower(ratio: SpeedRatio) -> bool:
    return ratio.claim is Claim.SLOWER or (ratio.claim is None and ratio.precise.high < 1)
