"""What an optimisation pass came to, problem by problem: the best program beside the plain one, with the same flags and
with the best of a few, torch eager and torch.compile, and the limit of the device. All at one shape set, by full grade;
flags and torch by a screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from opsmith.devices.describe import Device
from opsmith.measuring.chaining import chain_report
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval, average_ratios, chain_ratios
from opsmith.measuring.measure import choose_timed_sets
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.measuring.torch_partners import (
    COMPILE,
    EAGER,
    PARTNERS,
    TorchComparison,
    TorchFigure,
    TorchRequest,
    measure_torch,
)
from opsmith.records import Task
from opsmith_lab.bench.beside_plain import PlainTimer, describe_failure
from opsmith_lab.bench.flag_speeds import FlagSpeed, choose_best_flags, measure_flags

SHAPE = "large"  # the shape set of the bundled kernels that is largest
LARGE_GAIN = 1.5  # rows whose gain lies above it are counted


@dataclass(frozen=True)
class TunedProgram:
    """The best program of a pass, and how it was come by."""

    source: str
    attempts: int = 0  # samples
    right: int = 0  # of these
    changes: Sequence[str] = ()  # suggestions that led there, the first one first
    gain: Interval | None = None  # over the plain one at all timed sizes, by the pass's own full grade


@dataclass(frozen=True)
class TunedSpeed:
    """One problem. Times are ns of one call; ratios are of the best program, above 1 it is the faster one."""

    task: str
    shape_set: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    program: TunedProgram | None = None  # None: nothing is better than the plain one
    plain: Interval | None = None
    time: Interval | None = None
    ratio: Interval | None = None  # to plain, with the same flags
    claim: Claim | None = None  # that is made of it
    share: Interval | None = None  # of what the device allows
    flags: FlagSpeed | None = None  # the best for plain; None: those of the task
    over_flags: Interval | None = None  # to plain with those
    over_eager: Interval | None = None
    over_compile: Interval | None = None
    build: str = ""
    reasons: Sequence[str] = ()  # why figures are missing

    @property
    def is_gain(self) -> bool:
        """Whether it is shown to be faster than the plain one by both clocks."""
        return self.claim is Claim.FASTER


@dataclass(frozen=True)
class TunedSpeeds:
    """All problems of a pass, and what they were measured on."""

    device: Device
    rows: Sequence[TunedSpeed]

    @property
    def mean(self) -> Interval | None:
        """The geometric mean over the plain programs; a problem without a gain that is claimed counts as 1."""
        return average_ratios([row.ratio if row.is_gain and row.ratio else _SAME for row in self.rows])

    @property
    def mean_over_flags(self) -> Interval | None:
        """The same over the plain programs with the best flags, of rows that have that figure."""
        return average_ratios([row.over_flags for row in self.rows if row.over_flags is not None])

    @property
    def mean_over_torch(self) -> Interval | None:
        """Over the faster of eager and compile, of rows that have both figures."""
        pairs = [(row.over_eager, row.over_compile) for row in self.rows]
        return average_ratios(
            [min(eager, compiled, key=lambda ratio: ratio.value) for eager, compiled in pairs if eager and compiled]
        )

    @property
    def large_gains(self) -> int:
        """Problems whose gain lies above LARGE_GAIN, interval and all."""
        return sum(row.is_gain and row.ratio is not None and row.ratio.low > LARGE_GAIN for row in self.rows)


_SAME = Interval(1.0, 1.0, 1.0)
_NOT_ASKED = "torch was not asked for"


@dataclass
class TunedTable(PlainTimer):
    """Measures the rows of a pass."""

    shape: str = SHAPE
    with_torch: bool = True

    def measure_tasks(
        self, tasks: Sequence[Task], programs: Mapping[str, TunedProgram], tell: Callable[[str], None]
    ) -> TunedSpeeds:
        """`programs`: the best ones by task, where there is one that is not the task's own."""
        rows = []
        for number, task in enumerate(tasks, 1):
            tell(f"{task.id}: measured, {number} of {len(tasks)}")
            rows.append(self._measure_task(task, programs.get(task.id)))
        return TunedSpeeds(self.device, rows)

    def _measure_task(self, task: Task, program: TunedProgram | None) -> TunedSpeed:
        row = TunedSpeed(task.id, self.shape, program=program)
        try:
            timed = list(choose_timed_sets(task))
            shape_sets = choose_timed_sets(task, [self.shape if self.shape in timed else timed[-1]])
            row = replace(row, shape_set=next(iter(shape_sets)), sizes=next(iter(shape_sets.values())))
            flags = choose_best_flags(measure_flags(self.room, self.verify, task, row.shape_set))
            torch = self._time_torch(task, shape_sets)
            reports = self.time_program(
                task, program.source if program is not None else None, shape_sets, MeasuringGrade.FULL
            )
            report = next(reports, None)
        except Exception as error:
            return replace(row, reasons=[describe_failure(error)])
        return compose_row(replace(row, flags=flags, plain=torch.plain), report, torch)

    def _time_torch(self, task: Task, shape_sets: Mapping[str, Mapping[str, int]]) -> TorchComparison:
        if not self.with_torch:
            return TorchComparison(None, {partner: TorchFigure(reason=_NOT_ASKED) for partner in PARTNERS})
        (comparison,) = measure_torch(TorchRequest(task, shape_sets, PARTNERS, MeasuringGrade.SCREEN)).values()
        return comparison


def compose_row(row: TunedSpeed, report: SpeedReport | None, torch: TorchComparison) -> TunedSpeed:
    """The row with what was measured. Without a program that is faster all stands for the plain one."""
    measurement, share = (report.measurement, report.share) if report is not None else (None, None)
    ratio, time = (measurement.ratio, measurement.time) if measurement is not None else (None, None)
    precise = ratio.precise if ratio is not None else None
    reasons = [
        *row.reasons,
        measurement.reason if measurement is not None else "",
        share.reason if share is not None else "",
        *(figure.reason for figure in torch.figures.values()),
    ]
    over_torch = {name: _compare_torch(report, torch, name) for name in PARTNERS}
    return replace(
        row,
        plain=row.plain or (chain_ratios(time, precise) if time and precise else None),
        time=time,
        ratio=precise,
        claim=ratio.claim if ratio is not None else None,
        share=share.share if share is not None else None,
        over_flags=_compare_flags(_SAME if report is None else precise, row.flags),
        over_eager=over_torch[EAGER],
        over_compile=over_torch[COMPILE],
        build=measurement.flags if measurement is not None else "",
        reasons=list(dict.fromkeys(filter(None, reasons))),
    )


def _compare_flags(precise: Interval | None, flags: FlagSpeed | None) -> Interval | None:
    """To the plain program with the best flags; None where the ratio to plain is not known."""
    return (
        precise
        if precise is None or flags is None or flags.ratio is None
        else chain_ratios(precise, flags.ratio.invert())
    )


def _compare_torch(report: SpeedReport | None, torch: TorchComparison, name: str) -> Interval | None:
    """To torch; of the plain program where there is no other one."""
    if report is None:
        return torch.figures[name].to_plain
    chained = chain_report(report, name, torch.figures[name]).measurement.ratio
    return chained.precise if chained is not None else None
