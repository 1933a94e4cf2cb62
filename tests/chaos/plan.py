"""Which requests fail, how, and how long does an answer take? A seeded plan: the same request meets the same fault.

    Plan(seed=1, share=0.3, kinds=("429", "reset"), latency=LogNormal(0.02, 1.0, most=0.5))

draws, for the n-th attempt at a request, whether it fails (with probability `share`), how (one of `kinds`, alike), and
the seconds before anything is sent. Nothing depends on the order in which requests arrive.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Latency(Protocol):
    """A distribution of seconds."""

    def draw(self, rng: random.Random) -> float: ...


@dataclass(frozen=True)
class Constant:
    seconds: float

    def draw(self, rng: random.Random) -> float:
        return self.seconds


@dataclass(frozen=True)
class Uniform:
    least: float
    most: float

    def draw(self, rng: random.Random) -> float:
        return rng.uniform(self.least, self.most)


@dataclass(frozen=True)
class LogNormal:
    """Most answers near the median, some many times later, none after `most`."""

    median: float
    sigma: float
    most: float

    def draw(self, rng: random.Random) -> float:
        return min(self.most, rng.lognormvariate(math.log(self.median), self.sigma))


@dataclass(frozen=True)
class Plan:
    seed: int = 0
    share: float = 0.0  # of attempts that fail
    kinds: Sequence[str] = ()  # names in `faults.FAULTS`
    latency: Latency = Constant(0.0)

    def fault(self, key: str, attempt: int) -> str | None:
        """How attempt number `attempt` (from 0) at the request `key` fails; None: it does not."""
        rng = random.Random(f"{self.seed} fault {key} {attempt}")
        return rng.choice(list(self.kinds)) if self.kinds and rng.random() < self.share else None

    def delay_s(self, key: str, attempt: int) -> float:
        return self.latency.draw(random.Random(f"{self.seed} delay {key} {attempt}"))


CALM = Plan()
