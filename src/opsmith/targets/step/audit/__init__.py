"""The audit of a STeP task file: the checks of its problem, and those that need the language.

program    does the file's own program pass?
functions  is the own program refused when one of its functions does nothing?
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opsmith.problems.audit.answers import check_answers
from opsmith.problems.audit.data import note_left_out, prepare_material
from opsmith.problems.audit.material import Material
from opsmith.problems.audit.reference import check_inputs, check_reference, check_tolerance, note_narrowing
from opsmith.problems.shape_sets import explain_shape_sets
from opsmith.records import Task
from opsmith.targets.audit import Finding, Judge, State, audit_program
from opsmith.targets.step.audit.functions import check_functions
from opsmith.targets.step.execution.bound import BoundDraw
from opsmith.targets.step.execution.data import StepDraw
from opsmith.targets.step.execution.trials import make_trials
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.trial import TaskFault

_AFTER_DATA = ("reference", "program", "answers", "tolerance", "inputs", "functions")


def audit_task(spec: TaskSpec, task: Task, source: str | None, judge: Judge) -> Iterator[Finding]:
    """All findings on `task`, whose own program is `source`; a check that needs another one's success says so."""
    for finding in _find_all(spec, task, source, judge):
        yield replace(finding, found=explain_shape_sets(spec.problem, finding.found))


def _find_all(spec: TaskSpec, task: Task, source: str | None, judge: Judge) -> Iterator[Finding]:
    material, data = prepare_material(lambda: make_trials(spec).data)
    yield data
    if material is None or data.state is State.FAULTY:
        reason = "the data of some trials cannot be made"
        yield from (Finding(name, State.UNCHECKED, "nothing", reason) for name in _AFTER_DATA)
        return
    yield from note_left_out(material)
    yield check_reference(material)
    program, verdict = audit_program(task, source, judge)
    yield program
    yield from check_answers(material)
    yield check_tolerance(material)
    yield from note_narrowing(_list_narrowing(spec, material))
    yield from check_inputs(material)
    yield from check_functions(spec, material, task, source if verdict is not None and verdict.passed else None, judge)


def _list_narrowing(spec: TaskSpec, material: Material[StepDraw]) -> list[str]:
    """The references and functions that compute with less than float64 in some trial."""
    references = [f"the reference of {name}" for name in material.narrowed_outputs]
    draws = [trial.draw.bound_wide for trial in material.wide_trials]
    return [*references, *(name for name in spec.fn_table if any(_computes_narrow(draw, name) for draw in draws))]


def _computes_narrow(draw: BoundDraw, name: str) -> bool:
    try:
        return draw.fns[name].narrows
    except TaskFault:  # it cannot be prepared, which whoever uses it is told
        return False
