"""One trial for many programs: run them on all draws, compare; the expected values are made before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from opsmith.problems.compare import FindHeld, take_larger
from opsmith.problems.precision import default_dtype, default_of
from opsmith.records import Stage
from opsmith.targets.step.execution.bounds import count_streamed
from opsmith.targets.step.execution.compare import compare_streams
from opsmith.targets.step.execution.data import StepTrialData
from opsmith.targets.step.execution.progress import Progress
from opsmith.targets.step.execution.run import Outputs, RunError, execute_batch, run_batch
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.trial import TaskFault, TrialResult

AT_ONCE = 1 << 23  # numbers streamed by the draws and programs that are executed together

Judged = TrialResult | TaskFault


def judge_programs(spec: TaskSpec, graphs: Sequence[Graph], case: StepTrialData) -> list[Judged]:
    """Per program: RUN with its finding, MATCH with what differs, or the fault of one of the task's functions.

    What fails to run on all draws at once is run draw by draw, so that the first draw decides.
    Raises TaskFault for a mistake of the task's author that concerns all of them.
    """
    results: dict[int, Judged] = {}
    work = _measure_work(graphs, case, results)
    _try_unread(graphs, work, case, results)
    together = {
        index: streamed * len(case.draws)
        for index, streamed in work.items()
        if streamed * len(case.draws) <= AT_ONCE and graphs[index].is_stackable
    }
    for portion in _cut_portions(together):
        results.update(_run_on_stack(graphs, portion, case))
    apart = {index: work[index] for index in work if index not in together or _did_not_run(results[index])}
    if len(case.draws) > 1:
        results = {index: result for index, result in results.items() if index not in apart}
    for single in case.singles:
        alive = {index: streamed for index, streamed in apart.items() if not _has_failed(results.get(index))}
        for portion in _cut_portions(alive):
            for index, result in _run_on_stack(graphs, portion, single).items():
                results[index] = _keep_worst(result, results.get(index))
    return [results[index] for index in range(len(graphs))]


def _did_not_run(result: Judged) -> bool:
    return isinstance(result, TaskFault) or result.stage == Stage.RUN


def _keep_worst(result: Judged, before: Judged | None) -> Judged:
    """The result with the largest error of all draws up to its own."""
    if isinstance(result, TaskFault) or not isinstance(before, TrialResult):
        return result
    if result.max_abs_error is None or before.max_abs_error is None:
        return result
    return replace(result, max_abs_error=take_larger(result.max_abs_error, before.max_abs_error))


def _measure_work(graphs: Sequence[Graph], case: StepTrialData, results: dict[int, Judged]) -> dict[int, int]:
    """How much each program streams in one draw; one that streams too much is found guilty."""
    single = case.singles[0]
    work = {}
    for index, graph in enumerate(graphs):
        try:
            work[index] = count_streamed(graph, single.stack, *single.extent)
        except RunError as error:
            results[index] = TrialResult(Stage.RUN, (error.diagnostic,))
        except TaskFault as fault:
            results[index] = fault
    return work


def _try_unread(graphs: Sequence[Graph], work: dict[int, int], case: StepTrialData, results: dict[int, Judged]) -> None:
    """Execute what no output depends on as well, for the faults of its fns: on the first draw of a task alone."""
    unread = {index: streamed for index, streamed in work.items() if graphs[index].has_unread_fns}
    if not unread or case.draws[0].label != "base seed 0":
        return
    _ = case.limits
    for portion in _cut_portions(unread):
        with default_dtype(default_of(case.is_wide)):
            outcomes = execute_batch([graphs[index] for index in portion], case.singles[0].stack, with_unread=True)
        for index, outcome in zip(portion, outcomes, strict=True):
            if isinstance(outcome, TaskFault):
                results[index] = outcome
                del work[index]


def _cut_portions(work: Mapping[int, int]) -> Iterator[list[int]]:
    """Programs to be executed together: as many as stream AT_ONCE numbers, at least one."""
    portion: list[int] = []
    total = 0
    for index, streamed in work.items():
        if portion and total + streamed > AT_ONCE:
            yield portion
            portion, total = [], 0
        portion.append(index)
        total += streamed
    if portion:
        yield portion


def _has_failed(result: Judged | None) -> bool:
    return isinstance(result, TaskFault) or (result is not None and bool(result.errors))


def _run_on_stack(graphs: Sequence[Graph], indices: Sequence[int], case: StepTrialData) -> dict[int, Judged]:
    _ = case.limits  # computed once, before any candidate has touched the data
    with default_dtype(default_of(case.is_wide)):
        run = run_batch([graphs[index] for index in indices], case.stack, case.is_base)
    progress = Progress(run, case.draws) if case.is_base else None
    result_by_outputs: dict[tuple[int, ...], TrialResult] = {}
    results: dict[int, Judged] = {}
    may_narrow = case.may_narrow()
    for number, index in enumerate(indices):
        outputs = run.read_outcome(run.batch.members[number])
        if isinstance(outputs, RunError):
            results[index] = TrialResult(Stage.RUN, (outputs.diagnostic,))
        elif isinstance(outputs, TaskFault):
            results[index] = outputs
        else:
            key = tuple(id(tensor) for fields in outputs for tensor in fields)
            if key not in result_by_outputs:
                find_held = None if progress is None else partial(progress.find_held, number)
                result_by_outputs[key] = (
                    _compare_narrowed(graphs[index], case, outputs, find_held)
                    if may_narrow
                    else compare_streams(case, outputs, find_held=find_held)
                )
            results[index] = result_by_outputs[key]
    return results


def _compare_narrowed(graph: Graph, case: StepTrialData, outputs: Outputs, find_held: FindHeld | None) -> TrialResult:
    """The comparison where code of the author computes with less than float64."""
    result = compare_streams(case, outputs, case.limits_for(graph), find_held)
    return replace(result, notes=case.describe_narrowing(graph))
