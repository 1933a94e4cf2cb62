"""A program's ratio to torch, of two measurements: the program beside the plain program, and that one beside torch.

The first has a candidate in its process and both clocks; the second has none, so that its one clock is believed. The
chained ratio is claimed by the same rule as any other, with both intervals made wider by the second measurement's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opsmith.measuring.claims import Claim, explain_refusal, judge_ratio
from opsmith.measuring.intervals import Interval, chain_ratios
from opsmith.measuring.measure import SpeedRequest
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport, withhold_ratio
from opsmith.measuring.torch_partners import TorchFigure, TorchRequest, measure_torch

_SAME = Interval(1.0, 1.0, 1.0)  # of the plain program to itself


def chain_to_torch(request: SpeedRequest, reports: Sequence[SpeedReport], partner: str) -> list[SpeedReport]:
    """The reports of a request with ratios to `partner`, which is timed now. Raises BusyError."""
    if not any(report.measurement.time for report in reports):
        return [chain_report(report, partner, TorchFigure(reason=report.measurement.reason)) for report in reports]
    timed = TorchRequest(request.task, request.shape_sets, (partner,), request.grade, request.seed)
    comparisons = measure_torch(timed)
    return [
        chain_report(report, partner, comparisons[report.measurement.shape_set].figures[partner]) for report in reports
    ]


def chain_report(report: SpeedReport, partner: str, figure: TorchFigure) -> SpeedReport:
    """The report with a ratio to `partner` (eager, compile) in place of that to the plain program.

    A report without a ratio that misses none is of the plain program itself.
    """
    return replace(report, measurement=_chain_measurement(report.measurement, partner, figure))


def _chain_measurement(measurement: SpeedMeasurement, partner: str, figure: TorchFigure) -> SpeedMeasurement:
    if measurement.reason:
        return replace(measurement, sought_partner=partner)
    if figure.to_plain is None:
        return withhold_ratio(measurement, partner, figure.reason)
    precise = chain_ratios(measurement.ratio.precise if measurement.ratio else _SAME, figure.to_plain)
    if measurement.grade is MeasuringGrade.SCREEN:
        return replace(measurement, ratio=SpeedRatio(partner, precise))
    trusted = _chain_trusted(measurement.ratio, figure.to_plain)
    return _claim_ratio(measurement, partner, precise, trusted)


def _chain_trusted(ratio: SpeedRatio | None, to_plain: Interval) -> Interval | None:
    """None: the clock outside was not asked."""
    if ratio is None:
        return to_plain  # no candidate was beside it: its one clock is believed
    return chain_ratios(ratio.trusted, to_plain) if ratio.trusted is not None else None


def _claim_ratio(
    measurement: SpeedMeasurement, partner: str, precise: Interval, trusted: Interval | None
) -> SpeedMeasurement:
    if trusted is None:
        return replace(measurement, ratio=SpeedRatio(partner, precise))
    claim = judge_ratio(precise, trusted)
    if claim is Claim.REFUSED:
        return withhold_ratio(measurement, partner, explain_refusal(precise, trusted))
    return replace(measurement, ratio=SpeedRatio(partner, precise, trusted, claim))
