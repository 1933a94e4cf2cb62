"""The performance analyst: objective, platform, program, profiles and earlier attempts -> one suggestion.

`request_analysis` writes the messages, `read_suggestion` reads the answer, and `read_analysis_prompt` is the inverse of
the first from the texts alone, for analysts that are programs. Pure functions: the caller sends the messages.

Two messages. `system` says what is asked and what the platform is, the same text for every task of a run. `user` is one
YAML mapping: `task`, `rules`, `objective`, `attempts`, `profiles`, `program`, `answer`; what is empty is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opsmith.agents.prompt import dump_task, indent_lines, list_mappings
from opsmith.agents.suggestion import read_fields, suggestion_rows
from opsmith.agents.yaml_text import nest_list, nest_mapping, write_block, write_mapping, write_number, write_scalar
from opsmith.errors import UsageError
from opsmith.models import Message
from opsmith.models.pictures import Picture
from opsmith.records import ProfileReport, Suggestion, Task
from opsmith.targets import Target
from opsmith.targets.protocols import Improvable

TEXT: Final = "text/plain"
ANSWER = "one suggestion"  # what the prompt asks for: by this it is told from a generator's
MAX_ATTEMPTS = 12  # shown, the last ones

_SYSTEM = """\
role: |
  You analyse the performance of programs. You are shown one program that is right, and you answer with ONE concrete
  change that should make it better by the objective. Another agent, which sees the program and your suggestion and
  nothing else of what you see, makes the change.

  What you are given. `task`: what the program computes; its result must stay what it is. `rules`: what no program's
  text may hold, if the user says so. `objective`: which figure
  counts; lower is better. `attempts`: what was suggested for this task before, what came of it, and `ratio`: the
  figure of the program that all began with, by that of this attempt. Above 1 is better; without a ratio it was not
  right, or could not be measured. `profiles`: what tools say of this program, each figure explained beside it;
  pictures that come with this text are profiles too. `program`: its text.

  How to choose. Find what bounds the program: work that need not be done, memory traffic, latency of a chain of
  operations, instructions that are not vectorised. Use the profiles; distrust a guess that they contradict. Do not
  repeat a change that was tried and lost, nor one that the program has already; build on what gained. Of several
  changes name the one with the largest expected effect on the whole, not on a line that hardly counts. Name it so
  that it can be made without asking back: which loop or operation, which transformation, with which parameters (block
  sizes, number of accumulators, order of loops). Say it in words, without writing the program.

  Reply format. YAML with these four keys and nothing else, each one or two sentences on one line in double quotes:
  what: "the change, with its parameters"
  where: "the lines, or the loop or operation"
  why: "what bounds the program there, by which figure of the profiles"
  effect: "what you expect of it, as a ratio"
"""


@dataclass(frozen=True)
class EarlierAttempt:
    """What came of a suggestion for the same task."""

    suggestion: Suggestion | None  # None: nothing was suggested
    state: str  # what became of the program, in words: right, refused at COMPILE ...
    ratio: float | None  # the start program's figure by this one's; None: not measured


@dataclass(frozen=True)
class AnalystBrief:
    """What an analyst is told of one program."""

    task: Task
    objective: str
    source: str
    profiles: tuple[ProfileReport, ...] = ()
    attempts: tuple[EarlierAttempt, ...] = ()  # the earliest first
    rules: str = ""  # what no program's text may hold, in words


@dataclass(frozen=True)
class AnalysisPrompt:
    """What an analyst's prompt says, as its texts say it."""

    task: str  # the text of the task as it is shown
    objective: str
    source: str
    profiles: tuple[ProfileReport, ...] = ()  # those that are texts
    attempts: tuple[EarlierAttempt, ...] = ()
    rules: str = ""


def request_analysis(target: Target, brief: AnalystBrief) -> tuple[Message, ...]:
    """The messages of one call of the analyst. Raises UsageError for a language that says nothing of its platform."""
    if not isinstance(target, Improvable):
        raise UsageError(f"analyst: target {target.name!r} describes no platform; try --analyst none")
    system = f"{_SYSTEM}platform: {write_block(target.describe_platform())}\n"
    profiles = [_show_profile(report) for report in brief.profiles]
    pictures = tuple(picture for picture in profiles if isinstance(picture, Picture))
    return Message("system", system), Message("user", _write_user(brief, profiles), pictures)


def _show_profile(report: ProfileReport) -> Picture | dict[str, str]:
    """A picture to be sent beside the text, or a row of it: in a row it is said too why a picture cannot be sent."""
    text = report.body
    if report.media != TEXT:
        try:
            return Picture(report.media, report.body)
        except ValueError as error:
            text = f"({error}: it is not shown)\n"
    return {"kind": write_scalar(report.kind), "text": write_block(text)}


def _write_user(brief: AnalystBrief, profiles: Sequence[Picture | dict[str, str]]) -> str:
    texts = [row for row in profiles if not isinstance(row, Picture)]
    return (
        f"task:\n{indent_lines(brief.task.prompt_text)}"
        + write_mapping({"rules": write_block(brief.rules) if brief.rules.strip() else ""})
        + write_mapping({"objective": write_scalar(brief.objective)})
        + nest_list("attempts", map(_write_attempt, brief.attempts[-MAX_ATTEMPTS:]))
        + nest_list("profiles", texts)
        + write_mapping({"program": write_block(brief.source), "answer": write_scalar(ANSWER)})
    )


def _write_attempt(attempt: EarlierAttempt) -> str:
    ratio = "" if attempt.ratio is None else write_number(attempt.ratio)
    suggestion = {} if attempt.suggestion is None else suggestion_rows(attempt.suggestion)
    rows = write_mapping({"state": write_scalar(attempt.state), "ratio": ratio})
    return nest_mapping("suggestion", suggestion) + rows


def read_analysis_prompt(messages: Sequence[Message]) -> AnalysisPrompt | None:
    """What the messages ask an analyst for; None: they are no analyst's."""
    return next(map(_read_mapping, list_mappings(messages, ANSWER)), None)


def _read_mapping(mapping: Mapping[Any, Any]) -> AnalysisPrompt:
    profiles = [ProfileReport(str(entry["kind"]), TEXT, str(entry["text"])) for entry in mapping.get("profiles") or ()]
    return AnalysisPrompt(
        dump_task(mapping["task"]),
        str(mapping["objective"]),
        str(mapping["program"]),
        tuple(profiles),
        tuple(_read_attempt(entry) for entry in mapping.get("attempts") or ()),
        str(mapping.get("rules", "")),
    )


def _read_attempt(entry: Mapping[str, Any]) -> EarlierAttempt:
    suggestion = read_fields(entry["suggestion"]) if "suggestion" in entry else None
    return EarlierAttempt(suggestion, str(entry["state"]), entry.get("ratio"))
