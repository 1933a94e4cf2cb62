"""The usual harness, stated again: five draws at the base sizes, outputs compared with `allclose`, and nothing else.

It is what most work on generated kernels compares with, here so that a reader sees which programs pass it and not a
verdict. Programs still run confined, on this machine: nothing of others is executed elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from opsmith.judging.executed import TaskWorker, build_checked
from opsmith.judging.execution import Launcher, NotStartedError, start_process
from opsmith.judging.limits import CANDIDATE_S, TRIAL_S, Limits
from opsmith.judging.pool import WITHOUT_TORCH
from opsmith.judging.worker import serve_requests
from opsmith.records import Diagnostic, Stage, Task
from opsmith.running.nursery import Nursery, Services
from opsmith.running.sandbox import Sandbox
from opsmith.targets import Built, get_target

DRAWS = 5
TOLERANCE = 1e-2  # relative and absolute
WORKERS = Services(
    "opsmith.running.preload:load_torch",
    "opsmith.judging.preload:load_language",
    {"worker": "opsmith_lab.bench.usual_harness:serve_usual"},
)
_ANSWER_S = 120.0

Answer = dict[str, Any]


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
        except (OSError, EOFError, TimeoutError, LookupError, NotStartedError):
            return None
        finally:
            self._workers.kill(worker)

    def _run_built(self, asked: TaskWorker) -> bool:
        target = get_target(asked.task.target)
        assert isinstance(target, Built)
        build = build_checked(target, asked.task, asked.source)
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


# -- in a worker of the task


def serve_usual(fds: Sequence[int], sandbox: Sandbox) -> None:
    """Answer requests until the parent hangs up."""
    serve_requests(fds, sandbox, STEPS)


def _judge_interpreted(task: Task, request: Mapping[str, Any]) -> Answer:
    """STeP: the program as it is interpreted, in the declared types."""
    from opsmith.targets.step.execution.data import StepTrialData  # noqa: PLC0415 - imports torch
    from opsmith.targets.step.execution.run import execute_batch  # noqa: PLC0415
    from opsmith.targets.step.execution.trials import make_trials  # noqa: PLC0415

    checked = get_target(task.target).check_program(task, request["source"])
    if checked.stage != Stage.RUN:
        return {"is_close": False}
    data = make_trials(checked.program.spec).data
    draws = [data.make_draw("base", {}, seed) for seed in range(DRAWS)]
    (outputs,) = execute_batch([checked.program.report.graph], StepTrialData(draws, False).stack)
    if isinstance(outputs, Exception):
        return {"is_close": False}
    expected = [[tensor for row in draw.values for tensor in row] for draw in draws]
    results = [[tensor[number] for fields in outputs for tensor in fields] for number in range(DRAWS)]
    return {"is_close": _are_close(results, expected)}


def _draw_inputs(task: Task, request: Mapping[str, Any]) -> Answer:
    return {"blobs": [_draw_trial(task).encoded_inputs]}


def _compare_outputs(task: Task, request: Mapping[str, Any]) -> Answer:
    from opsmith.targets.native.comparison import read_results  # noqa: PLC0415 - imports torch

    trial = _draw_trial(task)
    rows = [tensor for row in read_results(trial, request["blobs"][0]) for tensor in row]
    results = [[tensor[number] for tensor in rows] for number in range(DRAWS)]
    expected = [[tensor for row in draw.values for tensor in row] for draw in trial.draws]
    return {"is_close": _are_close(results, expected)}


def _draw_trial(task: Task) -> Any:
    from opsmith.targets.native.trials import NativeTrialData, make_trials  # noqa: PLC0415 - imports torch

    trials = make_trials(task.text)
    draws = [trials.data.make_draw("base", {}, seed) for seed in range(DRAWS)]
    return NativeTrialData(draws, False, trials.options)


def _are_close(results: Sequence[Sequence[Any]], expected: Sequence[Sequence[Any]]) -> bool:
    import torch  # noqa: PLC0415

    pairs = [pair for rows in zip(results, expected, strict=True) for pair in zip(*rows, strict=True)]
    return all(
        result.shape == value.shape
        and torch.allclose(result.double(), value.double(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        for result, value in pairs
    )


STEPS = {
    "usual_program": _judge_interpreted,
    "usual_inputs": _draw_inputs,
    "usual_outputs": _compare_outputs,
}
