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
from pathlib import Path
from typing import Any

from opsmith.errors import OpsmithError
from opsmith.records import Boundary, Stage, Task, to_json
from opsmith.targets import Checked, Executed, TaskFault, get_target
from opsmith.verification.audit import audit
from opsmith.verification.bench import timings
from opsmith.verification.channel import read_frame, write_frame
from opsmith.verification.sandbox import Sandbox, confine_worker, package_of
from opsmith.verification.verifier import describe, unjudged, verify, verify_many

Answer = Callable[[Task, dict[str, Any]], dict[str, Any]]


def work(fd: int, sandbox: Sandbox) -> None:
    """Answer requests until the parent hangs up. A task is sent once, with the first request that needs it."""
    tasks: dict[str, Task] = {}
    frame = read_frame(fd)
    if frame is not None:
        confine_worker(sandbox, _read_by_target(json.loads(frame)))
    while frame is not None:
        write_frame(fd, json.dumps(_answer(json.loads(frame), tasks)).encode())
        frame = read_frame(fd)


def _answer(request: dict[str, Any], tasks: dict[str, Task]) -> dict[str, Any]:
    if request["task"]:
        tasks[request["digest"]] = Task(**request["task"])
    return _ANSWERS[request["what"]](tasks[request["digest"]], request)


def _read_by_target(request: dict[str, Any]) -> list[Path]:
    """Where the first task's target is imported from. One that cannot be imported gets its message with the verdict."""
    with contextlib.suppress(Exception):
        return package_of(type(get_target(request["task"]["target"])).__module__)
    return []


def _verdict(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    try:
        verdict = verify(task, request["source"])
    except BaseException as error:  # SystemExit and its like, raised by an author's code
        verdict = unjudged(request["source"], Boundary.OURS, describe(error))
    found: dict[str, Any] = to_json(verdict)
    return found


def _verdicts(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """Verdicts on many programs; where one of them breaks all, there are none, and each is asked for alone."""
    try:
        return {"verdicts": to_json(verify_many(task, request["sources"]))}
    except BaseException:
        return {"verdicts": None}


def _or_problem(measure: Answer) -> Answer:
    """Figures about a program, or why there are none."""

    def answer(task: Task, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"figures": measure(task, request)}
        except (OpsmithError, TaskFault) as error:
            return {"problem": str(error)}
        except Exception as error:
            return {"problem": describe(error).given}

    return answer


def _cost(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return dict(get_target(task.target).cost(task, request["source"]))


def _timings(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return timings(task, request["source"], request["candidates"])


def _audit(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    return audit(task, request["source"])


def _or_unjudged(step: Answer) -> Answer:
    """One step towards the verdict on a candidate that is executed, or the verdict when the step fails."""

    def answer(task: Task, request: dict[str, Any]) -> dict[str, Any]:
        source = request["source"]
        try:
            return step(task, request)
        except TaskFault as fault:
            return {"verdict": to_json(unjudged(source, Boundary.TASK, fault.diagnostic))}
        except BaseException as error:
            return {"verdict": to_json(unjudged(source, Boundary.OURS, describe(error)))}

    return answer


def _examined(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    """What the static check found, and the names of the trials where it found nothing."""
    target = get_target(task.target)
    checked: Checked = target.check(task, request["source"])
    names = [trial.name for trial in target.trials(task)] if checked.stage is Stage.RUN else []
    if checked.stage is Stage.RUN and not names:
        raise RuntimeError(f"target {target.name}: no trials for task {task.id}")
    found = {"stage": checked.stage, "errors": checked.errors, "warnings": checked.warnings, "trials": names}
    return dict(to_json(found))


def _inputs(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = _executed(task)
    trial = get_target(task.target).trials(task)[request["trial"]]
    return {"inputs": base64.b64encode(target.inputs(trial)).decode()}


def _compared(task: Task, request: dict[str, Any]) -> dict[str, Any]:
    target = _executed(task)
    trial = get_target(task.target).trials(task)[request["trial"]]
    return dict(to_json(target.compare(trial, base64.b64decode(request["outputs"]))))


def _executed(task: Task) -> Executed:
    target = get_target(task.target)
    if not isinstance(target, Executed):
        raise TypeError(f"target {target.name}: its candidates are not executed")
    return target


_ANSWERS: dict[str, Answer] = {
    "verify": _verdict,
    "verify_many": _verdicts,
    "cost": _or_problem(_cost),
    "timings": _or_problem(_timings),
    "audit": _or_problem(_audit),
    "examine": _or_unjudged(_examined),
    "inputs": _or_unjudged(_inputs),
    "compare": _or_unjudged(_compared),
}
