"""Rounds and what came of them: what each set out to do, and which of its samples were judged, right or lost."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, func, select, true

from opsmith.store import schema
from opsmith.store.reading import Reading
from opsmith.store.requests import is_proposed
from opsmith.store.rows import FUNCTIONAL, PromptFit, RoundInfo
from opsmith.store.schema import failure, is_right, one_if_right, request, text, verdict


@dataclass(frozen=True)
class Tally:
    """The judged samples of one task at one temperature of one round."""

    round: int
    task: str
    temperature: float
    right: int
    judged: int


@dataclass(frozen=True)
class Answer:
    """A right program, and the sample that it came from."""

    task: str
    temperature: float
    number: int
    sample: str
    source: str


class RoundQueries(Reading):
    """Questions about the rounds of a run."""

    def read_rounds(self, run: str, with_children: bool = False) -> list[tuple[RoundInfo, tuple[str, ...] | None]]:
        """Every round with the tasks it solved; None for a round that has not ended. `with_children`: those of plans
        are among the tasks, not the run's own alone."""
        began, ended = schema.round_, schema.round_end
        joined = began.outerjoin(ended, (began.c.run == ended.c.run) & (began.c.number == ended.c.number))
        query = select(began, ended.c.solved).select_from(joined).where(began.c.run == run).order_by(began.c.number)
        rounds = [(_round_info(row), _read_names(row.solved)) for row in self.fetch_rows(query)]
        children = frozenset() if with_children else self.list_children(run)
        if not children:
            return rounds

        def leave_out(tasks: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(task for task in tasks if task not in children)

        return [
            (replace(info, attempted=leave_out(info.attempted)), None if solved is None else leave_out(solved))
            for info, solved in rounds
        ]

    def judged_ids(self, run: str, number: int) -> set[str]:
        """The samples of a round that have their verdict."""
        query = select(request.c.id).join(verdict, verdict.c.sample == request.c.id)
        return {row.id for row in self.fetch_rows(query.where(is_proposed(run, number), verdict.c.final))}

    def read_tallies(self, run: str, number: int | None = None, with_children: bool = False) -> list[Tally]:
        """Right and judged samples of a round, or of all functional ones, by round, task and temperature."""
        right = func.sum(one_if_right).label("right")
        place = (request.c.round, request.c.task, request.c.temperature)
        query = select(*place, right, func.count().label("judged")).join(verdict, verdict.c.sample == request.c.id)
        counted = is_proposed(run, number) & (true() if number is not None else self.is_functional(run))
        query = query.where(counted, verdict.c.final).group_by(*place).order_by(*place)
        tallies = [Tally(r.round, r.task, r.temperature, r.right, r.judged) for r in self.fetch_rows(query)]
        children = frozenset() if with_children else self.list_children(run)
        return [tally for tally in tallies if tally.task not in children] if children else tallies

    def read_answers(self, run: str, number: int) -> list[Answer]:
        """The right programs of a round."""
        query = (
            select(request.c.task, request.c.temperature, request.c.number, request.c.id, text.c.body)
            .join(verdict, verdict.c.sample == request.c.id)
            .join(text, text.c.hash == verdict.c.candidate)
            .where(is_proposed(run, number), verdict.c.final, is_right)
        )
        return [Answer(r.task, r.temperature, r.number, r.id, r.body) for r in self.fetch_rows(query)]

    def read_failures(self, run: str, number: int) -> list[tuple[str, str, str]]:
        """(task, charged to, message) of the samples of a round that were left unjudged at least once."""
        query = select(failure.c.task, failure.c.charged_to, failure.c.message)
        rows = self.fetch_rows(
            query.where(failure.c.run == run, failure.c.round == number).order_by(failure.c.id_number)
        )
        return [(row.task, row.charged_to, row.message) for row in rows]

    def read_charges(self, run: str) -> set[tuple[int, str, str]]:
        """(round, task, charged to) of all samples of a run that were left unjudged at least once."""
        query = select(failure.c.round, failure.c.task, failure.c.charged_to).where(failure.c.run == run).distinct()
        return {(row.round, row.task, row.charged_to) for row in self.fetch_rows(query)}


def _round_info(row: Row[Any]) -> RoundInfo:
    demonstrations = tuple((task, source) for task, source in json.loads(row.demonstrations))
    attempted, phase = _read_names(row.attempted) or (), row.phase or FUNCTIONAL
    return RoundInfo(
        row.number, row.cycle, row.level, demonstrations, attempted, row.planned, phase, _read_fit(row.fit)
    )


def _read_fit(text_of_fit: str | None) -> PromptFit | None:
    if text_of_fit is None:
        return None
    stored = json.loads(text_of_fit)
    left_out = tuple((task, tuple(names)) for task, names in stored["left_out"])
    return PromptFit(stored["window"], stored["factor"], left_out)


def _read_names(text_of_list: str | None) -> tuple[str, ...] | None:
    return None if text_of_list is None else tuple(json.loads(text_of_list))
