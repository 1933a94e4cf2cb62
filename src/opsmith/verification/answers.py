"""Is what a worker answered a verdict on this candidate? A worker has run an author's code, so its word is checked.

What is checked is the form, on which all later readers rely; that the verdict is right cannot be seen from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from opsmith.records import Candidate, Diagnostic, Verdict, verdict_from_json

_TEXT = get_type_hints(Diagnostic)


def read_verdict(answer: Any, source: str) -> Verdict:
    """The verdict on `source`. Raises ValueError, TypeError or LookupError for anything else."""
    if not isinstance(answer, Mapping):
        raise TypeError(f"a worker's answer: given {type(answer).__name__}; expected a mapping")
    verdict = verdict_from_json(answer)
    if verdict.candidate != Candidate(source).id:
        raise ValueError(f"a worker's answer: a verdict on {verdict.candidate!r}; expected one on the candidate sent")
    numbers = (verdict.trials, int), (verdict.seconds, float | int), (verdict.max_abs_error, float | int | None)
    texts = (verdict.verifier, *verdict.warnings)
    if not all(isinstance(value, kind) for value, kind in (*numbers, *((text, str) for text in texts))):
        raise TypeError("a worker's answer: a verdict with fields of other types")
    for error in verdict.errors:
        check_diagnostic(error)
    return verdict


def check_diagnostic(error: Diagnostic) -> None:
    """Raises TypeError unless every field has its type."""
    for field in fields(error):
        value = getattr(error, field.name)
        if not isinstance(value, _TEXT[field.name]):
            raise TypeError(f"a worker's answer: {field.name} of a finding: given {type(value).__name__}")
