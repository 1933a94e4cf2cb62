"""Plans: what a target says of a task's splits, asked in a confined worker, and its answer as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from opsmith.errors import OpsmithError, UsageError
from opsmith.judging.answers import check_diagnostic
from opsmith.records import Diagnostic, Task, printable, to_json
from opsmith.splits import Split, split_from_json
from opsmith.targets import TaskFault, get_target
from opsmith.targets.protocols import Planned

MOST_SPLITS = 64  # in one answer
MOST_FINDINGS = 50  # in one answer
MOST_REASON = 2_000  # characters
MOST_WORDS = 300  # characters of what was given
MOST_NAME = 200  # characters


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
    splits = tuple(split_from_json(split) for split in data["splits"][:MOST_SPLITS])
    for split in splits:
        _check_names(split)
    findings = tuple(_read_finding(finding) for finding in data["findings"][:MOST_FINDINGS])
    return PlanAnswer(splits, findings, printable(str(data["reason"])[:MOST_REASON], "\n\t"))


def _check_names(split: Split) -> None:
    """Names become ids and names in code, whoever answered."""
    borders = [border.name for node in split.nodes for border in node.gives]
    for name in (*(node.name for node in split.nodes), *borders, *split.outputs):
        if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > MOST_NAME:
            raise ValueError(f"a split's name: given {str(name)[:MOST_NAME]!r}; expected an identifier")


def _read_finding(finding: Mapping[str, Any]) -> Diagnostic:
    """An exception of a split's own code has as many words as it needs to be understood."""
    diagnostic = Diagnostic(**finding)
    check_diagnostic(diagnostic)
    return replace(diagnostic, given=printable(diagnostic.given[:MOST_WORDS], "\n\t"))
