"""What the compiler said when it built the program."""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.profiling.profiler import ProfileSubject, make_report
from opsmith.records import ProfileReport, Task
from opsmith.targets import get_target
from opsmith.targets.protocols import Equipped, Remarked


class RemarksProfiler:
    """Fits `Profiler`."""

    name = "remarks"
    is_quick = True

    def fits_task(self, task: Task) -> bool:
        return isinstance(get_target(task.target), Remarked)

    def explain_lack(self, task: Task) -> str:
        target = get_target(task.target)
        return target.explain_lack() if isinstance(target, Equipped) else ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        target = get_target(subject.task.target)
        if isinstance(target, Remarked):
            yield make_report(self.name, target.describe_build(subject.task, subject.source))
