"""Plans: what a target says of a task's splits, asked in a confined worker, and its answer as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from opsmith.errors import OpsmithError, UsageError
from opsmith.records import Diagnostic, Split, Task, split_from_json, to_json
from opsmith.targets import TaskFault, get_target
from opsmith.targets.protocols import Planned

MOST_SPLITS = 64  # in one answer


@dataclass(frozen=True)
class PlanAnswer:
    """Splits, or what is wrong with one. `reason`: why there is no split, in words."""

    splits: tuple[Split, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    reason: str = ""


def answer_plan(task: Task, request: Mapping[str, Any]) -> dict[str, Any]:
    """In a worker: the answer to one question, as JSON. What is wrong with the task is a reason."""
    target = get_target(task.target)
    if not isinstance(target, Planned):
        raise UsageError(f"the target {task.target} cannot split tasks")
    try:
        answer = _answer_question(target, task, request)
    except (OpsmithError, TaskFault) as error:
        answer = PlanAnswer(reason=str(error))
    return dict(to_json(answer))


def _answer_question(target: Planned, task: Task, request: Mapping[str, Any]) -> PlanAnswer:
    if request["question"] == "list":
        splits = tuple(islice(target.list_splits(task), min(request["most"], MOST_SPLITS)))
        return PlanAnswer(splits, reason="" if splits else "the task cannot be split into parts that all do work")
    split = split_from_json(request["split"])
    if request["question"] == "check":
        return PlanAnswer(findings=target.find_split_faults(task, split))
    changed = target.renegotiate(task, split, request["node"])
    return PlanAnswer() if changed is None else PlanAnswer((changed,))


def read_plans(data: Mapping[str, Any]) -> PlanAnswer:
    """The inverse, for what a worker answers. Raises ValueError, TypeError or LookupError for what is no answer."""
    splits = tuple(split_from_json(split) for split in data["splits"])
    findings = tuple(Diagnostic(**finding) for finding in data["findings"])
    return PlanAnswer(splits, findings, str(data["reason"]))
