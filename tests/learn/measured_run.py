"""A run whose solutions are measured by a scripted device, killed at each step and begun again.

Run as a program: `python measured_run.py STORE`. Every session is a process of its own, which ends itself by SIGKILL at
the first step that no earlier session reached: when a measurement is ordered, and when one is stored. What is measured
is added to STORE.measured; at the end the number of killed sessions is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from killed_run import run_until_done  # noqa: E402
from tiny_run import SETTINGS, TASKS, InProcess, TinyModel  # noqa: E402

from opsmith.learn.events import Event, ProgramMeasured  # noqa: E402
from opsmith.learn.loop import improve  # noqa: E402
from opsmith.measuring.intervals import Interval  # noqa: E402
from opsmith.measuring.orders import SpeedOrder, name_measurement  # noqa: E402
from opsmith.measuring.record import SpeedMeasurement, SpeedRatio, SpeedReport  # noqa: E402
from opsmith.records import TIME, Candidate, Task, content_hash  # noqa: E402
from opsmith.store import Store  # noqa: E402

MEASURED = SETTINGS.replace(measure="screen", max_rounds=2)
SHAPES = ("small", "large")


def script_report(order: SpeedOrder, shape: str) -> SpeedReport:
    """Figures that depend on program and shape set alone."""
    program = Candidate(order.source).id
    nanoseconds = 1.0 + int(content_hash(program, shape)[:4], 16)
    figure = Interval(nanoseconds, nanoseconds, nanoseconds)
    measurement = SpeedMeasurement(
        program=program, problem=order.task.digest, shape_set=shape, sizes={"N": len(shape)}, device="scripted",
        protocol="scripted/1", flags="", grade=order.grade, objective=TIME, time=figure,
        ratio=SpeedRatio("plain", figure), pairs=1, processes=1,
    )  # fmt: skip
    return SpeedReport(measurement, None)


class ScriptedMeasurer:
    """A measuring device of the test's own, behind the real protocol."""

    def __init__(self) -> None:
        self.orders: list[SpeedOrder] = []
        self.measured: list[tuple[str, str]] = []  # (task, shape set)

    def explain_lack(self, task: Task) -> str:
        return ""

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        self.orders.append(order)
        for shape in SHAPES:
            report = script_report(order, shape)
            if name_measurement(order.task.id, report.measurement) not in order.measured:
                self.note_measured(order.task.id, shape)
                yield report

    def note_measured(self, task: str, shape: str) -> None:
        self.measured.append((task, shape))


def run_session(path: str) -> None:
    """Ends itself at a step that no session before it has reached."""
    steps = Path(f"{path}.steps")
    reached = set(steps.read_text().splitlines()) if steps.exists() else set()

    def end_at(step: str) -> None:
        if step not in reached:
            with steps.open("a") as log:
                log.write(f"{step}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    class Logged(ScriptedMeasurer):
        def note_measured(self, task: str, shape: str) -> None:
            end_at(f"ordered {task} {shape}")
            with Path(f"{path}.measured").open("a") as log:
                log.write(f"{task} {shape}\n")

    def watch(event: Event) -> None:
        if isinstance(event, ProgramMeasured):
            end_at(f"stored {event.speed.task} {event.speed.report.measurement.shape_set}")

    with Store.open(path) as store:
        improve(TASKS, TinyModel(), MEASURED, store, judge=InProcess(), measurer=Logged(), on_event=watch)


def main() -> None:
    killed, code = run_until_done(lambda: run_session(sys.argv[1]))
    print(killed)
    sys.exit(code)


if __name__ == "__main__":
    main()
