"""What a worker does: it judges candidates of the tasks that it is sent, until the parent hangs up.

Requests and answers are JSON. A worker is confined before its first answer, so that code of a task's author, which runs
here and nowhere else, finds nothing to read, to write or to reach; the target is imported before that. What a worker
prints is lost: the answer is its only word. `forks` starts workers.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from opsmith.errors import OpsmithError
from opsmith.judging.answers import check_findings, check_form, read_verdict
from opsmith.judging.audit import audit_task
from opsmith.judging.executed_audit import MOVED_ANSWER
from opsmith.judging.lazy_answers import lazy_answers, mixed_inputs, moved_answer
from opsmith.judging.timings import measure_timings
from opsmith.judging.verifier import (
    charge_error,
    check_program,
    describe_error,
    leave_unjudged,
    trials_of,
    verify,
    verify_many,
)
from opsmith.records import Boundary, Stage, Task, Verdict, to_json
from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_worker, package_of
from opsmith.targets import Executed, Target, TaskFault, Trial, TrialResult, get_target, is_own
from opsmith.targets.capabilities import estimate_cost, run_reference
from opsmith.targets.faults import error_of, find_fault, of_kind


class ExecutedTarget(Target, Executed, Protocol):
    """A target whose candidates are executed."""


Answer = Callable[[Task, dict[str, Any]], dict[str, Any]]


def serve_requests(fd: int, sandbox: Sandbox) -> None:
    """Answer requests until the parent hangs up. A task is sent once, with the first request that needs it."""
    tasks: dict[str, Task] = {}
    frame = read_frame(fd)
    if frame is not None:
        confine_worker(sandbox, _read_by_target(json.loads(frame)))
    while frame is not None:
        request = json.loads(frame) | {"judge": partial(_judged_outside, fd)}
        write_frame(fd, json.dumps(_answer_request(request, tasks)).encode())
        frame = read_frame(fd)


def _answer_request(request: dict[str, Any], tasks: dict[str, Task]) -> dict[str, Any]:
    if request["task"]:
        tasks[request["digest"]] = Task(**request["task"])
    return _ANSWERS[request["what"]](tasks[request["digest"]], request)


def _read_by_target(request: dict[str, Any]) -> list[Path]:
    """Where the first task's target is imported from. One that cannot be imported gets its message with the verdict."""
    with contextlib.suppress(Exception):
        return package_of(type(get_target(request["task"]["target"])).__module__)
    return []


def _judge_program(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    source = request["source"]
    try:
        answer: dict[str, Any] = to_json(verify(task, source))
        if is_own(task.target):
            check_form(answer)
    except BaseException as error:  # SystemExit and its like, raised by an author's code
        answer = to_json(leave_unjudged(source, *charge_error(task.target, error, "run_programs")))
    return answer


def _judge_programs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """Verdicts on many programs; where one of them breaks all, there are none, and each is asked for alone."""
    try:
        answer = {"verdicts": to_json(verify_many(task, request["sources"]))}
        if is_own(task.target):
            for verdict in answer["verdicts"]:
                check_form(verdict)
    except BaseException:
        return {"verdicts": None}
    return answer


def _prepare_task(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """Draw the task's data, so that the seconds of its first candidate are spent on the candidate."""
    with contextlib.suppress(Exception):  # the verdict will say it
        target = get_target(task.target)
        for trial in target.list_trials(task):
            run_reference(target, trial)
    return {}


def _or_problem(method: str, measure: Answer) -> Answer:
    """Figures about a program, or why there are none. `method`: of the target, if the figures are its word alone."""

    def answer_request(task: Task, request: dict[str, Any]) -> dict[str, Any]:
        try:
            figures = measure(task, request)
            json.dumps(figures)
        except (OpsmithError, TaskFault) as error:
            return {"problem": str(error)}
        except Exception as error:
            fault = error_of(task.target, error, method) if method and is_own(task.target) else find_fault(error)
            if fault is not None:
                return {"problem": str(fault), "fault": True}
            return {"problem": describe_error(error).given}
        return {"figures": figures}

    return answer_request


def _estimate_cost(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return dict(estimate_cost(get_target(task.target), task, request["source"]))


def _measure_timings(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return measure_timings(task, request["source"], request["candidates"])


def _audit_task(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    is_executed = isinstance(get_target(task.target), Executed)
    return audit_task(task, request["source"], request["judge"] if is_executed else verify)


def _judged_outside(fd: int, task: Task, source: str) -> Verdict:
    """The verdict on a candidate that is executed: the parent has it judged, while this worker waits."""
    write_frame(fd, json.dumps({"judge": to_json(task), "source": source}).encode())
    frame = read_frame(fd)
    if frame is None:
        raise EOFError("nobody waits for this audit any more")
    return read_verdict(json.loads(frame), source)


def _or_unjudged(method: str, step: Answer) -> Answer:
    """One step towards the verdict on a candidate that is executed, or the verdict when the step fails."""

    def answer_request(task: Task, request: dict[str, Any]) -> dict[str, Any]:
        source = request["source"]
        try:
            return step(task, request)
        except TaskFault as fault:
            return {"verdict": to_json(leave_unjudged(source, Boundary.TASK, fault.diagnostic))}
        except BaseException as error:
            return {"verdict": to_json(leave_unjudged(source, *charge_error(task.target, error, method)))}

    return answer_request


def _examine_source(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """What the static check found, and the names of the trials where it found nothing."""
    target = get_target(task.target)
    checked = check_program(target, task, request["source"])
    check_findings(checked.errors)
    names = [trial.name for trial in trials_of(target, task)] if checked.stage == Stage.RUN else []
    answer = {"stage": checked.stage, "errors": checked.errors, "warnings": checked.warnings, "trials": names}
    return dict(to_json(answer))


def _encode_inputs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = _get_executed(task)
    trial = target.list_trials(task)[request["trial"]]
    return {"inputs": base64.b64encode(target.encode_inputs(trial)).decode()}


def _compare_outputs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = _get_executed(task)
    trial = target.list_trials(task)[request["trial"]]
    result = of_kind(target.compare_outputs(trial, base64.b64decode(request["outputs"])), TrialResult)
    check_findings(result.errors, result.max_abs_error)
    return dict(to_json(result))


def _trial_names(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return {"trials": [trial.name for trial in trials_of(_get_executed(task), task)]}


def _try_lazy_answers(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """Whether answers to a trial pass that are not computed; those that do not fit there do not."""
    target, trials = _get_executed(task), trials_of(_get_executed(task), task)
    trial = trials[request["trial"]]
    right, first, neighbour = (base64.b64decode(request[name]) for name in ("right", "first", "other"))
    answers = dict(lazy_answers(right, first, neighbour, target.encode_inputs(trial)))
    passes: dict[str, bool | None] = {name: _accepts_outputs(target, trial, answer) for name, answer in answers.items()}
    moved = moved_answer(right)
    return {"passes": {**passes, MOVED_ANSWER: None if moved is None else _accepts_outputs(target, trial, moved)}}


def _accepts_outputs(target: Executed, trial: Trial, outputs: bytes | None) -> bool:
    if outputs is None:
        return False
    result = target.compare_outputs(trial, outputs)
    return result.stage == Stage.MATCH and not result.errors


def _mix_inputs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = _get_executed(task)
    drawn = [target.encode_inputs(trial) for trial in trials_of(target, task)]
    mixed = mixed_inputs(drawn[request["trial"]], drawn)
    return {"mixed": {name: data and base64.b64encode(data).decode() for name, data in mixed.items()}}


def _get_executed(task: Task) -> ExecutedTarget:
    target = get_target(task.target)
    if not isinstance(target, Executed):
        raise TypeError(f"target {target.name}: its candidates are not executed")
    return cast(ExecutedTarget, target)


_ANSWERS: dict[str, Answer] = {
    "verify": _judge_program,
    "verify_many": _judge_programs,
    "prepare": _prepare_task,
    "cost": _or_problem("estimate_cost", _estimate_cost),
    "timings": _or_problem("", _measure_timings),
    "audit": _or_problem("audit_task", _audit_task),
    "examine": _or_unjudged("check_program", _examine_source),
    "inputs": _or_unjudged("encode_inputs", _encode_inputs),
    "compare": _or_unjudged("compare_outputs", _compare_outputs),
    "trials": _or_unjudged("list_trials", _trial_names),
    "mislead": _or_unjudged("compare_outputs", _try_lazy_answers),
    "mix": _or_unjudged("encode_inputs", _mix_inputs),
}
