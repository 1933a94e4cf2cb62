"""Programs that commands run, as a simulator does: each run is a confined process of its own, gone when it ends.

The commands get artefacts and inputs and nothing else. What they leave is bytes, which the task's worker compares, and
cycles, where the simulator says them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from opsmith.errors import VerifierError
from opsmith.judging.limits import OPTIONS, Limits
from opsmith.records import Diagnostic, Task
from opsmith.running.arena import Buffer
from opsmith.running.commands import CommandFailure, run_commands
from opsmith.targets import Commanded
from opsmith.targets.runs import PlannedRun, RunOutputs


@dataclass
class CommandedProgram:
    """A built program, ready to be run by commands. Fits `Execution`."""

    target: Commanded
    task: Task
    artefacts: Mapping[str, bytes]
    limits: Limits
    end: float  # of all its trials, by time.monotonic
    cycles: dict[str, int] = field(default_factory=dict)  # of the trials that were run, by name; all draws together

    def ask_outputs(self, trial: str, inputs: Buffer) -> Buffer | Diagnostic:
        """Raises VerifierError where a command could not be run at all."""
        end = min(self.end, time.monotonic() + self.limits.trial)
        outputs: list[RunOutputs] = []
        for run in self.target.plan_runs(self.task, self.artefacts, inputs):
            answer = self._run_once(trial, run, end)
            if isinstance(answer, Diagnostic):
                return answer
            outputs.append(answer)
        self._note_cycles(trial, outputs)
        return b"".join(answer.data for answer in outputs)

    def close(self) -> None:
        """Nothing is left between two runs."""

    def _run_once(self, trial: str, run: PlannedRun, end: float) -> RunOutputs | Diagnostic:
        seconds = max(end - time.monotonic(), 0.0)
        result = run_commands(run.order, replace(run.limits, seconds=min(run.limits.seconds, seconds)))
        if isinstance(result, CommandFailure):
            raise VerifierError(f"verifier: {result.reason}")
        if result.is_late and end - time.monotonic() <= 0:
            return self._describe_timeout(trial, end)
        answer = run.read_result(result)
        return replace(answer, where=trial) if isinstance(answer, Diagnostic) else answer

    def _note_cycles(self, trial: str, outputs: list[RunOutputs]) -> None:
        counts = [answer.cycles for answer in outputs if answer.cycles is not None]
        if len(counts) == len(outputs):
            self.cycles[trial] = sum(counts)

    def _describe_timeout(self, trial: str, end: float) -> Diagnostic:
        seconds, what, option = (self.limits.trial, "this trial", OPTIONS["trial"])
        if end == self.end:
            seconds, what, option = (self.limits.candidate, "all trials", OPTIONS["candidate"])
        remedy = f"look for a loop or a wait; {option} sets the limit"
        return Diagnostic("RUN", trial, f"no outputs within {seconds:g} s for {what}", "outputs", remedy)
