"""The manifest of a library: what is in it, where that comes from, what is missing, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from opsmith.export.solved import SolutionOrigin, SolvedOperator
from opsmith.measuring.record import SpeedMeasurement
from opsmith.records import KNOWN, Candidate, Level, Task, Verdict, to_json
from opsmith.results.problems import digest_problems
from opsmith.store.rows import RunInfo
from opsmith.suites.library import FORMAT, VERSION

_PRIVATE = ("tasks", "base_url", "from_run")  # paths and addresses of whoever made the run


def build_manifest(
    name: str,
    run: RunInfo,
    operators: Sequence[SolvedOperator],
    refused: Sequence[SolvedOperator],
    missing: Sequence[Task],
    files: Mapping[str, str | bytes],
) -> dict[str, Any]:
    """All but the hashes of the files, which `with_files` adds."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "opsmith": metadata.version("opsmith"),
        "run": {
            "id": run.id,
            "model": run.model,
            "is_language_model": run.is_language_model,
            "target": run.target,
            "seed": run.seed,
            "settings": {name: to_json(value) for name, value in run.settings.items() if name not in _PRIVATE},
            "versions": to_json(run.versions),
        },
        "licence": {"runtime": "Apache-2.0", "programs": "their authors'", "tasks": "their authors'"},
        "operators": [{**_operator_record(operator), **_list_places(operator, files)} for operator in operators],
        "refused": [{**_operator_record(operator), "message": operator.verdict.message} for operator in refused],
        "missing": [{"task": task.id, "task_digest": task.digest} for task in missing],
    }


def with_files(facts: Mapping[str, Any], files: Mapping[str, str | bytes]) -> str:
    """The manifest's text, with the sha256 of every other file."""
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in sorted(files.items())}
    hashes = {path: content_digest(content) for path, content in contents.items()}
    return json.dumps({**facts, "files": hashes}, indent=1) + "\n"


def content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def name_problem_file(function: str) -> str:
    """Where the task of an operator stands in a library."""
    return f"problems/{function}.yaml"


def _list_places(operator: SolvedOperator, files: Mapping[str, str | bytes]) -> dict[str, Any]:
    """The files of its problem and of its program; none where the program is part of the operator's module."""
    sources = [path for path, text in files.items() if text == operator.source]
    return {"problem_file": name_problem_file(operator.name), "source_files": sources}


def _operator_record(operator: SolvedOperator) -> dict[str, Any]:
    origin = operator.origin
    return {
        "function": operator.name,
        "task": operator.task.id,
        "group": operator.task.group,
        "task_digest": operator.task.digest,
        "problem": digest_problems([operator.task]).get(operator.task.id),
        "program": Candidate(operator.source).id,
        "source": operator.source,
        "written_by": _name_author(origin),
        "figures": _list_figures(operator),
        "origin": {
            "run": origin.run,
            "model": origin.model,
            "is_language_model": origin.is_language_model,
            "round": origin.round,
            "success_rate": origin.success_rate,
            **({"gain": origin.gain} if origin.gain else {}),
            "sample": origin.sample,
            "temperature": origin.temperature,
            "equals_an_example_of_its_prompt": origin.contaminated,
            "usage": to_json(origin.sample_usage),
            "samples": origin.samples,
            "right": origin.right,
        },
        "verdict_then": _verdict_record(origin.verdict) if origin.verdict else None,
        "verdict_now": _verdict_record(operator.verdict),
    }


def _name_author(origin: SolutionOrigin) -> str:
    if origin.run.startswith(KNOWN):
        return origin.run.removeprefix(KNOWN)
    if origin.model is None:
        return "person"
    return "model" if origin.is_language_model else "rules"


def _list_figures(operator: SolvedOperator) -> list[dict[str, Any]]:
    """What is known of the program: by objective, the value, its unit, and how it came about."""
    figures: list[dict[str, Any]] = []
    if operator.choice is not None:
        front, point = operator.choice.front, operator.choice.point
        for objective, value in zip(front.objectives, point.figures, strict=True):
            figures.append({"objective": objective.name, "value": value, "unit": objective.unit, "protocol": "front"})
    if operator.origin.gain:
        how = "time of the first program by its own, geometric mean over all timed sizes, full grade"
        figures.append({"objective": "gain", "value": operator.origin.gain, "unit": "ratio", "protocol": how})
    return [*figures, *map(dict, operator.figures)]


def list_counted_figures(measured: Sequence[SpeedMeasurement]) -> Iterator[dict[str, Any]]:
    """What a manifest says of measurements: with shape set, device and toolchain; the task's own sizes come last."""
    for row in reversed(measured):
        if row.time is not None:
            yield {
                "objective": row.objective.name,
                "value": row.time.value,
                "unit": row.objective.unit,
                "protocol": row.protocol,
                "shape_set": row.shape_set,
                "device": row.device,
                "toolchain": row.flags,
            }


def _verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Without times and errors of rounding, which differ from machine to machine."""
    built = {"build": verdict.build} if verdict.build else {}
    return {
        **built,
        "verifier": verdict.verifier,
        "outcome": verdict.outcome.value,
        "stage": verdict.stage.name,
        "trials": verdict.trials,
        "hidden_sizes": str(Level.FULL.value),
    }
