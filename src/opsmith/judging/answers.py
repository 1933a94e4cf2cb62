"""Is what a worker answered a verdict on this candidate? A worker has run an author's code, so its word is checked.

What is checked is the form, on which all later readers rely; that the verdict is right cannot be seen from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, get_type_hints

from opsmith.records import Candidate, Diagnostic, Level, Scrutiny, Verdict, verdict_from_json

MOVED_ANSWER = "every number moved"  # what a worker calls that answer among those that a lazy program could give

_TEXT = get_type_hints(Diagnostic)


def read_verdict(answer: Any, source: str) -> Verdict:
    """The verdict on `source`. Raises ValueError, TypeError or LookupError for anything else."""
    if not isinstance(answer, Mapping):
        raise TypeError(f"a worker's answer: given {type(answer).__name__}; expected a mapping")
    verdict = check_form(answer)
    if verdict.candidate != Candidate(source).id:
        raise ValueError(f"a worker's answer: a verdict on {verdict.candidate!r}; expected one on the candidate sent")
    return verdict


def read_scrutiny(request: Mapping[str, Any]) -> Scrutiny | None:
    """How hard a request asks to try its program; None: it asks for no verdict."""
    written = request.get("scrutiny")
    return Scrutiny(written["secret"], Level(written["level"])) if written else None


def check_form(answer: Mapping[str, Any]) -> Verdict:
    """The verdict that an answer is, on whatever candidate. Raises like `read_verdict`."""
    verdict = verdict_from_json(answer)
    check_findings(verdict.errors, verdict.max_abs_error)
    _check_type("trials", verdict.trials, int)
    _check_type("undecided", verdict.undecided, int)
    _check_type("seconds", verdict.judging_seconds, float | int)
    for text in (verdict.verifier, verdict.build, verdict.scrutiny, *verdict.warnings):
        _check_type("verifier, build, scrutiny and warnings", text, str)
    return verdict


def check_findings(errors: Sequence[Diagnostic], max_abs_error: object = None) -> None:
    """Raises TypeError unless every field of the errors has its type."""
    _check_type("max_abs_error", max_abs_error, float | int | None)
    for error in errors:
        check_diagnostic(error)


def _check_type(name: str, value: object, kind: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name}: given {type(value).__name__}; expected {getattr(kind, '__name__', kind)}")


def check_diagnostic(error: Diagnostic) -> None:
    """Raises TypeError unless every field has its type."""
    for field in fields(error):
        value = getattr(error, field.name)
        if not isinstance(value, _TEXT[field.name]):
            raise TypeError(f"{field.name} of a finding: given {type(value).__name__}; expected {_TEXT[field.name]}")
