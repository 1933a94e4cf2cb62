"""How a verdict is shown. As one JSON object for scripts, as a line and the findings for people."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from opsmith.judging.execution import is_crash
from opsmith.records import FOR_PEOPLE, Level, Outcome, Stage, Task, Verdict, printable, to_json
from opsmith.targets.capabilities import explain_message


def label_of(stage: Stage | None, outcome: Outcome | None) -> str:
    """`passed`, `AFFINE`, `unjudged`."""
    if outcome is Outcome.REFUSED and stage is not None:
        return stage.name
    return outcome.value if outcome is not None else Outcome.UNJUDGED.value


def verdict_json(task: str, verdict: Verdict) -> dict[str, Any]:
    """The fields of `opsmith verify --json`; `warnings`, `undecided`, `build` and `scrutiny` where there are any; an
    error that is not finite is null, which the message explains."""
    error = verdict.max_abs_error
    return {
        "task": task,
        "candidate": verdict.candidate,
        "outcome": verdict.outcome.value,
        "passed": verdict.passed,
        "stage": verdict.stage.name,
        "charged_to": verdict.charged_to.value,
        "errors": to_json(verdict.errors),
        **({"warnings": list(verdict.public_warnings)} if verdict.public_warnings else {}),
        "message": verdict.message,
        "max_abs_error": error if error is not None and math.isfinite(error) else None,
        "trials": verdict.trials,
        **({"undecided": verdict.undecided} if verdict.undecided else {}),
        "seconds": round(verdict.judging_seconds, 6),
        **({"build": verdict.build} if verdict.build else {}),
        **({"scrutiny": verdict.scrutiny} if verdict.scrutiny else {}),
    }


def explain_verdict(task: Task | None, verdict: Verdict) -> str:
    """What people are shown of it: its message with the words of the task's language explained, without the crash that
    a finding with a line explains, and what prompts leave out."""
    first, *others = verdict.errors or (None,)
    if first is not None and is_crash(first) and others and others[0].line is not None:
        others[0] = replace(others[0], where=f"{first.where}, {others[0].where}")
        verdict = replace(verdict, errors=tuple(others))
    message = verdict.message if task is None else explain_message(task, verdict.message)
    if verdict.passed and verdict.scrutiny.startswith(Level.CHEAP):
        message = message.replace("passed:", f"passed ({Level.CHEAP}):", 1)
    notes = (text.removeprefix(FOR_PEOPLE) for text in verdict.warnings if text.startswith(FOR_PEOPLE))
    return "\n".join([message, *(f"  for you:  {note}" for note in notes)])


def verdict_text(name: str, verdict: Verdict, task: Task | None) -> str:
    """`bmm_0: passed: 12 trials`, or the stage and every finding under it."""
    name, message = printable(name), printable(explain_verdict(task, verdict), keep="\n")
    if verdict.passed:
        return f"{name}: {message}"
    blame = "" if verdict.charged_to.value == "candidate" else f" (at fault: {name_fault(verdict.charged_to)})"
    refused = _REFUSED.get(verdict.stage.name, "") if verdict.outcome is Outcome.REFUSED else ""
    return f"{name}: {verdict.outcome} at {verdict.stage.name}{refused}{blame}\n{message}"


def name_fault(boundary: str) -> str:
    """Who is at fault, in words: a `Boundary`, or nobody."""
    return _AT_FAULT.get(boundary, boundary)


_AT_FAULT = {
    "task": "the task file",
    "target": "the language's own code",
    "provider": "the model's server",
    "sandbox": "the sandbox",
    "ours": "Opsmith",
}
_REFUSED = {  # at which stage -> what that means
    "FORMAT": ": the answer holds no program",
    "PARSE": ": it is not a program of the language",
    "TYPE": ": types or shapes do not fit",
    "AFFINE": ": a stream is used twice",
    "COMPILE": ": the compiler refuses it",
    "RUN": ": it fails while it runs",
    "MATCH": ": it runs, and its values are not those of the reference",
}
