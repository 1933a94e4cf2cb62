"""Is a task file itself right? Asked of its target, in a worker.

An audit asks what no verdict on a candidate can: would a wrong answer pass, does every input and every function matter,
is the reference a function of its inputs? It executes code of the task's author, so everything but tests asks
`Pool.audit`. It shows weak data, not that a reference means what its author had in mind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from opsmith.records import Task, to_json
from opsmith.targets import get_target
from opsmith.targets.audit import Finding, Judge, State, audit_program
from opsmith.targets.protocols import Audited


def audit_task(task: Task, source: str, judge: Judge) -> dict[str, Any]:
    """The findings on a task whose own program is `source` ("": it has none), as JSON; for worker processes."""
    target = get_target(task.target)
    ask = target.audit_task if isinstance(target, Audited) else _program_only
    return {"findings": [to_json(finding) for finding in ask(task, source or None, judge)]}


def findings_from_json(answer: Mapping[str, Any]) -> tuple[Finding, ...]:
    return tuple(Finding(**{**row, "state": State(row["state"])}) for row in answer["findings"])


def _program_only(task: Task, source: str | None, judge: Judge) -> Iterator[Finding]:
    yield audit_program(task, source, judge)[0]
    yield Finding("data", State.UNCHECKED, "nothing", f"the target {task.target} has no audit of its own")
