"""How a run's samples ended by round, those that were joined from parts one by one, and after how many attempts its
tasks were right. Questions of reports alone."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from opsmith.records import Outcome, Stage
from opsmith.store.queries import Reader
from opsmith.store.reading import read_outcome
from opsmith.store.requests import is_proposed
from opsmith.store.rows import JOIN
from opsmith.store.schema import PLACE, is_counted, one_if_right, request, verdict


@dataclass(frozen=True)
class RoundEnding:
    """How many samples of a round ended in one way; None twice: without a verdict."""

    round: int
    stage: Stage | None
    outcome: Outcome | None
    samples: int


@dataclass(frozen=True)
class JoinRow:
    """One joined program; `outcome` None: it has no verdict yet."""

    sample: str
    task: str
    round: int
    stage: Stage | None
    outcome: Outcome | None


def count_endings(reader: Reader, run: str) -> list[RoundEnding]:
    """Of all rounds, in their order."""
    groups = (request.c.round, verdict.c.stage, verdict.c.outcome)
    joined = request.outerjoin(verdict, is_counted)
    query = select(*groups, func.count().label("samples")).select_from(joined).where(is_proposed(run))
    return [
        RoundEnding(row.round, *read_outcome(row), row.samples)
        for row in reader.fetch_rows(query.group_by(*groups).order_by(*groups))
    ]


def find_first_right(reader: Reader, run: str) -> dict[str, tuple[int | None, int]]:
    """By task: which of its attempts in functional rounds was the first right one, from 1 (None: none was), and how
    many there were. An attempt is a program, those of repair turns included, or a reply without one."""
    right = func.max(one_if_right).label("right")
    joined = request.join(verdict, verdict.c.sample == request.c.id)
    query = select(*PLACE, right, func.count().label("attempts")).select_from(joined)
    query = query.where(is_proposed(run), reader.is_functional(run))
    query = query.group_by(*PLACE, request.c.id).order_by(*PLACE, request.c.id)
    firsts: dict[str, tuple[int | None, int]] = {}
    for row in reader.fetch_rows(query):
        first, before = firsts.get(row.task, (None, 0))
        attempts = before + row.attempts
        firsts[row.task] = (first or (attempts if row.right else None), attempts)
    return firsts


def list_joins(reader: Reader, run: str) -> list[JoinRow]:
    """Of a run, by round and task."""
    joined = request.outerjoin(verdict, is_counted)
    query = select(request.c.id, request.c.task, request.c.round, verdict.c.stage, verdict.c.outcome)
    query = query.select_from(joined).where(is_proposed(run), request.c.asked == JOIN).order_by(*PLACE)
    return [JoinRow(row.id, row.task, row.round, *read_outcome(row)) for row in reader.fetch_rows(query)]
