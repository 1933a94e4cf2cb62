"""The usual harness's part in a worker of the task: it draws inputs, runs STeP's programs, and compares outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from opsmith.judging.worker import serve_requests
from opsmith.records import Stage, Task
from opsmith.running.sandbox import Sandbox
from opsmith.targets import get_target
from opsmith.targets.native.comparison import read_results
from opsmith.targets.native.layout import DEPLOYED, Pass, read_outputs
from opsmith.targets.native.trials import NativeTrialData, make_trials
from opsmith.targets.protocols import Timed
from opsmith.targets.step.execution.data import StepTrialData
from opsmith.targets.step.execution.run import execute_batch
from opsmith.targets.step.execution.trials import make_trials as make_step_trials

DRAWS = 5
TOLERANCE = 1e-2  # relative and absolute

Answer = dict[str, Any]
_CALLED = Pass(DEPLOYED, canary=0, heap=0, poison=0, is_ordinary=True)  # arrays in the heap, zeros in outputs


def serve_usual(fds: Sequence[int], sandbox: Sandbox) -> None:
    """Answer requests until the parent hangs up."""
    serve_requests(fds, sandbox, STEPS)


def _judge_interpreted(task: Task, request: Mapping[str, Any]) -> Answer:
    """STeP: the program as it is interpreted, in the declared types."""

    checked = get_target(task.target).check_program(task, request["source"])
    if checked.stage != Stage.RUN:
        return {"is_close": False}
    data = make_step_trials(checked.program.spec).data
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
    trial = _draw_trial(task)
    passes = read_outputs(trial.layout, request["blobs"][0])
    if not isinstance(passes, list):
        return {"is_close": False}
    rows = [tensor for row in read_results(trial, bytes(passes[0])) for tensor in row]
    results = [[tensor[number] for tensor in rows] for number in range(DRAWS)]
    expected = [[tensor for row in draw.values for tensor in row] for draw in trial.draws]
    return {"is_close": _are_close(results, expected)}


def _draw_trial(task: Task) -> NativeTrialData:
    trials = make_trials(task.text)
    draws = [trials.data.make_draw("base", {}, seed) for seed in range(DRAWS)]
    trial = NativeTrialData(draws, False, trials.options)
    if isinstance(get_target(task.target), Timed):
        trial.layout = replace(trial.layout, passes=(_CALLED,))
    return trial


def _are_close(results: Sequence[Sequence[Tensor]], expected: Sequence[Sequence[Tensor]]) -> bool:
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
