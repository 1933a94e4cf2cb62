"""A run's right programs as a data set of FlashInfer Trace: definitions, workloads, solutions, traces.

Every program is judged by today's verifier before it goes in. A trace says PASSED of the base, where the verdict was
made, and of timed sizes, whose outputs were compared while they were timed; speeds are stored measurements of the full
grade, and there is none where nothing was measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from opsmith.devices.describe import describe_device
from opsmith.errors import TaskError, UsageError
from opsmith.export import folder as folders
from opsmith.export.choice import ProgramChoice
from opsmith.export.exported import ExportedFiles
from opsmith.export.forms import advise_forms
from opsmith.export.manifest import content_digest
from opsmith.export.solved import SolvedOperator, describe_facts, missing_of, not_passed, operators_of
from opsmith.export.trace_definition import find_definition, list_freed, list_workloads
from opsmith.imports.flashinfer.formats import (
    BuildSpec,
    Correctness,
    Definition,
    Environment,
    Evaluation,
    FlashinferSolution,
    Performance,
    SourceFile,
    Trace,
    Workload,
    write_model,
)
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import Claim
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement
from opsmith.problems.problem import Problem
from opsmith.records import TIME, Candidate, Task
from opsmith.store import Store
from opsmith.targets import get_target
from opsmith.targets.protocols import Bindable, Stating, Target

FILE = "flashinfer.json"
FORMAT = "opsmith flashinfer"
VERSION = 1
_PARTNERS = ("eager", "plain")  # whom a speed may be to, the first that was measured
_SAYABLE = (Claim.FASTER, Claim.NO_DIFFERENCE, Claim.SLOWER)


@dataclass(frozen=True)
class TraceEntry:
    """All that is written of one operator."""

    operator: SolvedOperator
    definition: Definition
    text: str  # of the definition, as it was imported; "": it is written anew
    solution: FlashinferSolution
    workloads: Sequence[Workload]
    traces: Sequence[Trace]


@dataclass(frozen=True)
class ExportedTraces(ExportedFiles):
    """A data set that was written."""

    entries: Sequence[TraceEntry]

    def describe_written(self) -> dict[str, Any]:
        return {
            "solutions": {entry.solution.name: entry.operator.task.id for entry in self.entries},
            "traces": sum(len(entry.traces) for entry in self.entries),
            "measured": sum(
                trace.evaluation is not None and trace.evaluation.performance is not None
                for entry in self.entries
                for trace in entry.traces
            ),
        }


def export_traces(
    store: Store,
    run: str,
    folder: Path,
    pool: Pool,
    choices: Mapping[str, ProgramChoice] = MappingProxyType({}),
) -> ExportedTraces:
    """Write the data set; `choices` as of `operators_of`.

    Raises UsageError where the folder holds something else, or nothing can be written so.
    """
    folders.check_free(folder, FILE, FORMAT)
    info = store.summarise_run(store.find_run(run)).info
    target = get_target(store.target_name(info.id))
    if not isinstance(target, Bindable):
        what = f"run {info.id}: programs of the target {info.target} have no form as an extension of torch"
        raise UsageError(f"{what}; try: {advise_forms(target)}")
    solved = operators_of(store, info.id, pool, choices)
    refused = not_passed(solved)
    writer = _EntryWriter(target, [row.report.measurement for row in store.read_speeds(info.id)])
    entries, without_form = writer.write_entries([operator for operator in solved if operator not in refused])
    if not entries:
        reasons = [*without_form.values(), *(operator.verdict.message for operator in refused)]
        raise UsageError(f"run {info.id}: no program can be written as a solution; the first:\n{reasons[0]}")
    exported = ExportedTraces(folder, refused, without_form, missing_of(store, info.id, solved), entries)
    folders.write_folder(folder, partial(folders.write_texts, files=_list_files(exported, info.id)))
    return exported


class _EntryWriter:
    """Writes operators of one run and one machine."""

    def __init__(self, target: Target, measured: Sequence[SpeedMeasurement]) -> None:
        self._target, self._measured = target, measured
        self._hardware = describe_device().name or "an unknown processor"
        self._timestamp = datetime.now(UTC).isoformat(timespec="seconds")

    def write_entries(self, operators: Sequence[SolvedOperator]) -> tuple[list[TraceEntry], dict[str, str]]:
        """The entries, and what has no such form."""
        entries: dict[str, TraceEntry] = {}
        without_form: dict[str, str] = {}
        for operator in operators:
            try:
                entry = self._write_entry(operator)
            except (UsageError, TaskError) as error:
                without_form[operator.task.id] = str(error)
                continue
            if entry.definition.name in entries:
                without_form[operator.task.id] = f"{entry.definition.name}: two tasks of one definition"
                continue
            entries[entry.definition.name] = entry
        return list(entries.values()), without_form

    def _write_entry(self, operator: SolvedOperator) -> TraceEntry:
        problem = self._find_problem(operator.task)
        definition, text = find_definition(problem, operator.task.id, operator.task.group)
        workloads = list_workloads(problem, definition)
        solution = self._write_solution(operator, definition)
        fitting = {name: row for name, row in workloads.items() if _is_at_constants(problem, definition, name)}
        traces = list(self._list_traces(operator, definition, solution, fitting))
        return TraceEntry(operator, definition, text, solution, list(workloads.values()), traces)

    def _find_problem(self, task: Task) -> Problem:
        if not isinstance(self._target, Stating):
            raise UsageError(f"{task.id}: its target states no problem")
        return self._target.find_problem(task)

    def _write_solution(self, operator: SolvedOperator, definition: Definition) -> FlashinferSolution:
        assert isinstance(self._target, Bindable)
        facts = "\n".join(f"{name}: {fact}" for name, fact in describe_facts(operator).items())
        extension = self._target.write_torch_extension(operator.as_solved)
        here = (self._hardware,) if extension.device == "cpu" else ()
        spec = BuildSpec.model_validate(
            {
                "language": extension.language,
                "target_hardware": (extension.device, *here),
                "entry_point": extension.entry,
                "dependencies": extension.dependencies,
                "destination_passing_style": True,
                "binding": "torch",
            }
        )
        return FlashinferSolution(
            name=f"opsmith_{operator.name}_{Candidate(operator.source).id[:8]}",
            definition=definition.name,
            author=operator.origin.model or "opsmith",
            spec=spec,
            sources=tuple(SourceFile(path=path, content=text) for path, text in extension.sources.items()),
            description=f"{extension.description}\n{facts}",
        )

    # -- traces

    def _list_traces(
        self,
        operator: SolvedOperator,
        definition: Definition,
        solution: FlashinferSolution,
        workloads: Mapping[str, Workload],
    ) -> Iterator[Trace]:
        for name, workload in workloads.items():
            measured = self._find_measurement(operator, name)
            if measured is not None or name == "base":
                evaluation = self._write_evaluation(operator, measured)
                yield Trace(
                    definition=definition.name, workload=workload, solution=solution.name, evaluation=evaluation
                )

    def _find_measurement(self, operator: SolvedOperator, shape_set: str) -> SpeedMeasurement | None:
        """The last one of the full grade that has a time and a ratio that may be said."""
        candidate = Candidate(operator.source).id
        rows = [
            row
            for row in self._measured
            if (row.program, row.shape_set) == (candidate, shape_set)
            and row.grade is MeasuringGrade.FULL
            and row.objective == TIME
            and row.ratio is not None
            and row.ratio.claim in _SAYABLE
        ]
        partners = {row.ratio.partner: row for row in rows if row.ratio is not None}
        return next((partners[name] for name in _PARTNERS if name in partners), None)

    def _write_evaluation(self, operator: SolvedOperator, measured: SpeedMeasurement | None) -> Evaluation:
        libraries = {"opsmith": metadata.version("opsmith"), "torch": metadata.version("torch")}
        build = {"build": operator.verdict.build} if operator.verdict.build else {}
        place = f"emulated on {self._hardware}" if "emulated" in operator.verdict.build else self._hardware
        return Evaluation(
            status="PASSED",
            environment=Environment(hardware=place, libs={**libraries, **build}),
            timestamp=self._timestamp,
            log=_write_log(operator, measured),
            correctness=Correctness(max_absolute_error=operator.verdict.max_abs_error, max_relative_error=None),
            performance=None if measured is None else write_performance(measured),
        )


def write_performance(measured: SpeedMeasurement) -> Performance | None:
    """The figures of a measurement; None where a time or a ratio is missing."""
    if measured.time is None or measured.ratio is None:
        return None
    latency, factor = measured.time.value / 1e6, measured.ratio.precise.value
    return Performance(latency_ms=latency, reference_latency_ms=latency * factor, speedup_factor=factor)


def _is_at_constants(problem: Problem, definition: Definition, name: str) -> bool:
    """Whether a shape set has the definition's sizes: an import may have made constants smaller."""
    sizes = {**problem.base_sizes, **problem.bench.get(name, {})}
    is_imported = problem.source is not None and problem.source.format == "flashinfer"
    return not is_imported or all(sizes[axis] == size for axis, size in list_freed(problem, definition).items())


def _write_log(operator: SolvedOperator, measured: SpeedMeasurement | None) -> str:
    verdict = operator.verdict
    lines = [f"{verdict.verifier}: passed, {verdict.trials} trials; errors are the largest over all of them"]
    if measured is not None and measured.ratio is not None:
        ratio = measured.ratio
        claim = ratio.claim.value if ratio.claim is not None else "no claim"
        lines += [f"reference: {ratio.partner}; ratio {ratio.precise}, {claim}; {measured.protocol}"]
    return "\n".join(lines)


# -- files


def _list_files(exported: ExportedTraces, run: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for entry in exported.entries:
        operator, name = _name_file(entry.definition.op_type), _name_file(entry.definition.name)
        files[f"definitions/{operator}/{name}.json"] = entry.text or write_model(entry.definition)
        rows = [Trace(definition=entry.definition.name, workload=workload) for workload in entry.workloads]
        files[f"workloads/{operator}/{name}.jsonl"] = _write_lines(rows)
        files[f"solutions/{operator}/{name}/{_name_file(entry.solution.name)}.json"] = write_model(entry.solution)
        files[f"traces/{operator}/{name}.jsonl"] = _write_lines(entry.traces)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "opsmith": metadata.version("opsmith"),
        "run": run,
        "solutions": {entry.solution.name: entry.operator.task.id for entry in exported.entries},
        "without_form": dict(exported.without_form),
        "files": {path: content_digest(text.encode()) for path, text in sorted(files.items())},
    }
    return {**files, FILE: json.dumps(manifest, indent=1) + "\n"}


def _name_file(text: str) -> str:
    return re.sub(r"[^\w.-]", "_", text).lstrip(".") or "_"


def _write_lines(rows: Sequence[Trace]) -> str:
    return "".join(json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n" for row in rows)
