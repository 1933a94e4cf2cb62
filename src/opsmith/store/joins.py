"""Samples whose programs were joined from those of a plan's parts, with their verdicts. A question of reports alone."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from opsmith.records import Outcome, Stage
from opsmith.store.queries import Reader
from opsmith.store.requests import is_proposed
from opsmith.store.rows import JOIN
from opsmith.store.schema import PLACE, request, verdict


@dataclass(frozen=True)
class JoinRow:
    """One joined program; `outcome` None: it has no verdict yet."""

    sample: str
    task: str
    round: int
    stage: Stage | None
    outcome: Outcome | None


def list_joins(reader: Reader, run: str) -> list[JoinRow]:
    """Of a run, by round and task."""
    joined = request.outerjoin(verdict, (verdict.c.sample == request.c.id) & verdict.c.final)
    query = select(request.c.id, request.c.task, request.c.round, verdict.c.stage, verdict.c.outcome)
    query = query.select_from(joined).where(is_proposed(run), request.c.asked == JOIN).order_by(*PLACE)
    return [
        JoinRow(
            row.id,
            row.task,
            row.round,
            Stage(row.stage) if row.stage else None,
            Outcome(row.outcome) if row.outcome else None,
        )
        for row in reader.fetch_rows(query)
    ]
