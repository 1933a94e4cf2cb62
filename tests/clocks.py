"""Bounds on time that hold on a machine that is slower, or busier, than the one they were written on.

with lasts_at_most(3.0):
    ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOP_S = 0.016  # what the loop takes where the bounds were written, with nothing beside it


def stretch_bound(seconds: float) -> float:
    """The bound, times how much longer a loop takes here and now; never less than the bound."""
    return seconds * max(1.0, _time_loop() / LOOP_S)


@contextmanager
def lasts_at_most(seconds: float, clock: Callable[[], float] = time.process_time) -> Iterator[None]:
    """What is inside ends within the stretched bound, by the clock."""
    start = clock()
    yield
    spent = clock() - start
    bound = stretch_bound(seconds)
    assert spent < bound, f"{spent:.2f} s; expected less than {bound:.2f} s, which is {seconds} s stretched"


def _time_loop() -> float:
    """By the wall's clock: who shares a core has less of it."""
    start = time.perf_counter()
    total = 0
    for number in range(400_000):
        total += number * number % 7
    return time.perf_counter() - start
