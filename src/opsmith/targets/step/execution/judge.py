"""One trial for many programs: run them on all draws, compare; the expected values are made before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from opsmith.records import Stage
from opsmith.targets.step.execution.compare import compare, larger
from opsmith.targets.step.execution.precision import default_dtype, default_of
from opsmith.targets.step.execution.run import RunError, execute_batch, streamed_elements
from opsmith.targets.step.execution.trials import Case
from opsmith.targets.step.language.graph import Graph
from opsmith.targets.step.language.spec import TaskSpec
from opsmith.targets.trial import TaskFault, TrialResult

AT_ONCE = 1 << 23  # numbers streamed by the draws and programs that are executed together

Judged = TrialResult | TaskFault


def judge(spec: TaskSpec, graphs: Sequence[Graph], case: Case) -> list[Judged]:
    """Per program: RUN with its finding, MATCH with what differs, or the fault of one of the task's functions.

    What fails to run on all draws at once is run draw by draw, so that the first draw decides.
    Raises TaskFault for a mistake of the task's author that concerns all of them.
    """
    found: dict[int, Judged] = {}
    work = _work(spec, graphs, case, found)
    together = {at: numbers * len(case.draws) for at, numbers in work.items() if _fits(graphs[at], case, numbers)}
    for part in _portions(together):
        found.update(_on_one_stack(spec, graphs, part, case))
    apart = {at: work[at] for at in work if at not in together or _did_not_run(found[at])}
    if len(case.draws) > 1:
        found = {at: judged for at, judged in found.items() if at not in apart}
    for single in case.singles:
        alive = {at: numbers for at, numbers in apart.items() if not _has_failed(found.get(at))}
        for part in _portions(alive):
            for at, judged in _on_one_stack(spec, graphs, part, single).items():
                found[at] = _with_worst(judged, found.get(at))
    return [found[at] for at in range(len(graphs))]


def _did_not_run(judged: Judged) -> bool:
    return isinstance(judged, TaskFault) or judged.stage is Stage.RUN


def _with_worst(judged: Judged, before: Judged | None) -> Judged:
    """The result with the largest error of all draws up to its own."""
    if isinstance(judged, TaskFault) or not isinstance(before, TrialResult):
        return judged
    if judged.max_abs_error is None or before.max_abs_error is None:
        return judged
    return replace(judged, max_abs_error=larger(judged.max_abs_error, before.max_abs_error))


def _work(spec: TaskSpec, graphs: Sequence[Graph], case: Case, found: dict[int, Judged]) -> dict[int, int]:
    """How much each program streams in one draw; one that streams too much is found guilty."""
    stack = case.singles[0].stack
    streams = [*(entry.type for entry in (*spec.inputs, *spec.parameters)), *(output.type for output in spec.outputs)]
    io_elements = sum(stack.elements(kind) for kind in streams)
    work = {}
    for at, graph in enumerate(graphs):
        try:
            work[at] = streamed_elements(graph, stack, io_elements)
        except RunError as error:
            found[at] = TrialResult(Stage.RUN, (error.diagnostic,))
        except TaskFault as fault:
            found[at] = fault
    return work


def _fits(graph: Graph, case: Case, numbers: int) -> bool:
    return numbers * len(case.draws) <= AT_ONCE and graph.is_stackable


def _portions(work: Mapping[int, int]) -> Iterator[list[int]]:
    """Programs to be executed together: as many as stream AT_ONCE numbers, at least one."""
    part: list[int] = []
    total = 0
    for at, numbers in work.items():
        if part and total + numbers > AT_ONCE:
            yield part
            part, total = [], 0
        part.append(at)
        total += numbers
    if part:
        yield part


def _has_failed(judged: Judged | None) -> bool:
    return isinstance(judged, TaskFault) or (judged is not None and bool(judged.errors))


def _on_one_stack(spec: TaskSpec, graphs: Sequence[Graph], which: Sequence[int], case: Case) -> dict[int, Judged]:
    _ = case.limits  # computed once, before any candidate has touched the data
    with default_dtype(default_of(case.is_wide)):
        made = execute_batch([graphs[at] for at in which], case.stack)
    known: dict[tuple[int, ...], TrialResult] = {}
    found: dict[int, Judged] = {}
    for at, outputs in zip(which, made, strict=True):
        if isinstance(outputs, RunError):
            found[at] = TrialResult(Stage.RUN, (outputs.diagnostic,))
        elif isinstance(outputs, TaskFault):
            found[at] = outputs
        else:
            key = tuple(id(tensor) for fields in outputs for tensor in fields)
            if key not in known:
                known[key] = compare(spec, case, outputs)
            found[at] = known[key]
    return found
