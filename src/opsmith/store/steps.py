"""The samples of a run's optimisation rounds: from which program each set out, and what became of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from opsmith.records import Outcome, Stage, Suggestion
from opsmith.store.reading import Reading, read_outcome
from opsmith.store.rows import OPTIMISATION, PROPOSER
from opsmith.store.schema import PLACE, is_counted, request, suggestion, text, verdict


@dataclass(frozen=True)
class StepRow:
    """A sample that was asked to make a right program better; `outcome` None: it has no verdict."""

    sample: str
    round: int
    task: str
    temperature: float
    number: int  # of its round: modulo the number of the task's parents, the place of its own among them
    suggestion: Suggestion | None
    candidate: str | None  # Candidate.id; None: no reply, or no program in it
    source: str | None
    stage: Stage | None
    outcome: Outcome | None


class StepQueries(Reading):
    """Questions about the samples of optimisation rounds."""

    def read_steps(self, run: str, number: int | None = None) -> list[StepRow]:
        """Of a run, or of one of its rounds, by round, task, temperature and number."""
        words = text.alias("suggestion_text")
        joined = request.outerjoin(verdict, is_counted)
        joined = joined.outerjoin(text, text.c.hash == verdict.c.candidate)
        joined = joined.outerjoin(suggestion, suggestion.c.sample == request.c.id)
        joined = joined.outerjoin(words, words.c.hash == suggestion.c.body)
        columns = (verdict.c.candidate, verdict.c.stage, verdict.c.outcome, text.c.body.label("source"))
        query = select(request.c.id, *PLACE, *columns, words.c.body.label("suggestion")).select_from(joined)
        query = query.where(request.c.run == run, request.c.agent == PROPOSER, request.c.phase == OPTIMISATION)
        if number is not None:
            query = query.where(request.c.round == number)
        return [_read_step(row) for row in self.fetch_rows(query.order_by(*PLACE))]

    def read_suggestion(self, sample: str) -> Suggestion | None:
        """What was suggested to a sample."""
        query = select(text.c.body).join(suggestion, suggestion.c.body == text.c.hash)
        rows = self.fetch_rows(query.where(suggestion.c.sample == sample))
        return Suggestion(**json.loads(rows[0].body)) if rows else None


def _read_step(row: Row[Any]) -> StepRow:
    words = None if row.suggestion is None else Suggestion(**json.loads(row.suggestion))
    place = (row.id, row.round, row.task, row.temperature, row.number)
    return StepRow(*place, words, row.candidate or None, row.source, *read_outcome(row))
