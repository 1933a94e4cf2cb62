"""A target whose programs say what shall happen to the worker that runs them, line by line."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from opsmith.records import Diagnostic, Scrutiny, Stage, Task
from opsmith.targets import Checked, TaskFault, Trial, TrialResult
from opsmith.targets.hidden import HiddenTrials

FINDING = Diagnostic("DATA", "S0", "2", "1", line=1, text="wrong")
TASK = Task("scripted_0", "scripted_target:SCRIPTED", "a task")


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Skipped(Trial):
    """One of three is left out."""

    def left_out(self) -> str:
        return "trial 1 is left out" if self.data == 1 else ""


class Scripted:
    name = "scripted"
    verifier = "scripted-1"
    comment = "#"
    stages = ("PARSE", "TYPE", "AFFINE")

    def base_prompt(self, role: str) -> str | None:
        return None

    def read_task(self, text: str, task_id: str, path: str = "") -> Task:
        return Task(task_id, TASK.target, text, path=path)

    def read_program(self, task: Task, text: str) -> str | None:
        return text if text.split()[:1] in (["right"], ["wrong"]) else None

    def check_program(self, task: Task, source: str) -> Checked:
        if source.startswith("refuse "):
            return Checked(Stage(source.split()[1]), errors=(FINDING,))
        if source == "break the check":
            raise KeyError("check")
        return Checked(Stage.RUN, program=source.split("#", maxsplit=1)[0].strip(), warnings=("seen",))

    def list_trials(self, task: Task) -> Sequence[Trial]:
        if "no trials" in task.text:
            return ()
        kind = Skipped if "left out" in task.text else Trial
        return [kind(f"trial {number}", number) for number in range(3)]

    def run_programs(self, programs: Sequence[Any], trial: Trial) -> list[TrialResult | TaskFault]:
        return [self._run(str(text), trial) for text in programs]

    def _run(self, text: str, trial: Trial) -> TrialResult | TaskFault:
        word, *rest = text.split()
        try:
            found: TrialResult = getattr(self, f"_{word}")(trial, *rest)
        except TaskFault as fault:
            return fault
        return found

    def hidden_trials(self, task: Task, program: str, scrutiny: Scrutiny) -> HiddenTrials | None:
        """Of `hidden WORD`: two trials at which `WORD` is run."""
        if not program.startswith("hidden"):
            return None
        return HiddenTrials(iter([Trial("X = 7", 7), Trial("X = 8", 8)]), ["not tried at X = 9"])

    def _hidden(self, trial: Trial, word: str) -> TrialResult:
        if trial.data < 7:
            return self._right(trial)
        found: TrialResult = getattr(self, f"_{word}")(trial)
        return found

    def run_reference(self, trial: Trial) -> object:
        return trial.data

    def canonical_form(self, source: str) -> str:
        if source == "not canonical":
            raise ValueError(source)
        return source.split("#", maxsplit=1)[0].strip()

    def _right(self, trial: Trial) -> TrialResult:
        return TrialResult(Stage.MATCH, max_abs_error=1e-7 * trial.data)

    def _noted(self, trial: Trial) -> TrialResult:
        return TrialResult(Stage.MATCH, notes=("by eye", f"at {trial.name}"))

    def _wrong(self, trial: Trial) -> TrialResult:
        if trial.data < 1:
            return self._right(trial)
        return TrialResult(Stage.MATCH, (FINDING,), max_abs_error=1.0)

    def _odd(self, trial: Trial) -> TrialResult:
        return TrialResult(Stage.MATCH, max_abs_error=np.float32(0.5))  # type: ignore[arg-type]

    def _nan(self, trial: Trial) -> TrialResult:
        return TrialResult(Stage.MATCH, (FINDING,), max_abs_error=float("nan"))

    def _sleep(self, trial: Trial, seconds: str = "60") -> TrialResult:
        time.sleep(float(seconds))
        return self._right(trial)

    def _die(self, trial: Trial) -> TrialResult:
        os.kill(os.getpid(), 9)
        raise AssertionError

    def _once(self, trial: Trial, path: str) -> TrialResult:
        """Dies at the first try, is right at the second."""
        if not Path(path).exists():
            Path(path).touch()
            os.kill(os.getpid(), 9)
        return self._right(trial)

    def _exit(self, trial: Trial) -> TrialResult:
        raise SystemExit(0)

    def _unprintable(self, trial: Trial) -> TrialResult:
        raise _Unprintable

    def _memory(self, trial: Trial) -> TrialResult:
        raise MemoryError

    def _memory_of_torch(self, trial: Trial) -> TrialResult:
        try:
            torch.empty(1 << 60)
        except RuntimeError as error:
            raise TaskFault(Diagnostic("FN", "fn_x", "no memory", "")) from error
        raise AssertionError

    def _fault(self, trial: Trial) -> TrialResult:
        raise TaskFault(Diagnostic("FN", "fn_x", "1", "2"))

    def _print(self, trial: Trial) -> TrialResult:
        os.write(1, b"noise")
        return self._right(trial)

    def _threads(self, trial: Trial, expected: str) -> TrialResult:
        return self._right(trial) if torch.get_num_threads() == int(expected) else self._wrong(Trial("", 1))

    def _environment(self, trial: Trial, name: str) -> TrialResult:
        return self._wrong(Trial("", 1)) if name in os.environ else self._right(trial)


SCRIPTED: Any = Scripted()
