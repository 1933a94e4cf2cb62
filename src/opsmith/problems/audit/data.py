"""Data: whether that of every trial can be made, at the file's own sizes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from opsmith.problems.audit.findings import Finding, State
from opsmith.problems.audit.material import Material, SingleTrial
from opsmith.problems.audit.nans import NanCause, find_nan_cause
from opsmith.problems.data import ProblemData
from opsmith.problems.draws import DrawT
from opsmith.problems.faults import NanFault, TaskFault
from opsmith.problems.problem import Distribution

FAULTS_SHOWN = 3  # of one task file that are worth reading at once


def prepare_material(load: Callable[[], ProblemData[DrawT]]) -> tuple[Material[DrawT] | None, Finding]:
    """The trials, None where there are too few, and whether their data can be made."""
    try:
        data = load()
        finding = check_data(Material.of_stated(data))
        if finding.state is State.FAULTY:
            return None, finding
        material = Material.of_all(data)
    except TaskFault as fault:
        remedy = "correct this key of the task file"
        return None, Finding("data", State.FAULTY, "every shape set", fault.diagnostic.block(), remedy)
    return material, check_data(material)


def check_data(material: Material[Any]) -> Finding:
    """Inputs, margins, properties of hand-made inputs, and the form of the reference, at every trial."""
    faults = _find_faults(material)
    tried = f"{len(material.trials)} trials"
    if not faults:
        return Finding("data", State.FINE, tried)
    causes = [find_nan_cause(trial, fault) if isinstance(fault, NanFault) else None for trial, fault in faults]
    rows = zip(faults, causes, strict=True)
    text = "\n".join(_describe_fault(trial, fault, cause) for (trial, fault), cause in rows)
    remedies = dict.fromkeys(cause.remedy if cause else "correct this key of the task file" for cause in causes)
    return Finding("data", State.FAULTY, tried, text, "\n".join(remedies))


def _find_faults(material: Material[Any]) -> list[tuple[SingleTrial[Any], TaskFault]]:
    """The first faults, each once."""
    faults: dict[str, tuple[SingleTrial[Any], TaskFault]] = {}
    for trial in material.trials:
        try:
            _ = trial.own_limits
        except TaskFault as fault:
            faults.setdefault(fault.diagnostic.block(), (trial, fault))
        if len(faults) == FAULTS_SHOWN:
            break
    return list(faults.values())


def _describe_fault(trial: SingleTrial[Any], fault: TaskFault, cause: NanCause | None) -> str:
    if cause is not None:
        return f"{trial.name}: {fault.diagnostic.where}: NaN in the reference: {cause.reason}"
    return f"{trial.name}:\n{fault.diagnostic.block()}"


def note_distributions(reasons: Mapping[Distribution, str]) -> Iterator[Finding]:
    """A note on the distributions that programs are not tried on."""
    if reasons:
        text = "\n".join(f"{kind} data is left out: {reason}" for kind, reason in reasons.items())
        remedy = "fine if the reference cannot be right there; else an input's own data: `distributions: {few: ...}`"
        yield Finding("data", State.NOTE, f"{len(Distribution)} distributions", text, remedy)


def note_left_out(material: Material[Any]) -> Iterator[Finding]:
    """A note on built-in shape sets at which the author's code fails."""
    if reasons := material.left_out:
        remedy = "fine if the task needs larger sizes; else code that runs there, or sizes of your own for a set: "
        yield Finding("data", State.NOTE, "built-in sizes", "\n".join(reasons), remedy + "`shapes: {M1: {M: 3}}`")
