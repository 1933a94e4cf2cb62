"""Programs that were refused and samples that nobody could judge, as reports group them: equal ones once, counted.

Only functional rounds count. The text of a verdict is not brought along: `Reader.read_texts` has it by its hash.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import exists, func, select

from opsmith.records import Outcome, Stage
from opsmith.store.queries import Reader
from opsmith.store.requests import is_proposed
from opsmith.store.rows import FUNCTIONAL
from opsmith.store.schema import failure, request, verdict


@dataclass(frozen=True)
class RefusalRow:
    """A program of one task in one round with the verdict that refused it, and how many samples held it."""

    task: str
    round: int
    stage: Stage
    program: str  # hash of its text; "": the replies held no program
    body: str  # hash of the verdict's JSON
    samples: int
    sample: str  # one of them


@dataclass(frozen=True)
class FailedSample:
    """A sample without a verdict, by what left it so last."""

    task: str
    round: int
    charged_to: str  # a `Boundary`, or `rows.NOBODY`
    message: str


def list_functional_rounds(reader: Reader, run: str) -> list[int]:
    """The numbers of a run's rounds that solve tasks."""
    return [info.number for info, _ in reader.read_rounds(run, with_children=True) if info.phase == FUNCTIONAL]


def list_refused_programs(reader: Reader, run: str, number: int, task: str | None = None) -> list[RefusalRow]:
    """Of one round, of all its tasks or of one, in no order that means anything."""
    columns = (request.c.task, verdict.c.stage, verdict.c.candidate, verdict.c.body)
    counts = (func.count().label("samples"), func.min(request.c.id).label("sample"))
    query = select(*columns, *counts).select_from(request).join(verdict, verdict.c.sample == request.c.id)
    query = query.where(is_proposed(run, number), verdict.c.final, verdict.c.outcome == Outcome.REFUSED.value)
    if task is not None:
        query = query.where(request.c.task == task)
    return [
        RefusalRow(row.task, number, Stage(row.stage), row.candidate, row.body, row.samples, row.sample)
        for row in reader.fetch_rows(query.group_by(*columns))
    ]


def list_failed_samples(reader: Reader, run: str, numbers: list[int], task: str | None = None) -> list[FailedSample]:
    """The samples of these rounds that have no verdict, each by its last failure, asked for or not."""
    is_judged = exists().where(verdict.c.sample == failure.c.sample, verdict.c.final)
    columns = (failure.c.sample, failure.c.task, failure.c.round, failure.c.charged_to, failure.c.message)
    query = select(*columns).where(failure.c.run == run, failure.c.round.in_(numbers), ~is_judged)
    if task is not None:
        query = query.where(failure.c.task == task)
    rows = {row.sample: row for row in reader.fetch_rows(query.order_by(failure.c.id_number))}
    return [FailedSample(row.task, row.round, row.charged_to, row.message) for row in rows.values()]
