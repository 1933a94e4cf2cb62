"""The worker's part in measuring: it draws inputs at the sizes that are timed, says whether outputs are right on mixed
inputs, and counts the work. It runs authors' code, and has what a worker of verdicts answers as well."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import torch

from opsmith.judging.worker import serve_requests
from opsmith.measuring.work import count_work
from opsmith.problems.bindings import Bindings, bind_tensors
from opsmith.problems.drawing import make_seed, widen_data
from opsmith.problems.faults import TaskFault
from opsmith.problems.native import NativeDraw
from opsmith.problems.precision import dtype_of
from opsmith.records import Task, to_json
from opsmith.running.arena import Buffer
from opsmith.running.sandbox import Sandbox
from opsmith.targets.native.comparison import judge_pass
from opsmith.targets.native.layout import read_inputs
from opsmith.targets.native.trials import NativeTrialData, make_trials

_LARGE = 1 << 20  # bytes of inputs
_NAME = "while timed"  # how findings call the trial
_MOST_PREPARED = 16  # trials whose expected values are kept

Answer = dict[str, Any]
Sizes = tuple[tuple[str, int], ...]
_prepared: dict[str, NativeTrialData] = {}  # of this worker's task


def serve_measuring(fds: Sequence[int], sandbox: Sandbox) -> None:
    """Answer requests until the parent hangs up."""
    serve_requests(fds, sandbox, STEPS)


@dataclass
class MixedDraw(NativeDraw):
    """A draw whose inputs are given."""

    mixed: Bindings = field(kw_only=True)

    @cached_property
    def _data(self) -> tuple[Bindings, Bindings]:
        return self.mixed, widen_data(self.problem, self.mixed, make_seed(self.seed_text))


def encode_draw(text: str, sizes: Mapping[str, int], seed: int) -> bytes:
    """One draw of a task at these sizes in the form of a trial. Raises TaskFault."""
    trials = make_trials(text)
    draw = trials.data.make_draw("bench", dict(sizes), seed)
    return NativeTrialData([draw], False, trials.options).encoded_inputs


def _draw_inputs(task: Task, request: Answer) -> Answer:
    return {"blobs": [encode_draw(task.text, request["sizes"], request["seed"])]}


def _check_outputs(task: Task, request: Answer) -> Answer:
    """Whether the outputs of one call are right; undecided where the inputs lie too near to a discrete decision."""
    inputs, outputs = request["blobs"]
    trial = _prepare_trial(task, request, inputs)
    if trial is None:
        return {"is_undecided": True, "errors": []}
    answer = _judge_outputs(trial, outputs)
    del trial
    if len(inputs) > _LARGE:
        gc.collect()  # what a draw remembers is a circle
    return answer


def _prepare_check(task: Task, request: Answer) -> Answer:
    """Keep what is expected of inputs under a key, and forget what was kept of others than the last ones."""
    trial = _prepare_trial(task, request, request["blobs"][0])
    if trial is not None:
        _ = trial.limits, trial.layout
        _prepared[request["key"]] = trial
        while len(_prepared) > _MOST_PREPARED:
            del _prepared[next(iter(_prepared))]
    gc.collect()
    return {"is_undecided": trial is None}


def _check_prepared(task: Task, request: Answer) -> Answer:
    trial = _prepared.get(request["key"])
    return {"is_forgotten": True} if trial is None else _judge_outputs(trial, request["blobs"][0])


def _judge_outputs(trial: NativeTrialData, outputs: bytes) -> Answer:
    return {"is_undecided": False, "errors": to_json(judge_pass(_NAME, trial, outputs).errors)}


def _prepare_trial(task: Task, request: Answer, inputs: Buffer) -> NativeTrialData | None:
    """None: the inputs lie too near to a discrete decision."""
    base = _make_base(task.text, _read_sizes(request))
    mixed = _read_bindings(base, memoryview(inputs))
    draw = MixedDraw(base.standard, base.shape_set, base.overrides, 0, mixed=mixed)
    if draw.find_unclear(draw.declared, draw.wide):
        return None
    return NativeTrialData([draw], False, make_trials(task.text).options)


def _count_work(task: Task, request: Answer) -> Answer:
    work = count_work(make_trials(task.text).data.problem, dict(_read_sizes(request)))
    return {"work": to_json(work)}


def _read_bindings(base: NativeDraw, inputs: memoryview) -> Bindings:
    _, (arrays,) = read_inputs(inputs)
    tensors = {}
    for tensor, array in zip(base.problem.tensors, arrays, strict=True):
        numbers = torch.frombuffer(bytearray(array), dtype=dtype_of(tensor.type.dtype))
        tensors[tensor.name] = numbers.view(tensor.type.shape_at(base.declared.sizes))
    return bind_tensors(base.declared.sizes, tensors, dict(base.declared.namespace), False, base.declared.random_global)


@lru_cache(maxsize=4)
def _make_base(text: str, sizes: Sizes) -> NativeDraw:
    """Of which the names and the problem are taken."""
    return make_trials(text).data.make_draw("bench", dict(sizes), 0)


def _read_sizes(request: Answer) -> Sizes:
    return tuple(sorted(request["sizes"].items()))


def _or_problem(step: Callable[[Task, Answer], Answer]) -> Callable[[Task, Answer], Answer]:
    """The answer, or why there is none."""

    def answer_request(task: Task, request: Answer) -> Answer:
        try:
            return step(task, request)
        except TaskFault as fault:
            return {"problem": str(fault.diagnostic)}
        except Exception as error:
            return {"problem": f"{type(error).__name__}: {error}"}

    return answer_request


STEPS = {
    "draw_inputs": _or_problem(_draw_inputs),
    "check_timed": _or_problem(_check_outputs),
    "prepare_check": _or_problem(_prepare_check),
    "check_prepared": _or_problem(_check_prepared),
    "count_work": _or_problem(_count_work),
}
