"""Examples as rows of a data set. Plain JSON data, one form for JSONL and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opsmith.export.examples import ChangeExample, Example, Examples, Preference
from opsmith.measuring.intervals import average_ratios
from opsmith.measuring.record import MeasuringGrade, SpeedReport, write_report
from opsmith.records import Candidate, Suggestion, Task, dumps
from opsmith.results.optimisation import read_optimisation
from opsmith.store import Store
from opsmith.store.rows import FUNCTIONAL, JOIN, OPTIMISATION, RunInfo
from opsmith.store.verdicts import Answered, read_prompt, verdict_of

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]
PLAIN = "plain"  # the task's own program as a partner

COLUMNS = {  # name -> kind: text, number, whole, flag, texts or messages
    "sft": {
        "messages": "messages", "task": "text", "group": "text", "task_digest": "text", "split": "text",
        "program": "text", "isomorphism": "text", "demonstrations": "texts", "contaminated": "flag", "sample": "text",
        "agent": "text", "round": "whole", "temperature": "number", "phase": "text", "suggestion": "text",
        "parent": "text", "parent_sample": "text", "ratio": "number", "target": "text", "interface": "text",
        "verdict": "text", "build": "text", "speed_ratio": "number", "speed_low": "number", "measurements": "texts",
        "verifier": "text", "run": "text", "model": "text", "is_language_model": "flag", "split_from": "text",
        "tool_calls": "text",
    },
    "preferences": {
        "prompt": "messages", "chosen": "messages", "rejected": "messages", "task": "text", "group": "text",
        "task_digest": "text", "split": "text", "same_prompt": "flag", "rejected_stage": "text",
        "rejected_message": "text", "demonstrations": "texts", "contaminated": "flag", "chosen_sample": "text",
        "rejected_sample": "text", "phase": "text", "suggestion": "text", "parent": "text", "parent_sample": "text",
        "ratio": "number", "target": "text", "interface": "text", "verdict": "text", "build": "text",
        "speed_ratio": "number", "speed_low": "number", "measurements": "texts", "verifier": "text",
        "run": "text", "model": "text", "is_language_model": "flag", "split_from": "text", "tool_calls": "text",
    },
    "improvements": {
        "task": "text", "group": "text", "task_digest": "text", "split": "text", "target": "text",
        "interface": "text", "objective": "text", "before": "text", "after": "text", "ratio": "number",
        "remembered": "text", "what": "text", "where": "text", "why": "text", "effect": "text", "sample": "text",
        "parent_sample": "text", "round": "whole", "temperature": "number", "run": "text", "model": "text",
        "is_language_model": "flag",
    },
}  # fmt: skip


class ExampleRows:
    """The rows of a run's examples; texts are read from the store as they are needed."""

    def __init__(self, store: Store, info: RunInfo, examples: Examples) -> None:
        self._store, self._info, self._examples = store, info, examples
        self._origins = store.find_origins(info.id)
        self._messages = lru_cache(maxsize=64)(self._prompt_messages)
        optimised = read_optimisation(store, info.id)
        tasks = optimised.tasks if optimised is not None else ()
        self._steps = {step.row.sample: step for task in tasks for step in task.steps}
        self._reports: dict[tuple[str, str], list[SpeedReport]] = {}  # by task and program
        for speed in store.read_speeds(info.id):
            self._reports.setdefault((speed.task, speed.report.measurement.program), []).append(speed.report)

    def list_rows(self, kind: str, split: str | None = None) -> Iterator[Row]:
        """Those of a kind of COLUMNS, of one split or of all."""
        rows = {
            "sft": map(self._sft_row, self._examples.right),
            "preferences": map(self._preference_row, self._examples.pairs),
            "improvements": map(self._improvement_row, self._examples.improvements),
        }[kind]
        return (row for row in rows if split is None or row["split"] == split)

    def _prompt_messages(self, name: str) -> list[Row]:
        return [{"role": message.role, "content": message.content} for message in read_prompt(self._store, name)]

    def _sft_row(self, example: Example) -> Row:
        answer = example.answer
        return {
            "messages": [*self._messages(answer.prompt), _answer_message(answer)],
            **_task_columns(example),
            "program": answer.program,
            "isomorphism": example.isomorphism,
            **_prompt_columns(example),
            "sample": answer.sample,
            "agent": answer.agent,
            "round": answer.round,
            "temperature": answer.temperature,
            **self._optimisation_columns(answer),
            **self._language_columns(example),
            **self._source_columns(answer),
            **self._agent_columns(example.task, answer),
        }

    def _preference_row(self, pair: Preference) -> Row:
        chosen, rejected = pair.chosen.answer, pair.rejected
        return {
            "prompt": self._messages(chosen.prompt),
            "chosen": [_answer_message(chosen)],
            "rejected": [_answer_message(rejected)],
            **_task_columns(pair.chosen),
            "same_prompt": pair.same_prompt,
            "rejected_stage": rejected.stage.name,
            "rejected_message": verdict_of(self._store, rejected.body).message,
            **_prompt_columns(pair.chosen),
            "chosen_sample": chosen.sample,
            "rejected_sample": rejected.sample,
            **self._optimisation_columns(chosen),
            **self._language_columns(pair.chosen),
            **self._source_columns(chosen),
            **self._agent_columns(pair.chosen.task, chosen),
        }

    def _optimisation_columns(self, answer: Answered) -> Row:
        """What the right program set out from, what was suggested, and its ratio to that program: above 1 it is the
        better one. Null where it was to solve its task."""
        step = self._steps.get(answer.sample)
        if step is None:
            return {"phase": FUNCTIONAL, **dict.fromkeys(("suggestion", "parent", "parent_sample", "ratio"))}
        is_final = answer.program is not None and Candidate(answer.program).id == step.row.candidate
        return {
            "phase": OPTIMISATION,
            "suggestion": None if step.row.suggestion is None else dumps(step.row.suggestion),
            "parent": self._store.read_text(step.parent),
            "parent_sample": step.parent_sample,
            "ratio": step.ratio.value if step.ratio is not None and is_final else None,
        }

    def _improvement_row(self, improvement: ChangeExample) -> Row:
        task, step = improvement.task, improvement.step
        suggestion = step.row.suggestion or Suggestion("")
        return {
            "task": task.id,
            "group": task.group,
            "task_digest": task.digest,
            "split": improvement.split,
            "target": task.target,
            "interface": task.prompt_text,
            "objective": improvement.objective,
            "before": step.parent.source,
            "after": step.row.source,
            "ratio": step.ratio,
            "remembered": improvement.remembered,
            **{name: getattr(suggestion, name) or None for name in ("what", "where", "why", "effect")},
            "sample": step.row.sample,
            "parent_sample": step.parent.sample,
            "round": step.row.round,
            "temperature": step.row.temperature,
            "run": self._info.id,
            "model": self._info.model,
            "is_language_model": self._info.is_language_model,
        }

    def _language_columns(self, example: Example) -> Row:
        """The language, what of the task a prompt shows, the verdict, and what was measured of the right program."""
        verdict = verdict_of(self._store, example.answer.body)
        program = Candidate(example.answer.program or "").id
        return {
            "target": example.task.target,
            "interface": example.task.prompt_text,
            "verdict": verdict.message,
            "build": verdict.build or None,
            **_speed_columns(self._reports.get((example.task.id, program), [])),
        }

    def _source_columns(self, answer: Answered) -> Row:
        """By whom, and by which verifier it was found right."""
        verifier = verdict_of(self._store, answer.body).verifier
        is_model = self._info.is_language_model and answer.asked != JOIN
        model = {"model": answer.asked or self._info.model, "is_language_model": is_model}
        return {"verifier": verifier, "run": self._info.id, **model}

    def _agent_columns(self, task: Task, answer: Answered) -> Row:
        """The task of the run that a plan split this one off from, and the tools that the sample called. Null where
        there is none."""
        calls = self._store.read_tool_calls([answer.sample]).get(answer.sample)
        return {"split_from": self._origins.get(task.id), "tool_calls": None if calls is None else dumps(calls)}


def _speed_columns(reports: Sequence[SpeedReport]) -> Row:
    """The geometric mean over the sizes of one grade and partner, the full grade before screens; none where a figure is
    missing. `measurements` has all of them, as `opsmith measure --json` prints them."""
    grades = [MeasuringGrade.FULL, MeasuringGrade.SCREEN]
    chosen = next((same for grade in grades if (same := _list_of_grade(reports, grade))), [])
    ratios = [ratio.precise for report in chosen if (ratio := report.measurement.ratio) is not None]
    mean = average_ratios(ratios) if len(ratios) == len(chosen) else None
    return {
        "speed_ratio": None if mean is None else mean.value,
        "speed_low": None if mean is None else mean.low,
        "measurements": [json.dumps(write_report(report), sort_keys=True) for report in reports],
    }


def _list_of_grade(reports: Sequence[SpeedReport], grade: MeasuringGrade) -> list[SpeedReport]:
    """Those to the task's own program."""
    return [
        report
        for report in reports
        if report.measurement.grade is grade
        and PLAIN in (report.measurement.sought_partner, getattr(report.measurement.ratio, "partner", ""))
    ]


def parquet_schema(kind: str) -> pa.Schema:
    """The Parquet schema of a kind of rows."""
    import pyarrow as pa  # noqa: PLC0415  (the extra `data`)

    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    types = {
        "text": pa.string(),
        "number": pa.float64(),
        "whole": pa.int64(),
        "flag": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "messages": pa.list_(message),
    }
    return pa.schema([(name, types[column]) for name, column in COLUMNS[kind].items()])


def _answer_message(answer: Answered) -> Row:
    return {"role": "assistant", "content": answer.reply}


def _task_columns(example: Example) -> Row:
    task = example.task
    return {"task": task.id, "group": task.group, "task_digest": task.digest, "split": example.split}


def _prompt_columns(example: Example) -> Row:
    return {"demonstrations": list(example.demonstrations), "contaminated": example.contaminated}
