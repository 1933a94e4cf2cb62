"""Verdicts of the full level on programs that would be kept, and what they change.

Such a verdict is stored when it is found. What it says of its sample counts from the end of the round on, in which
nothing may depend on when it was found: `overruled_rows` are put with the row that ends a round.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select

from opsmith.records import Outcome, Verdict, verdict_from_json
from opsmith.store.database import Overwrite, Row
from opsmith.store.queries import Reader
from opsmith.store.schema import full_verdict, request, text, verdict


def find_full_verdict(reader: Reader, run: str, task: str, candidate: str) -> Verdict | None:
    """On a program for a task, whichever sample held it; None: there is none yet."""
    query = (
        select(text.c.body)
        .join(full_verdict, full_verdict.c.body == text.c.hash)
        .join(request, request.c.id == full_verdict.c.sample)
        .where(full_verdict.c.run == run, full_verdict.c.candidate == candidate, request.c.task == task)
    )
    bodies = [row.body for row in reader.fetch_rows(query.limit(1))]
    return verdict_from_json(json.loads(bodies[0])) if bodies else None


def overruled_rows(reader: Reader, run: str) -> list[Row]:
    """The verdicts of samples that count as right and that the full level has refused, as they count from now on."""
    same = (verdict.c.sample == full_verdict.c.sample) & (verdict.c.candidate == full_verdict.c.candidate)
    names = ("sample", "candidate", "stage", "outcome", "body", "seconds")
    query = select(*(full_verdict.c[name] for name in names)).join(verdict, same)
    is_right: Any = verdict.c.outcome == Outcome.PASSED.value
    refused = (full_verdict.c.run == run) & (full_verdict.c.outcome == Outcome.REFUSED.value)
    return [(Overwrite(verdict), row._asdict()) for row in reader.fetch_rows(query.where(refused, is_right))]
