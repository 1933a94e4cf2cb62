"""The manifest of a library: what is in it, where that comes from, what is missing, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from opsmith.export.solved import SolvedOperator
from opsmith.records import Candidate, Task, Verdict, to_json
from opsmith.results.problems import digest_problems
from opsmith.store.rows import RunInfo

FILE = "manifest.json"
FORMAT = "opsmith library"
VERSION = 1
_PRIVATE = ("tasks", "base_url", "from_run")  # paths and addresses of whoever made the run


def build_manifest(
    name: str,
    run: RunInfo,
    operators: Sequence[SolvedOperator],
    refused: Sequence[SolvedOperator],
    missing: Sequence[Task],
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
        "operators": [_operator_record(operator) for operator in operators],
        "refused": [{**_operator_record(operator), "message": operator.verdict.message} for operator in refused],
        "missing": [{"task": task.id, "task_digest": task.digest} for task in missing],
    }


def with_files(facts: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """The manifest's text, with the sha256 of every other file."""
    return (
        json.dumps(
            {**facts, "files": {path: content_digest(text.encode()) for path, text in sorted(files.items())}}, indent=1
        )
        + "\n"
    )


def content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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


def _verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Without times and errors of rounding, which differ from machine to machine."""
    built = {"build": verdict.build} if verdict.build else {}
    return {
        **built,
        "verifier": verdict.verifier,
        "outcome": verdict.outcome.value,
        "stage": verdict.stage.name,
        "trials": verdict.trials,
    }
