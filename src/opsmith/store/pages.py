"""How is a large run read a page at a time? Counts of its samples, one page of those that a filter lets through, and
the last verdicts; each in milliseconds for 100,000 samples.

A page begins after a sample, not at a number of rows, so that the last page costs what the first one does. The counts
say at which places a filter finds something, so that a filter that few samples pass reads few rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, func, select, tuple_

from opsmith.records import Outcome, Stage
from opsmith.store import schema
from opsmith.store.queries import Reader, begins_with
from opsmith.store.rows import PROPOSER
from opsmith.store.schema import candidate, failure, request, verdict

SIZE = 50  # samples of a page
_PLACE = (request.c.round, request.c.task, request.c.temperature, request.c.number)
_JUDGED = (verdict.c.sample == request.c.id) & verdict.c.final
_COUNTED = (candidate.c.sample == verdict.c.sample) & (candidate.c.id == verdict.c.candidate)
_FOUND = (verdict.c.stage, verdict.c.outcome, candidate.c.agent)


class Kind(NamedTuple):
    """What samples are counted by; the last three are None for a sample without a verdict."""

    round: int
    task: str
    temperature: float
    stage: Stage | None
    outcome: Outcome | None
    agent: str | None  # who wrote the program that counts; None too where a reply held no program


@dataclass(frozen=True)
class Filter:
    """Which samples are wanted; None, or an empty text: any. An outcome of UNJUDGED means: no verdict."""

    task: str | None = None
    round: int | None = None
    temperature: float | None = None
    stage: Stage | None = None
    outcome: Outcome | None = None
    agent: str | None = None
    begins: str = ""  # of the sample's id

    def lets(self, kind: Kind) -> bool:
        """Whether samples of this kind may pass; `begins` is not looked at."""
        outcome = kind.outcome or Outcome.UNJUDGED
        pairs = ((self.task, kind.task), (self.round, kind.round), (self.temperature, kind.temperature))
        found = ((self.stage, kind.stage), (self.outcome, outcome), (self.agent, kind.agent))
        return all(wanted is None or wanted == given for wanted, given in (*pairs, *found))


class Place(NamedTuple):
    """Where a sample stands in the order of a run's samples."""

    round: int
    task: str
    temperature: float
    number: int


@dataclass(frozen=True)
class SampleLine:
    """One line of a list of samples; `outcome` None: there is no verdict yet, or no reply."""

    id: str
    place: Place
    stage: Stage | None
    outcome: Outcome | None
    agent: str | None
    at: float | None  # when it was judged, in seconds since 1970


@dataclass(frozen=True)
class Page:
    """Samples in order; `before` and `after`: what to ask for the neighbouring pages, None where there is none."""

    lines: tuple[SampleLine, ...]
    before: Place | None
    after: Place | None


@dataclass(frozen=True)
class Solved:
    """A task of a run that has a solution; `sample` None: it had one when the run began."""

    task: str
    digest: str
    round: int
    rate: float
    sample: str | None
    contaminated: bool


def count_kinds(reader: Reader, run: str, number: int) -> Counter[Kind]:
    """The samples of a round, counted by kind.

    Who wrote a program is asked for those alone that are not the proposer's: it is most of the work.
    """
    place, found = (request.c.task, request.c.temperature), (verdict.c.stage, verdict.c.outcome)
    empty = (verdict.c.candidate == "").label("empty")
    query = select(*place, *found, empty, func.count().label("samples"))
    query = query.select_from(request.outerjoin(verdict, _JUDGED)).where(_proposed(run), request.c.round == number)
    counts: Counter[Kind] = Counter()
    for row in reader.ask(query.group_by(*place, *found, empty)):
        agent = PROPOSER if row.empty == 0 else None  # None too where there is no verdict
        counts[Kind(number, row.task, row.temperature, *_found(row), agent)] += row.samples
    for kind, samples in _of_others(reader, run, number).items():
        counts[kind] += samples
        counts[kind._replace(agent=PROPOSER)] -= samples
    return +counts


def _of_others(reader: Reader, run: str, number: int) -> Counter[Kind]:
    """Those of them whose program another agent wrote."""
    groups = (request.c.task, request.c.temperature, *_FOUND)
    query = select(*groups, func.count().label("samples")).select_from(
        candidate.join(verdict, _COUNTED & verdict.c.final).join(request, request.c.id == candidate.c.sample)
    )
    query = query.where(candidate.c.run == run, candidate.c.agent != PROPOSER, request.c.round == number)
    rows = reader.ask(query.group_by(*groups))
    return Counter({Kind(number, row.task, row.temperature, *_found(row), row.agent): row.samples for row in rows})


def page_of(
    reader: Reader,
    run: str,
    wanted: Filter,
    counts: Mapping[Kind, int],
    *,
    after: Place | None = None,
    before: Place | None = None,
    size: int = SIZE,
) -> Page:
    """The samples that pass, from the first on, or next to a place; `counts`: of the whole run."""
    back = before is not None
    edge = before if back else after
    found = _by_id if wanted.begins else _by_place
    rows = []
    for line in found(reader, run, wanted, counts, edge, back, size + 1):
        rows.append(line)
        if len(rows) > size:
            break
    more, lines = len(rows) > size, tuple(rows[:size][::-1] if back else rows[:size])
    if not lines:
        return Page((), None, None)
    earlier, later = (more, True) if back else (edge is not None, more)
    return Page(lines, lines[0].place if earlier else None, lines[-1].place if later else None)


def last_verdicts(reader: Reader, run: str, number: int) -> list[SampleLine]:
    """The last `number` samples that were judged, newest first."""
    query = select(request.c.id, *_PLACE, *_FOUND, verdict.c.at).select_from(verdict)
    query = query.join(request, request.c.id == verdict.c.sample).outerjoin(candidate, _COUNTED)
    query = query.where(verdict.c.run == run, verdict.c.final).order_by(verdict.c.at.desc()).limit(number)
    return [_line(row) for row in reader.ask(query)]


def judged_since(reader: Reader, run: str, moment: float) -> int:
    """Verdicts since a moment, those on a proposal that was rewritten included."""
    query = select(func.count()).where(verdict.c.run == run, verdict.c.at > moment)
    return int(reader.ask(query)[0][0])


def solutions(reader: Reader, run: str) -> list[Solved]:
    """By round, then task; without the programs."""
    kept = schema.experience
    columns = (kept.c.task, kept.c.digest, kept.c.round, kept.c.success_rate, kept.c.sample, kept.c.contaminated)
    query = select(*columns).where(kept.c.run == run).order_by(kept.c.round, kept.c.task)
    return [Solved(*tuple(row)) for row in reader.ask(query)]


def problems(reader: Reader, run: str, number: int) -> list[tuple[int, str, str, str]]:
    """(round, task, charged to, message) of the last samples that were left unjudged, newest first."""
    columns = (failure.c.round, failure.c.task, failure.c.charged_to, failure.c.message)
    query = select(*columns).where(failure.c.run == run).order_by(failure.c.id_number.desc()).limit(number)
    return [tuple(row) for row in reader.ask(query)]


def session_settings(reader: Reader, run: str) -> dict[str, Any]:
    """All settings of the last process that worked on a run; empty before the first."""
    told = schema.session
    query = select(told.c.settings).where(told.c.run == run).order_by(told.c.id_number.desc()).limit(1)
    return dict(json.loads(row.settings)) if (row := next(iter(reader.ask(query)), None)) else {}


def run_ids(reader: Reader) -> list[tuple[str, float]]:
    """Every run with the moment it began, newest first."""
    query = select(schema.run.c.id, schema.run.c.at).order_by(schema.run.c.at.desc())
    return [(row.id, row.at) for row in reader.ask(query)]


def _joined(query: Select[Any], run: str) -> Select[Any]:
    """The proposer's requests with the verdict that counts and who wrote its program."""
    joined = request.outerjoin(verdict, _JUDGED).outerjoin(candidate, _COUNTED)
    return query.select_from(joined).where(_proposed(run))


def _proposed(run: str) -> Any:
    return (request.c.run == run) & (request.c.agent == PROPOSER)


def _by_place(
    reader: Reader, run: str, wanted: Filter, counts: Mapping[Kind, int], edge: Place | None, back: bool, size: int
) -> Iterator[SampleLine]:
    """Cell after cell (round, task, temperature), only those in which the counts know a sample that passes."""
    cells = sorted({kind[:3] for kind, samples in counts.items() if samples and wanted.lets(kind)}, reverse=back)
    for cell in cells:
        if edge is not None and (cell > edge[:3] if back else cell < edge[:3]):
            continue
        within = edge if edge is not None and cell == edge[:3] else None
        in_cell = tuple_(*_PLACE[:3]) == tuple_(*cell)
        yield from _lines(reader, run, wanted, in_cell, within, back, size)


def _by_id(
    reader: Reader, run: str, wanted: Filter, _: Mapping[Kind, int], edge: Place | None, back: bool, size: int
) -> Iterator[SampleLine]:
    yield from _lines(reader, run, wanted, begins_with(wanted.begins), edge, back, size)


def _lines(
    reader: Reader, run: str, wanted: Filter, where: Any, edge: Place | None, back: bool, size: int
) -> list[SampleLine]:
    query = _joined(select(request.c.id, *_PLACE, *_FOUND, verdict.c.at), run).where(where, *_conditions(wanted))
    if edge is not None:
        place = tuple_(*_PLACE)
        query = query.where(place < tuple_(*edge) if back else place > tuple_(*edge))
    order = [column.desc() for column in _PLACE] if back else _PLACE
    return [_line(row) for row in reader.ask(query.order_by(*order).limit(size))]


def _conditions(wanted: Filter) -> Iterator[Any]:
    pairs = ((request.c.task, wanted.task), (request.c.round, wanted.round), (candidate.c.agent, wanted.agent))
    yield from (column == value for column, value in pairs if value is not None)
    if wanted.temperature is not None:
        yield request.c.temperature == wanted.temperature
    if wanted.stage is not None:
        yield verdict.c.stage == wanted.stage.name
    if wanted.outcome is Outcome.UNJUDGED:
        yield verdict.c.outcome.is_(None)
    elif wanted.outcome is not None:
        yield verdict.c.outcome == wanted.outcome.value


def _found(row: Row[Any]) -> tuple[Stage | None, Outcome | None]:
    return Stage[row.stage] if row.stage else None, Outcome(row.outcome) if row.outcome else None


def _line(row: Row[Any]) -> SampleLine:
    place = Place(row.round, row.task, row.temperature, row.number)
    return SampleLine(row.id, place, *_found(row), row.agent, row.at)
