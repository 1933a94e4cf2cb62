"""Is a STeP task file itself right? Its checks, in the order in which they make sense.

data       can every trial be made: inputs with the margins and properties they state, a reference of the right form?
reference  does it give the same values when it is asked again?
program    does the file's own program pass?
answers    is every answer refused that a lazy program could give: zeros, ones, a constant, an input, another seed's?
tolerance  is it small beside the expected values?
inputs     does some output change when one input or parameter is drawn anew?
functions  is the own program refused when one of its functions does nothing?
"""

from __future__ import annotations

from collections.abc import Iterator

from opsmith.records import Task
from opsmith.targets.audited import Finding, Judge, State, check_program
from opsmith.targets.step import spec_of
from opsmith.targets.step.audit.answers import check_answers
from opsmith.targets.step.audit.functions import check_functions
from opsmith.targets.step.audit.inputs import check_inputs
from opsmith.targets.step.audit.material import Material
from opsmith.targets.step.audit.reference import check_data, check_reference, check_tolerance


def audit(task: Task, source: str | None, judge: Judge) -> Iterator[Finding]:
    """All findings on `task`, whose own program is `source`; a check that needs another one's success says so."""
    material = Material.of(spec_of(task.text))
    data = check_data(material)
    yield data
    if data.state is State.FAULTY:
        found = "the data of some trials cannot be made"
        yield from (Finding(name, State.UNCHECKED, "nothing", found) for name in _AFTER_DATA)
        return
    yield from check_reference(material)
    program, verdict = check_program(task, source, judge)
    yield program
    yield from check_answers(material)
    yield check_tolerance(material)
    yield from check_inputs(material)
    yield from check_functions(material, task, source if verdict is not None and verdict.passed else None, judge)


_AFTER_DATA = ("reference", "program", "answers", "tolerance", "inputs", "functions")
