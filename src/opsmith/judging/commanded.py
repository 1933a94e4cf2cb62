"""Programs that commands run, as a simulator does: each run is a confined process of its own, gone when it ends.

The commands get artefacts and inputs and nothing else. What they leave is bytes, which the task's worker compares, and
cycles, where the simulator says them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opsmith.errors import UsageError
from opsmith.judging.executed import Answer, TaskWorker, build_checked
from opsmith.judging.execution import NotRunError
from opsmith.judging.limits import Limits
from opsmith.records import Diagnostic, Task
from opsmith.running.arena import Buffer
from opsmith.targets import Build, Built, Commanded
from opsmith.targets.runs import CommandRun, RunOutputs


@dataclass
class CommandedProgram:
    """A built program, ready to be run by commands. Fits `Execution`."""

    target: Commanded
    task: Task
    artefacts: Mapping[str, bytes]
    limits: Limits
    end: float  # of all its trials, by time.monotonic

    def ask_outputs(self, trial: str, inputs: Buffer) -> Buffer | Diagnostic:
        """Raises NotRunError, and ValueError for inputs that the task's worker should not have given."""
        end = min(self.end, time.monotonic() + self.limits.trial)
        outputs: list[bytes] = []
        for run in self._plan_runs(inputs):
            answer = self._run_once(trial, run, end)
            if isinstance(answer, Diagnostic):
                return answer
            outputs.append(answer.data)
        return b"".join(outputs)

    def close(self) -> None:
        """Nothing is left between two runs."""

    def run_first(self, trial: str, inputs: Buffer) -> RunOutputs | Diagnostic:
        """The first run of a trial alone. Raises what `ask_outputs` does."""
        return self._run_once(trial, self._plan_runs(inputs)[0], min(self.end, time.monotonic() + self.limits.trial))

    def _plan_runs(self, inputs: Buffer) -> Sequence[CommandRun]:
        try:
            return self.target.plan_runs(self.task, self.artefacts, inputs)
        except Exception as error:
            raise ValueError(f"inputs that are none: {error}") from error

    def _run_once(self, trial: str, run: CommandRun, end: float) -> RunOutputs | Diagnostic:
        from opsmith.running.commands import CommandFailure, run_commands  # noqa: PLC0415 - few languages need it

        seconds = end - time.monotonic()
        if seconds <= 0:
            return self.limits.refuse_late(trial, end == self.end)
        result = run_commands(run.order, replace(run.limits, seconds=min(run.limits.seconds, seconds)))
        if isinstance(result, CommandFailure):
            raise NotRunError(self.task.target, result.reason)
        if result.is_late and seconds <= run.limits.seconds:
            return self.limits.refuse_late(trial, end == self.end)
        answer = run.read_result(result)
        return replace(answer, where=trial) if isinstance(answer, Diagnostic) else answer


def start_commands(target: Commanded, task: Task, build: Build | None, limits: Limits) -> CommandedProgram:
    """What runs a build; without one, the source's own text is not run: a target that is commanded is built."""
    if build is None:
        raise NotRunError(task.target, "no build; a target with `plan_runs` has `build_program` too")
    return CommandedProgram(target, task, build.artefacts, limits, time.monotonic() + limits.candidate)


def count_cycles(target: Commanded, worker: TaskWorker, limits: Limits) -> dict[str, Any]:
    """The cycles of one run at the base sizes, and what else it says of its time. Raises UsageError for a program that
    cannot be run there, and where nothing is said."""
    examined = worker.ask_step("examine")
    _refuse_verdict(worker, examined)
    errors = [str(error["given"]) for error in examined["errors"]]
    build = build_checked(target, worker.task, worker.source) if isinstance(target, Built) and not errors else None
    if build is not None and build.failure:
        raise NotRunError(worker.task.target, build.failure)
    errors += [str(error) for error in build.errors] if build is not None else []
    if errors:
        raise UsageError(f"cost of task {worker.task.id}: {errors[0]}")
    answer = worker.ask_step("begin")
    _refuse_verdict(worker, answer)
    name = str(answer["trial"]["name"])
    outputs = start_commands(target, worker.task, build, limits).run_first(name, answer["blobs"][0])
    if isinstance(outputs, Diagnostic):
        raise UsageError(f"cost of task {worker.task.id}: {outputs}")
    if outputs.cycles is None and not outputs.profile:
        raise UsageError(
            f"target {worker.task.target!r} has no cost model, and no line of its run says cycles; try: `verify "
            "--show-commands` shows what a run prints, and run.cycles in the language file is matched with each line"
        )
    profile = {"profile": outputs.profile} if outputs.profile else {}
    return {"cycles": outputs.cycles, "at": name, **profile}


def _refuse_verdict(worker: TaskWorker, answer: Answer) -> None:
    verdict = worker.read_verdict(answer)
    if verdict is not None:
        raise UsageError(f"cost of task {worker.task.id}: {verdict.message}")
