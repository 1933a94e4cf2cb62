"""The usual harness, stated again: five draws at the base sizes, outputs compared with `allclose`, and nothing else.

It is what most work on generated kernels compares with, here so that a reader sees which programs pass it and not a
verdict. Programs still run confined, on this machine: nothing of others is executed elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType

from opsmith.judging.executed import TaskWorker, build_checked
from opsmith.judging.execution import Launcher, start_process
from opsmith.judging.limits import CANDIDATE_S, TRIAL_S, Limits
from opsmith.judging.pool import WITHOUT_TORCH
from opsmith.records import Diagnostic, Task
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets import Build, Built, get_target
from opsmith.targets.native.calls import PROGRAM
from opsmith.targets.native.layout import DEPLOYED
from opsmith.targets.protocols import Timed

WORKERS = Services(
    "opsmith.running.preload:load_torch",
    "opsmith.judging.preload:load_language",
    {"worker": "opsmith_lab.bench.usual_worker:serve_usual"},
)
_ANSWER_S = 120.0


class UsualRoom:
    """Workers of tasks, and processes of programs. A context manager; fits `UsualHarness`."""

    def __init__(self) -> None:
        self._workers, self._programs = Nursery(WORKERS), Nursery(WITHOUT_TORCH)
        self._sandbox, self._limits = Sandbox(), Limits(CANDIDATE_S, TRIAL_S)

    def __enter__(self) -> UsualRoom:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._workers.close()
        self._programs.close()

    def accepts(self, task: Task, source: str) -> bool | None:
        """None: the harness could not ask."""
        worker = self._workers.fork_worker(self._sandbox)
        try:
            asked = TaskWorker(worker, task, source, _ANSWER_S)
            if not isinstance(get_target(task.target), Built):
                return bool(asked.ask_step("usual_program")["is_close"])
            return self._run_built(asked)
        except Exception:
            return None  # it cannot be read or called at all, or the machine lacks something: no verdict is lost by it
        finally:
            self._workers.kill(worker)

    def _run_built(self, asked: TaskWorker) -> bool:
        target = get_target(asked.task.target)
        assert isinstance(target, Built)
        build = _build_program(target, asked.task, asked.source)
        if build.errors or build.failure:
            return False
        inputs = asked.ask_step("usual_inputs")["blobs"][0]
        process = start_process(Launcher(self._programs, self._sandbox, self._limits), asked.task, asked.source, build)
        try:
            outputs = process.ask_outputs("usual", inputs)
            if isinstance(outputs, Diagnostic):
                return False
            return bool(asked.ask_step("usual_outputs", [outputs])["is_close"])
        finally:
            process.close()


def _build_program(target: Built, task: Task, source: str) -> Build:
    """As it is timed, where the language times programs on a processor: without hooks of ours."""
    if not isinstance(target, Timed):
        return build_checked(target, task, source)
    build = target.build_timed(task, source)
    return replace(build, artefacts={DEPLOYED: build.artefacts[PROGRAM]} if build.artefacts else {})
