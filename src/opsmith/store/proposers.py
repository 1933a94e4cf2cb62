"""What each model of a run was asked and answered. Questions of figures by model and of policies, which decide by them.

A model is named as the samples name it (`SampleKey.model`): "" is the run's own where it has no others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import func, select, true

from opsmith.records import Boundary, Outcome, Usage
from opsmith.store.queries import Reader
from opsmith.store.requests import is_by, is_proposed, read_sum, sums_of_bills
from opsmith.store.rows import NOBODY, PLANNER
from opsmith.store.schema import failure, is_counted, is_right, one_if_right, reply, reply_of, request, verdict


class SampleEnd(StrEnum):
    """What a sample of a round that left a row has come to so far."""

    RIGHT = "right"
    WRONG = "wrong"
    UNJUDGED = "unjudged"  # it waits for its verdict, or had none
    FAILED = "failed"  # its model had no answer
    EXHAUSTED = "exhausted"  # its model has nothing more for the task
    TASK_FAULT = "task fault"  # the task's file is at fault


_FAILURES = {
    Boundary.PROVIDER.value: SampleEnd.FAILED,
    Boundary.TASK.value: SampleEnd.TASK_FAULT,
    NOBODY: SampleEnd.EXHAUSTED,
}


@dataclass(frozen=True)
class ModelCount:
    """The samples that one model was asked for at one task, in functional rounds."""

    model: str
    task: str
    answered: int
    verdicts: int
    right: int


@dataclass(frozen=True)
class RightSample:
    """One right sample of a functional round."""

    model: str
    task: str
    round: int
    number: int
    temperature: float


def sum_bills(reader: Reader, run: str) -> dict[tuple[str, str], Usage]:
    """Billed tokens and money by (model, agent), of all rounds."""
    model = func.coalesce(request.c.asked, "").label("asked_model")
    query = select(model, request.c.agent, *sums_of_bills()).join(reply, reply_of).where(request.c.run == run)
    rows = reader.fetch_rows(query.group_by(model, request.c.agent).order_by(model, request.c.agent))
    return {(row.asked_model, row.agent): read_sum(row) for row in rows}


def count_samples(reader: Reader, run: str, before: int | None = None) -> list[ModelCount]:
    """By model, then task; `before`: of the rounds before that one."""
    model = func.coalesce(request.c.asked, "").label("asked_model")
    verdicts = func.count(verdict.c.sample).label("verdicts")
    right = func.coalesce(func.sum(one_if_right), 0).label("right")
    joined = request.outerjoin(verdict, is_counted)
    query = select(model, request.c.task, func.count().label("answered"), verdicts, right).select_from(joined)
    query = query.where(is_proposed(run), reader.is_functional(run), _is_before(before))
    rows = reader.fetch_rows(query.group_by(model, request.c.task).order_by(model, request.c.task))
    return [ModelCount(row.asked_model, row.task, row.answered, row.verdicts, row.right) for row in rows]


def list_right_samples(reader: Reader, run: str, before: int | None = None) -> list[RightSample]:
    """In no order that means anything: `results.by_model` knows which comes first. `before`: as above."""
    model = func.coalesce(request.c.asked, "").label("asked_model")
    place = (request.c.task, request.c.round, request.c.number, request.c.temperature)
    query = select(model, *place).join(verdict, verdict.c.sample == request.c.id)
    query = query.where(is_proposed(run), reader.is_functional(run), _is_before(before), verdict.c.final)
    rows = reader.fetch_rows(query.where(is_right))
    return [RightSample(row.asked_model, row.task, row.round, row.number, row.temperature) for row in rows]


def read_ends(reader: Reader, run: str, number: int) -> dict[str, SampleEnd]:
    """The samples of a round that left a row, a reply or a failure, by id."""
    replied = select(request.c.sample).where(request.c.run == run, request.c.round == number)
    replied = replied.where(~is_by(request, PLANNER)).distinct()
    failed = select(failure.c.sample, failure.c.charged_to).where(failure.c.run == run, failure.c.round == number)
    counted = select(request.c.id, verdict.c.outcome).join(verdict, verdict.c.sample == request.c.id)
    ends = {row.sample: SampleEnd.UNJUDGED for row in reader.fetch_rows(replied)}
    for row in reader.fetch_rows(failed.distinct()):
        ends[row.sample] = _FAILURES.get(row.charged_to, SampleEnd.UNJUDGED)
    for row in reader.fetch_rows(counted.where(is_proposed(run, number), verdict.c.final)):
        ends[row.id] = SampleEnd.RIGHT if row.outcome == Outcome.PASSED.value else SampleEnd.WRONG
    return ends


def list_exhausted(reader: Reader, run: str, rounds: Collection[int]) -> frozenset[str]:
    """Tasks for which no proposer has anything more, as samples of these rounds found out."""
    info = reader.read_info(run)
    proposers = (info.settings.get("models") if info is not None else None) or [""]
    place = (failure.c.round, failure.c.task, failure.c.asked)
    query = select(*place).where(failure.c.run == run, failure.c.charged_to == NOBODY).distinct()
    ended = {(row.task, row.asked or "") for row in reader.fetch_rows(query) if row.round in rounds}
    return frozenset(task for task, _ in ended if all((task, model) in ended for model in proposers))


def _is_before(number: int | None) -> Any:
    return true() if number is None else request.c.round < number
