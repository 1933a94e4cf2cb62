"""What each model of a run was asked and answered. Questions of figures by model and of policies, which decide by them.

A model is named as the samples name it (`SampleKey.model`): "" is the run's own where it has no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import case, func, select

from opsmith.records import Outcome, Usage
from opsmith.store.queries import Reader
from opsmith.store.requests import is_proposed, read_sum, sums_of_bills
from opsmith.store.schema import failure, reply, reply_of, request, verdict


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


def count_samples(reader: Reader, run: str) -> list[ModelCount]:
    """By model, then task."""
    model = func.coalesce(request.c.asked, "").label("asked_model")
    verdicts = func.count(verdict.c.sample).label("verdicts")
    right = func.coalesce(func.sum(case((verdict.c.outcome == Outcome.PASSED.value, 1), else_=0)), 0).label("right")
    joined = request.outerjoin(verdict, (verdict.c.sample == request.c.id) & verdict.c.final)
    query = select(model, request.c.task, func.count().label("answered"), verdicts, right).select_from(joined)
    query = query.where(is_proposed(run), reader.is_functional(run)).group_by(model, request.c.task)
    rows = reader.fetch_rows(query.order_by(model, request.c.task))
    return [ModelCount(row.asked_model, row.task, row.answered, row.verdicts, row.right) for row in rows]


def list_right_samples(reader: Reader, run: str) -> list[RightSample]:
    """In no order that means anything: `results.by_model` knows which comes first."""
    model = func.coalesce(request.c.asked, "").label("asked_model")
    place = (request.c.task, request.c.round, request.c.number, request.c.temperature)
    query = select(model, *place).join(verdict, verdict.c.sample == request.c.id)
    query = query.where(is_proposed(run), reader.is_functional(run), verdict.c.final)
    rows = reader.fetch_rows(query.where(verdict.c.outcome == Outcome.PASSED.value))
    return [RightSample(row.asked_model, row.task, row.round, row.number, row.temperature) for row in rows]


def read_tried(reader: Reader, run: str, number: int) -> Mapping[str, bool]:
    """The samples of a round that left a row, a reply or a failure, by id: whether they are right."""
    replied = select(request.c.sample).where(request.c.run == run, request.c.round == number).distinct()
    failed = select(failure.c.sample).where(failure.c.run == run, failure.c.round == number).distinct()
    passed = select(request.c.id).join(verdict, verdict.c.sample == request.c.id)
    passed = passed.where(is_proposed(run, number), verdict.c.final, verdict.c.outcome == Outcome.PASSED.value)
    right = {row.id for row in reader.fetch_rows(passed)}
    names = [row.sample for query in (replied, failed) for row in reader.fetch_rows(query)]
    return {name: name in right for name in names}
