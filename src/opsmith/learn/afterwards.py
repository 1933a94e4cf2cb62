"""What a run solved, measured when it is over: the same figures in the same place as those of `--measure`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from opsmith.learn.speeds import RightProgram, read_keys
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedReport
from opsmith.records import Task
from opsmith.store import Store
from opsmith.store.measurements import StoredSpeed, speed_rows

FillOrder = Callable[[SpeedOrder], Iterator[SpeedReport]]


def list_solved_programs(store: Store, run: str, own: Sequence[Task]) -> list[RightProgram]:
    """The solutions that the run found itself, by round and task.

    `own`: tasks with the programs of their files, which a store does not have; a solution of another task is measured
    alone.
    """
    task_by_digest = {task.digest: task for task in own}
    return [
        RightProgram(
            task_by_digest.get(earned.experience.task.digest, earned.experience.task), earned.experience.source, sample
        )
        for earned in store.read_experiences(run)
        if (sample := earned.sample) is not None
    ]


def measure_solved(
    store: Store, run: str, programs: Sequence[RightProgram], grade: MeasuringGrade, fill: FillOrder, is_again: bool
) -> Iterator[StoredSpeed]:
    """Measure what has no time yet, or all of it again, and store it; each is stored when it is given.

    What was stored without a time is tried once more. Raises StoreError.
    """
    measured = frozenset() if is_again else frozenset(read_keys(store, run, only_timed=True))
    for program in programs:
        start = time.monotonic()
        for report in fill(SpeedOrder(program.task, program.source, grade, measured)):
            speed = StoredSpeed(program.task.id, program.sample, report, time.monotonic() - start)
            store.put(speed_rows(run, speed)).result()
            yield speed
            start = time.monotonic()
