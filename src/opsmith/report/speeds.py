"""Tables of measurements: how fast programs are, beside whom, and what became slower since a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from opsmith.measuring.baseline import SpeedChange
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval, average_ratios
from opsmith.measuring.objectives import order_objectives
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedReport, describe_partner
from opsmith.records import TIME, Candidate, Objective
from opsmith.report.record import RATIO, SHARE, TEXT, DataTable, Said
from opsmith.report.tables import NOTHING, count_noun, list_names
from opsmith.results.bests import list_best
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import KeptExperience, SampleDetail

_UNITS = {"time": "ns", "GB/s": "GB/s", "GFLOP/s": "GFLOP/s", "of the limit": SHARE, "ratio": RATIO}


def tabulate_speeds(rows: Iterable[SpeedRow], is_of_run: bool = False, is_of_task: bool = False) -> DataTable:
    """A row for each shape set of one program; `is_of_run`: of each task's program, `is_of_task`: of each sample's."""
    columns = {"sample" if is_of_task else "task": TEXT} if is_of_run else {}
    columns |= {"shape set": TEXT, **_UNITS, "claim": TEXT, "grade": TEXT}
    cells = [
        [
            *([row.sample[:12] if row.sample else NOTHING] if is_of_task else []),
            *([Said(row.task, link=("task", row.task))] if is_of_run and not is_of_task else []),
            Said(row.shape_set, note=row.sizes) if is_of_run else f"{row.shape_set} ({row.sizes})",
            *row.figures,
            row.claim,
            row.grade,
        ]
        for row in rows
    ]
    return DataTable("speed" if is_of_run else "", columns, cells, ("grade", *list(_UNITS)[3:0:-1]))


def print_speeds(console: Console, speeds: Sequence[StoredSpeed], is_of_task: bool = False) -> None:
    """What `opsmith show` says of measurements; nothing where there are none. `is_of_task`: of several samples."""
    if speeds:
        rows = list(map(word_speed, speeds))
        console.print(tabulate_speeds(rows, is_of_run=True, is_of_task=is_of_task))
        console.print(*list_reasons(rows), f"speed   {summarise_speeds(speeds)}", sep="\n")


def list_notes(reports: Iterable[SpeedReport]) -> list[str]:
    """Why figures are missing, each reason once."""
    return [reason for reason in dict.fromkeys(map(explain_missing, reports)) if reason]


def tabulate_changes(changes: Iterable[SpeedChange]) -> DataTable:
    """A row for each measurement beside that of the baseline."""
    rows = [
        (
            change.now.shape_set,
            Said(NOTHING if change.ratio is None else str(change.ratio), change.ratio),
            change.compared or NOTHING,
            "slower" if change.is_regression else change.reason or "no regression",
        )
        for change in changes
    ]
    columns = dict.fromkeys(("shape set", "speed now by speed before", "by", "said"), TEXT)
    return DataTable("against the baseline", columns, rows)


_MOST_PLACES = 3  # that a reason names
_SCALES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True)
class SpeedRow:
    """One measurement in words. A figure that cannot be said is a dash, and `reason` says why."""

    task: str
    sample: str | None  # None: a baseline, or of no run
    shape_set: str
    sizes: str
    grade: str
    figures: tuple[Said, ...]  # time of one call, GB/s, GFLOP/s, share of the device's limit, ratio
    claim: str
    reason: str
    how: tuple[str, str, str]  # device and protocol; how often; flags of the build


@dataclass(frozen=True)
class SpeedSummary:
    """What the kept programs of a run gained over their partners, over tasks and shape sets of the full grade."""

    gain: Interval | None  # geometric mean of the ratios that may be said; its interval is of the measuring
    ratios: int  # behind it
    withheld: int  # measurements of the full grade without such a ratio
    screened: int  # measurements of the screening grade, which are in no headline
    objective: Objective = TIME

    def __str__(self) -> str:
        """
        >>> print(SpeedSummary(Interval(1.5, 1.4, 1.6), 6, 1, 0))
        1.500 [1.400, 1.600] times as fast as the partner, geometric mean of 6 measurements; 1 without a ratio
        """
        counts = [(self.withheld, "without a ratio"), (self.screened, "screened only, in no headline")]
        tail = "".join(f"; {count} {words}" for count, words in counts if count)
        if self.gain is None:
            return f"no ratio {'that may be published' if self.withheld else 'of the full grade'}{tail}"
        counted = f"geometric mean of {self.ratios} measurements{tail}"
        if self.objective.is_counted:
            more, less = ("partner", "program") if self.objective.is_less_better else ("program", "partner")
            costs = f"the {more}'s simulated {self.objective.unit} are {self.gain.value:.3f} times the {less}'s"
            return f"{costs}, {counted}"
        return f"{self.gain} times as fast as the partner, {counted}"


def summarise_speeds(speeds: Iterable[StoredSpeed]) -> SpeedSummary:
    """The headline of these measurements. Ratios that the trusted clock does not confirm are not in it."""
    measured = [speed.report.measurement for speed in speeds]
    objective = next(iter(order_objectives(measured)), TIME)  # of several figures the first: bytes are no speed
    measured = [measurement for measurement in measured if measurement.objective == objective]
    full = [measurement for measurement in measured if measurement.grade is MeasuringGrade.FULL]
    ratios = [
        ratio.precise
        for measurement in full
        if (ratio := measurement.ratio) is not None and ratio.claim is not Claim.IN_PROCESS
    ]
    counts = (len(ratios), len(full) - len(ratios), len(measured) - len(full))
    return SpeedSummary(average_ratios(ratios), *counts, objective)


def summarise_runs(store: Store) -> dict[str, str]:
    """By run, in a few words, what its kept programs gained over their partners; runs without measurements are left
    out."""
    gains = {}
    for run in store.list_measured_runs():
        summary = summarise_speeds(choose_kept(store.read_speeds(run), list_best(store, run)))
        words = (
            f"{summary.gain} of {summary.ratios}"
            if summary.gain is not None
            else "screened"
            if summary.screened
            else NOTHING
        )
        gains[run] = words
    return gains


def choose_kept(speeds: Sequence[StoredSpeed], solutions: Iterable[KeptExperience]) -> list[StoredSpeed]:
    """Those of the kept programs: of each task, shape set and partner the last one of the higher grade."""
    programs = {solution.experience.task.id: Candidate(solution.experience.source).id for solution in solutions}
    chosen: dict[tuple[str, ...], StoredSpeed] = {}
    for speed in sorted(speeds, key=lambda speed: speed.report.measurement.grade is MeasuringGrade.FULL):
        measurement = speed.report.measurement
        if programs.get(speed.task) == measurement.program:
            chosen[speed.task, measurement.shape_set, name_partner(measurement), measurement.objective.name] = speed
    return [speed for speed in speeds if speed in chosen.values()]


def choose_own(speeds: Iterable[StoredSpeed], detail: SampleDetail) -> list[StoredSpeed]:
    """Those of a sample's programs."""
    programs = {Candidate(candidate.source).id for candidate in detail.candidates if candidate.source is not None}
    return [speed for speed in speeds if speed.report.measurement.program in programs]


def name_partner(measurement: SpeedMeasurement) -> str:
    """Whom it was compared with, or was to be; "": nobody."""
    return measurement.ratio.partner if measurement.ratio is not None else measurement.sought_partner


def word_speed(speed: StoredSpeed) -> SpeedRow:
    """A stored measurement in words."""
    return word_report(speed.report, speed.task, speed.sample)


def word_report(report: SpeedReport, task: str = "", sample: str | None = None) -> SpeedRow:
    """A measurement in words."""
    measurement, share, time = report.measurement, report.share, report.measurement.time
    return SpeedRow(
        task=task,
        sample=sample,
        shape_set=measurement.shape_set,
        sizes=write_sizes(measurement.sizes),
        grade=measurement.grade.value,
        figures=(
            Said(NOTHING if time is None else write_time(time, measurement.objective), time),
            *(Said(write_figure(rate), rate) for rate in ((share.gbytes, share.gflops) if share else (None, None))),
            Said(write_percent(share.share if share else None), share.share if share else None),
            Said(_write_ratio(measurement), measurement.ratio and measurement.ratio.precise),
        ),
        claim=_write_claim(measurement),
        reason=explain_missing(report),
        how=_describe_measuring(measurement),
    )


def list_builds(rows: Iterable[SpeedRow]) -> list[str]:
    """Where, how and of which build the figures are: a line for each device, protocol and build."""
    often: dict[tuple[str, str], dict[str, None]] = {}
    for row in rows:
        where, times, flags = row.how
        often.setdefault((where, flags), {})[times] = None
    return [
        ", ".join(text for text in (where, " or ".join(filter(None, times)), flags) if text)
        for (where, flags), times in often.items()
    ]


def list_reasons(rows: Iterable[SpeedRow]) -> list[str]:
    """Why figures are missing: each reason once, with the first of the places where it holds."""
    places: dict[str, list[str]] = {}
    for row in rows:
        if row.reason:
            places.setdefault(row.reason, []).append(f"{row.task} {row.shape_set}".strip())
    return [f"{list_names(list(dict.fromkeys(own)), _MOST_PLACES)}: {reason}" for reason, own in places.items()]


def describe_speed(measurement: SpeedMeasurement) -> str:
    """A line of a log."""
    time, ratio = measurement.time, measurement.ratio
    words = [write_time(time, measurement.objective)] if time is not None else []
    if ratio is not None and measurement.objective.is_counted:
        words.append(_write_ratio(measurement))
    elif ratio is not None:
        words.append(f"{ratio.precise} times as fast as {describe_partner(ratio.partner)}")
    figures = ", ".join(words)
    return "; ".join(words for words in (figures, measurement.reason) if words)


def explain_missing(report: SpeedReport) -> str:
    """Why a figure of it is missing; "": none is."""
    if report.measurement.reason:
        return report.measurement.reason
    reason = report.share.reason if report.share is not None else ""
    return f"share of the limit: {reason}" if reason else ""


def write_sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def write_time(time: Interval, objective: Objective = TIME) -> str:
    """
    >>> write_time(Interval(1500.0, 1400.0, 1600.0))
    '1.500 [1.400, 1.600] µs'
    >>> write_time(Interval(1500.0, 1500.0, 1500.0), Objective("cycles", "cycles"))
    '1,500 cycles'
    """
    if objective.is_counted:
        return f"{write_count(time.value)} {objective.unit}"
    scale, name = next((scale, name) for scale, name in _SCALES if time.value >= scale or name == "ns")
    return f"{time.scale_by(1 / scale)} {name}"


def write_count(value: float) -> str:
    """A counted figure: what is no whole number in four digits."""
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.4g}"


def write_figure(figure: Interval | None) -> str:
    return NOTHING if figure is None else f"{figure.value:.2f}"


def write_interval(figure: Interval | None) -> str:
    """A figure with its interval."""
    return NOTHING if figure is None else str(figure)


def write_percent(share: Interval | None) -> str:
    return NOTHING if share is None else f"{100 * share.value:.0f} %"


def _describe_measuring(measurement: SpeedMeasurement) -> tuple[str, str, str]:
    device = measurement.device_name or measurement.device
    processes = f"{measurement.processes} process{'es' * (measurement.processes != 1)}"
    counts = f"{count_noun(measurement.pairs, 'pair')} in {processes}" if measurement.pairs else ""
    drawing = "inputs drawn anew" * bool(measurement.drawing)
    repeats = f"came again: {measurement.repeats}" if measurement.repeats else ""
    often = ", ".join(text for text in (counts, drawing, repeats) if text)
    return f"{device}, protocol {measurement.protocol}", often, measurement.flags


def _write_ratio(measurement: SpeedMeasurement) -> str:
    ratio = measurement.ratio
    if ratio is None:
        return NOTHING
    figure = f"{ratio.precise.value:.3f}" if measurement.objective.is_counted else str(ratio.precise)
    return f"{figure} to {describe_partner(ratio.partner)}"


def _write_claim(measurement: SpeedMeasurement) -> str:
    if measurement.ratio is None:
        return NOTHING if not measurement.sought_partner else "not said"
    if measurement.ratio.claim is not None:
        return measurement.ratio.claim.value
    return "none: simulated" if measurement.objective.is_counted else "none: a screen"
