"""What a trial at far sizes would cost, estimated from what torch is asked for at smaller ones, never from a clock.

All sizes that are far are scaled down to two steps, one twice the other; as the work grows from one to the other, so
it is taken to grow from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

STEPS = (64, 128)
NEAR = 160  # at sizes up to it, trials cost what those of the task cost
MAX_CALLS = 20_000  # of torch, in one trial at far sizes ...
MAX_NUMBERS = 2**26  # ... which make so many numbers

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Work:
    """What an action asks of torch."""

    calls: float
    numbers: float

    def is_affordable(self) -> bool:
        return self.calls <= MAX_CALLS and self.numbers <= MAX_NUMBERS


class _Counter(TorchFunctionMode):
    """Counts the calls of torch that come from Python, and the numbers that they give."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.numbers = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls += 1
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            self.numbers += tensor.numel() if isinstance(tensor, Tensor) else 0
        return result


def count_work(action: Callable[[], object]) -> Work:
    """The work of an action, which is done."""
    with _Counter() as counter, torch.no_grad():
        action()
    return Work(counter.calls, counter.numbers)


def estimate_work(action: Callable[[Sizes], object], sizes: Sizes) -> Work:
    """The work of an action at far sizes, by doing it at smaller ones. What it raises there is raised."""
    before, now = (count_work(lambda: action(_scale_sizes(sizes, step))) for step in STEPS)  # noqa: B023 - called at once
    doublings = max(math.log2(size / STEPS[1]) for size in sizes.values())
    return Work(
        _extrapolate_work(before.calls, now.calls, doublings), _extrapolate_work(before.numbers, now.numbers, doublings)
    )


def is_near(sizes: Sizes) -> bool:
    return max(sizes.values(), default=0) <= NEAR


def _scale_sizes(sizes: Sizes, step: int) -> dict[str, int]:
    return {name: size if size <= NEAR else step for name, size in sizes.items()}


def _extrapolate_work(before: float, now: float, doublings: float) -> float:
    growth: float = max(1.0, now / max(before, 1.0)) ** doublings
    return now * growth
