"""One trial: run a checked program on a trial's data and compare; the expected values are made before it runs."""

from __future__ import annotations

from opsmith.records import Stage
from opsmith.targets import Trial, TrialResult
from opsmith.targets.step.execution.compare import compare
from opsmith.targets.step.execution.precision import default_dtype, default_of
from opsmith.targets.step.execution.run import RunError, elements, execute
from opsmith.targets.step.execution.trials import Case
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec


def judge(spec: TaskSpec, graph: Graph, trial: Trial) -> TrialResult:
    """RUN with its finding, or MATCH with what differs. Raises TaskFault for a mistake of the task's author."""
    case: Case = trial.data
    _ = case.limits  # computed once per trial, before any candidate has touched its data
    try:
        with default_dtype(default_of(case.is_wide)):
            results = execute(graph, case.bindings, _io_elements(spec, case))
    except RunError as error:
        return TrialResult(Stage.RUN, (error.diagnostic,))
    return compare(spec, trial, results)


def _io_elements(spec: TaskSpec, case: Case) -> int:
    streams = [*(entry.type for entry in (*spec.inputs, *spec.parameters)), *(output.type for output in spec.outputs)]
    return sum(elements(kind, case.sizes) for kind in streams)
