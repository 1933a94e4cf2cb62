"""What a worker does: it judges candidates of the tasks that it is sent, until the parent hangs up.

Requests and answers are JSON, with bytes beside them in the worker's arena. A worker is confined before its first
answer, so that code of a task's author, which runs here and nowhere else, finds nothing to read, to write or to reach;
the target is imported before that. What a worker prints is lost: the answer is its only word. `forks` starts workers.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.judging.answers import check_form, read_scrutiny, read_verdict
from opsmith.judging.audit import audit_task
from opsmith.judging.executed_steps import ExecutedSteps
from opsmith.judging.plans import answer_plan
from opsmith.judging.timings import measure_timings
from opsmith.judging.verifier import charge_error, describe_error, leave_unjudged, verify, verify_many
from opsmith.records import Task, Verdict, to_json
from opsmith.running.arena import Arena
from opsmith.running.channel import read_frame, write_frame
from opsmith.running.sandbox import Sandbox, confine_worker, package_of
from opsmith.targets import Executed, TaskFault, get_target, is_own
from opsmith.targets.capabilities import estimate_cost, run_reference
from opsmith.targets.faults import error_of, find_fault
from opsmith.targets.protocols import Translated

Answer = Callable[[Task, dict[str, Any]], dict[str, Any]]


def serve_requests(fds: Sequence[int], sandbox: Sandbox, further: Mapping[str, Answer] = MappingProxyType({})) -> None:
    """Answer requests until the parent hangs up. `fds`: the socket and the arena. `further`: answers of others."""
    fd, arena = fds[0], Arena(fds[1])
    frame = read_frame(fd)
    if frame is not None:
        confine_worker(sandbox, _read_by_target(json.loads(frame)))
    desk = _Desk(arena, fd, further)
    while frame is not None:
        write_frame(fd, json.dumps(desk.answer_request(json.loads(frame))).encode())
        frame = read_frame(fd)


class _Desk:
    """One worker's requests. A task is sent once, with the first request that needs it."""

    def __init__(self, arena: Arena, fd: int, further: Mapping[str, Answer]) -> None:
        self._arena = arena
        self._judge = partial(_judged_outside, fd)
        self._tasks: dict[str, Task] = {}
        self._steps = {**ExecutedSteps().answers, **further}

    def answer_request(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["task"]:
            self._tasks[request["digest"]] = Task(**request["task"])
        blobs = [bytes(blob) for blob in self._arena.view_blobs(request.get("blobs", ()))]
        task = self._tasks[request["digest"]]
        answer_step = _ANSWERS.get(request["what"]) or self._steps[request["what"]]
        known = {"blobs": blobs, "judge": self._judge, "scrutiny": read_scrutiny(request)}
        answer = answer_step(task, {**request, **known})
        return {**answer, "blobs": self._arena.write_blobs(answer["blobs"])} if "blobs" in answer else answer


def _read_by_target(request: dict[str, Any]) -> list[Path]:
    """Where the first task's target is imported from. One that cannot be imported gets its message with the verdict."""
    with contextlib.suppress(Exception):
        return package_of(type(get_target(request["task"]["target"])).__module__)
    return []


def _judge_program(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    source = request["source"]
    try:
        answer: dict[str, Any] = to_json(verify(task, source, request["scrutiny"]))
        if is_own(task.target):
            check_form(answer)
    except BaseException as error:  # SystemExit and its like, raised by an author's code
        answer = to_json(leave_unjudged(source, *charge_error(task.target, error, "run_programs")))
    return answer


def _judge_programs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """Verdicts on many programs; where one of them breaks all, there are none, and each is asked for alone."""
    try:
        answer = {"verdicts": to_json(verify_many(task, request["sources"], request["scrutiny"]))}
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


def _plan_translation(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = get_target(task.target)
    assert isinstance(target, Translated), "who asks looks first"
    return target.plan_translation(task, request["source"], request["name"])


def _measure_timings(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return measure_timings(task, request["source"], request["candidates"], request["scrutiny"])


def _audit_task(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    is_executed = isinstance(get_target(task.target), Executed)
    judge = request["judge"] if is_executed else partial(verify, scrutiny=request["scrutiny"])
    return audit_task(task, request["source"], judge)


def _judged_outside(fd: int, task: Task, source: str) -> Verdict:
    """The verdict on a candidate that is executed: the parent has it judged, while this worker waits."""
    write_frame(fd, json.dumps({"judge": to_json(task), "source": source}).encode())
    frame = read_frame(fd)
    if frame is None:
        raise EOFError("nobody waits for this audit any more")
    return read_verdict(json.loads(frame), source)


_ANSWERS: dict[str, Answer] = {
    "verify": _judge_program,
    "verify_many": _judge_programs,
    "prepare": _prepare_task,
    "cost": _or_problem("estimate_cost", _estimate_cost),
    "timings": _or_problem("", _measure_timings),
    "plan": _or_problem("list_splits", answer_plan),
    "translate": _or_problem("plan_translation", _plan_translation),
    "audit": _or_problem("audit_task", _audit_task),
}
