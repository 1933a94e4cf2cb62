"""Programs of a run as they were judged then and now, and the replies that held them.

A later verifier's verdict stands in `reverdict`, beside the one that the run went by, which stays as it is. Where there
is one of the version asked for, it counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, func, select

from opsmith.models import Message
from opsmith.records import Outcome, Stage, Verdict, content_hash, dumps, verdict_from_json
from opsmith.store import schema
from opsmith.store.database import Row as NewRow
from opsmith.store.queries import Reader
from opsmith.store.rows import PROPOSER, read_prompt_names, text_row
from opsmith.store.schema import candidate, reply, request, reverdict, text, verdict


@dataclass(frozen=True)
class Judgement:
    """A candidate of a sample, the verdict that the run went by, and that of another verifier if there is one."""

    sample: str
    round: int
    task: str
    temperature: float
    candidate: str  # hash of the program
    final: bool  # the one that the sample counts by
    before: tuple[Stage, Outcome]
    after: tuple[Stage, Outcome] | None
    body: str | None  # hash of the later verdict's JSON


@dataclass(frozen=True)
class Answered:
    """A reply that was judged, with the prompt it answers."""

    sample: str
    round: int
    temperature: float
    number: int
    agent: str
    prompt: str  # hash
    reply: str
    program: str | None  # None: the reply held none
    stage: Stage
    outcome: Outcome
    body: str  # hash of the verdict's JSON
    asked: str | None  # the model, where the run has several; None: the run's own

    @property
    def is_right(self) -> bool:
        return self.outcome is Outcome.PASSED


def list_judgements(reader: Reader, run: str, verifier: str) -> list[Judgement]:
    """Every judged candidate by task, round, temperature and number; `verifier`: the version of the later verdicts."""
    later = _is_later(verifier)
    query = (
        select(
            request.c.id, request.c.round, request.c.task, request.c.temperature, verdict.c.candidate, verdict.c.final,
            verdict.c.stage, verdict.c.outcome, reverdict.c.stage.label("later_stage"),
            reverdict.c.outcome.label("later_outcome"), reverdict.c.body,
        )
        .join(verdict, verdict.c.sample == request.c.id)
        .outerjoin(reverdict, later)
        .where(request.c.run == run, request.c.agent == PROPOSER, verdict.c.candidate != "")
        .order_by(request.c.task, request.c.round, request.c.temperature, request.c.number, verdict.c.final)
    )  # fmt: skip
    return [_read_judgement(row) for row in reader.fetch_rows(query)]


def read_programs(reader: Reader, run: str, names: set[str]) -> dict[str, str]:
    """The texts of a run's candidates by their hash, of those named."""
    query = (
        select(text.c.hash, text.c.body).join(candidate, candidate.c.id == text.c.hash).where(candidate.c.run == run)
    )
    return {row.hash: row.body for row in reader.fetch_rows(query.distinct()) if row.hash in names}


def reverdict_rows(run: str, sample: str, judgement: Verdict) -> list[NewRow]:
    """A later verdict on a candidate of a sample, as rows."""
    body = dumps(replace(judgement, judging_seconds=0.0))
    place = {"sample": sample, "candidate": judgement.candidate, "verifier": judgement.verifier, "run": run}
    outcome = {"stage": judgement.stage.name, "outcome": judgement.outcome.value, "body": content_hash(body)}
    return [
        (schema.reverdict, {**place, **outcome, "seconds": judgement.judging_seconds, "at": time.time()}),
        text_row(body),
    ]


def list_answered(reader: Reader, run: str, task: str, verifier: str) -> Iterator[Answered]:
    """Every judged reply of an agent to a task, by round, temperature, number and turn.

    A guardian's reply that changed nothing is none; nor is a program of a static guardian, which nobody wrote.
    """
    program = text.alias("program")
    same = (candidate.c.sample == request.c.sample) & (candidate.c.agent == request.c.agent)
    is_judged = (verdict.c.sample == request.c.sample) & (verdict.c.candidate == func.coalesce(candidate.c.id, ""))
    query = (
        select(
            request.c.sample, request.c.round, request.c.temperature, request.c.number, request.c.agent,
            request.c.prompt, request.c.asked, reply.c.texts, program.c.body.label("program"),
            func.coalesce(reverdict.c.stage, verdict.c.stage).label("stage"),
            func.coalesce(reverdict.c.outcome, verdict.c.outcome).label("outcome"),
            func.coalesce(reverdict.c.body, verdict.c.body).label("body"),
        )
        .join(reply, reply.c.request == request.c.id)
        .outerjoin(candidate, same)
        .join(verdict, is_judged)
        .outerjoin(program, program.c.hash == candidate.c.id)
        .outerjoin(reverdict, _is_later(verifier))
        .where(request.c.run == run, request.c.task == task)
        .where((request.c.agent == PROPOSER) | candidate.c.id.is_not(None))
        .order_by(request.c.round, request.c.temperature, request.c.number, request.c.agent)
    )  # fmt: skip
    return map(_read_answered, reader.fetch_rows(query))


def read_prompt(reader: Reader, name: str) -> tuple[Message, ...]:
    """The messages of the prompt of that hash."""
    messages = read_prompt_names(reader.read_text(name))
    bodies = reader.read_texts(body for message in messages for body in message.names)
    return tuple(message.read_message(bodies) for message in messages)


def verdict_of(reader: Reader, body: str) -> Verdict:
    """The verdict whose JSON has that hash."""
    return verdict_from_json(json.loads(reader.read_text(body)))


def _is_later(verifier: str) -> Any:
    same = (reverdict.c.sample == verdict.c.sample) & (reverdict.c.candidate == verdict.c.candidate)
    return same & (reverdict.c.verifier == verifier)


def _read_judgement(row: Row[Any]) -> Judgement:
    after = (Stage(row.later_stage), Outcome(row.later_outcome)) if row.later_stage is not None else None
    before = (Stage(row.stage), Outcome(row.outcome))
    return Judgement(row.id, row.round, row.task, row.temperature, row.candidate, row.final, before, after, row.body)


def _read_answered(row: Row[Any]) -> Answered:
    answer = (json.loads(row.texts) or [""])[0]
    place = (row.sample, row.round, row.temperature, row.number, row.agent, row.prompt)
    return Answered(*place, answer, row.program, Stage(row.stage), Outcome(row.outcome), row.body, row.asked)
