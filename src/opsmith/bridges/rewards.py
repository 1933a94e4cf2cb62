"""The reward of a right reply: 1, and up to 1 more for speed where that is asked for and a screen shows it.

With r the lower end of the geometric mean, over the task's timed sizes, of the screen's ratios to the task's own
program: reward = 1 + min(1, log2(r)) where r > 1.03, else 1. So a program that is twice as fast gets 2, one whose gain
lies within the noise 1, and so does one without a figure at any of the sizes: a reward is never made of what cannot be
said. A screen runs in one process, by a clock that the program shares: it steers a search and proves nothing.
"""

from __future__ import annotations

import atexit
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from opsmith import api
from opsmith.errors import OpsmithError
from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.intervals import average_ratios
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import Task

if TYPE_CHECKING:
    from opsmith.executors.local_measurer import LocalMeasurer

RIGHT = 1.0
MOST_FOR_SPEED = 1.0


@dataclass(frozen=True)
class SpeedReward:
    """What a right program gets beside RIGHT. `ratio` None: it cannot be said, and `reason` says why."""

    bonus: float  # 0 to MOST_FOR_SPEED
    ratio: float | None = None  # the geometric mean
    low: float | None = None  # the lower end of its interval
    reason: str = ""

    @property
    def plain_facts(self) -> dict[str, object]:
        return {"bonus": self.bonus, "ratio": self.ratio, "low": self.low, "reason": self.reason}


def score_speed(reports: Sequence[SpeedReport]) -> SpeedReward:
    """The bonus for what was measured at each of a task's timed sizes."""
    ratios = [report.measurement.ratio for report in reports]
    mean = average_ratios([ratio.precise for ratio in ratios if ratio is not None])
    missing = [report.measurement for report in reports if report.measurement.ratio is None]
    if mean is None or missing:
        first = missing[0].reason if missing else "nothing was measured"
        return SpeedReward(0.0, reason=first or "it was compared with nobody: it is the task's own program")
    bonus = min(MOST_FOR_SPEED, math.log2(mean.low)) if mean.low > LEAST_GAIN else 0.0
    return SpeedReward(bonus, mean.value, mean.low)


async def reward_speed(task: Task, program: str, trust_tasks: bool) -> SpeedReward:
    """The bonus of a right program, measured here while nobody else measures."""
    measurer = _start_measurer(trust_tasks)
    if lack := measurer.explain_lack(task):
        return SpeedReward(0.0, reason=lack)
    try:
        order = SpeedOrder(task, program, MeasuringGrade.SCREEN)
        return score_speed([report async for report in measurer.measure(order)])
    except OpsmithError as error:
        return SpeedReward(0.0, reason=str(error))


@cache
def _start_measurer(trust_tasks: bool) -> LocalMeasurer:
    from opsmith.executors.local_measurer import LocalMeasurer  # noqa: PLC0415  (only where speed is asked for)

    measurer = LocalMeasurer(api.default_pool(trust_tasks))
    atexit.register(measurer.close)
    return measurer
