"""A large run, read a page at a time. Counts of its samples, one page of those that a filter lets through, and
the last verdicts; each in milliseconds for 100,000 samples.

A page begins after a sample, not at a number of rows, so that the last page costs what the first one does. The counts
say at which places a filter finds something, so that a filter that few samples pass reads few rows. Words are looked
for in programs and messages for a second at most; the page says then how many samples it did not come to.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, exists, func, or_, select, tuple_

from opsmith.records import KNOWN, Diagnostic, Outcome, Stage, verdict_from_json
from opsmith.store import schema
from opsmith.store.queries import Reader
from opsmith.store.reading import read_outcome
from opsmith.store.requests import begins_with, is_proposed
from opsmith.store.rows import PROPOSER
from opsmith.store.schema import PLACE, candidate, failure, is_counted, request, text, verdict

SIZE = 50  # samples of a page
SEARCH_S = 1.0  # after which no further samples are searched for a page
_COUNTED = (candidate.c.sample == verdict.c.sample) & (candidate.c.id == verdict.c.candidate)
_FOUND = (verdict.c.stage, verdict.c.outcome, candidate.c.agent)


class SampleKind(NamedTuple):
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
    words: str = ""  # in the program that counts or in its verdict; capital letters and small ones are equal

    def lets_pass(self, kind: SampleKind) -> bool:
        """Whether samples of this kind may pass; `begins` and `words` are not looked at."""
        outcome = kind.outcome or Outcome.UNJUDGED
        pairs = ((self.task, kind.task), (self.round, kind.round), (self.temperature, kind.temperature))
        verdicts = ((self.stage, kind.stage), (self.outcome, outcome), (self.agent, kind.agent))
        return all(condition is None or condition == value for condition, value in (*pairs, *verdicts))


class SamplePlace(NamedTuple):
    """Where a sample stands in the order of a run's samples."""

    round: int
    task: str
    temperature: float
    number: int
    id: str = ""  # the sample's, by which samples of several models at one place are told apart


@dataclass(frozen=True)
class SampleLine:
    """One line of a list of samples; `outcome` None: there is no verdict yet, or no reply."""

    id: str
    place: SamplePlace
    stage: Stage | None
    outcome: Outcome | None
    agent: str | None
    at: float | None  # when it was judged, in seconds since 1970


@dataclass(frozen=True)
class Page:
    """Samples in order; `before` and `after`: what to ask for the neighbouring pages, None where there is none."""

    lines: tuple[SampleLine, ...]
    before: SamplePlace | None
    after: SamplePlace | None
    unsearched: int = 0  # samples that a search for words did not come to in its time


@dataclass(frozen=True)
class SolvedTask:
    """A task of a run that has a solution; `sample` None: the run was given it, when it began or later."""

    task: str
    digest: str
    round: int
    rate: float
    sample: str | None
    contaminated: bool
    origin: str

    @property
    def is_known(self) -> bool:
        """Whether it was given as known (`Experience.is_known`)."""
        return self.origin.startswith(KNOWN)

    @property
    def is_earlier(self) -> bool:
        """As `KeptExperience.is_earlier`."""
        return self.sample is None and not (self.is_known and self.round >= 0)


def count_kinds(reader: Reader, run: str, number: int) -> Counter[SampleKind]:
    """The samples of a round, counted by kind.

    Who wrote a program is asked for those alone that are not the proposer's: it is most of the work.
    """
    place, outcome = (request.c.task, request.c.temperature), (verdict.c.stage, verdict.c.outcome)
    empty = (verdict.c.candidate == "").label("empty")
    query = select(*place, *outcome, empty, func.count().label("samples"))
    query = query.select_from(request.outerjoin(verdict, is_counted)).where(is_proposed(run), request.c.round == number)
    counts: Counter[SampleKind] = Counter()
    for row in reader.fetch_rows(query.group_by(*place, *outcome, empty)):
        agent = PROPOSER if row.empty == 0 else None  # None too where there is no verdict
        counts[SampleKind(number, row.task, row.temperature, *read_outcome(row), agent)] += row.samples
    for kind, samples in _of_others(reader, run, number).items():
        counts[kind] += samples
        counts[kind._replace(agent=PROPOSER)] -= samples
    return +counts


def _of_others(reader: Reader, run: str, number: int) -> Counter[SampleKind]:
    """Those of them whose program another agent wrote."""
    groups = (request.c.task, request.c.temperature, *_FOUND)
    query = select(*groups, func.count().label("samples")).select_from(
        candidate.join(verdict, _COUNTED & verdict.c.final).join(request, request.c.id == candidate.c.sample)
    )
    query = query.where(candidate.c.run == run, candidate.c.agent != PROPOSER, request.c.round == number)
    rows = reader.fetch_rows(query.group_by(*groups))
    return Counter(
        {SampleKind(number, row.task, row.temperature, *read_outcome(row), row.agent): row.samples for row in rows}
    )


def page_of(
    reader: Reader,
    run: str,
    condition: Filter,
    counts: Mapping[SampleKind, int],
    *,
    after: SamplePlace | None = None,
    before: SamplePlace | None = None,
    size: int = SIZE,
    seconds: float = SEARCH_S,
) -> Page:
    """The samples that pass, from the first on, or next to a place; `counts`: of the whole run.

    They are looked for cell after cell (round, task, temperature), only in those where the counts know one. As many as
    are found in the time, where words are looked for; a page that was stopped leads on from where it stopped.
    """
    back = before is not None
    edge = before if back else after
    if condition.begins:
        is_named = begins_with(condition.begins)
        return _make_page(_select_lines(reader, run, condition, is_named, edge, back, size + 1), edge, back, size)
    ends, rows = time.monotonic() + (seconds if condition.words else math.inf), list[SampleLine]()
    cells = _list_cells(counts, condition, edge, back)
    for number, cell in enumerate(cells):
        within = edge if edge is not None and cell == edge[:3] else None
        rows += _select_lines(
            reader, run, condition, tuple_(*PLACE[:3]) == tuple_(*cell), within, back, size + 1 - len(rows)
        )
        if len(rows) > size:
            break
        is_new = edge is None or cell != edge[:3]  # else the next page might stop where this one did
        if is_new and time.monotonic() >= ends and (ahead := set(cells[number + 1 :])):
            left = sum(n for kind, n in counts.items() if kind[:3] in ahead and condition.lets_pass(kind))
            lines = tuple(rows[::-1] if back else rows)
            stop = SamplePlace(*cell, -1 if back else 2**62)
            return Page(lines, stop, edge, left) if back else Page(lines, edge, stop, left)
    return _make_page(rows, edge, back, size)


def _make_page(rows: list[SampleLine], edge: SamplePlace | None, back: bool, size: int) -> Page:
    """`rows`: in the order in which they were read, with one more than the page holds where there are more."""
    has_more, lines = len(rows) > size, tuple(rows[:size][::-1] if back else rows[:size])
    if not lines:
        return Page((), None, None)
    earlier, later = (has_more, True) if back else (edge is not None, has_more)
    return Page(lines, lines[0].place if earlier else None, lines[-1].place if later else None)


def _list_cells(
    counts: Mapping[SampleKind, int], condition: Filter, edge: SamplePlace | None, back: bool
) -> list[tuple[int, str, float]]:
    """The cells (round, task, temperature) that may hold a sample that passes, from the edge on."""
    cells = {kind[:3] for kind, samples in counts.items() if samples and condition.lets_pass(kind)}
    if edge is not None:
        cells = {cell for cell in cells if (cell <= edge[:3] if back else cell >= edge[:3])}
    return sorted(cells, reverse=back)


def last_verdicts(reader: Reader, run: str, number: int) -> list[SampleLine]:
    """The last `number` samples that were judged, newest first."""
    query = select(request.c.id, *PLACE, *_FOUND, verdict.c.at).select_from(verdict)
    query = query.join(request, request.c.id == verdict.c.sample).outerjoin(candidate, _COUNTED)
    query = query.where(verdict.c.run == run, verdict.c.final).order_by(verdict.c.at.desc()).limit(number)
    return [_read_line(row) for row in reader.fetch_rows(query)]


def judged_since(reader: Reader, run: str, moment: float) -> tuple[int, float | None]:
    """The samples that were judged since a moment, and when the first of them was; None: there is none."""
    columns: tuple[Any, ...] = (func.count().label("samples"), func.min(verdict.c.at).label("first"))
    query = select(*columns).where(verdict.c.run == run, verdict.c.at > moment, verdict.c.final)
    row = reader.fetch_rows(query)[0]
    return int(row.samples), row.first


def list_solutions(reader: Reader, run: str, with_children: bool = False) -> list[SolvedTask]:
    """By round, then task; without the programs. `with_children`: those of the children of plans too."""
    solved, children = schema.experience, frozenset() if with_children else reader.list_children(run)
    columns = (
        solved.c.task,
        solved.c.digest,
        solved.c.round,
        solved.c.success_rate,
        solved.c.sample,
        solved.c.contaminated,
        solved.c.origin,
    )
    query = select(*columns).where(solved.c.run == run).order_by(solved.c.round, solved.c.task)
    return [SolvedTask(*tuple(row)) for row in reader.fetch_rows(query) if row.task not in children]


def last_failures(reader: Reader, run: str, number: int) -> list[tuple[int, str, str, str]]:
    """(round, task, charged to, message) of the last samples that were left unjudged, newest first."""
    columns = (failure.c.round, failure.c.task, failure.c.charged_to, failure.c.message)
    query = select(*columns).where(failure.c.run == run).order_by(failure.c.id_number.desc()).limit(number)
    return [tuple(row) for row in reader.fetch_rows(query)]


def session_settings(reader: Reader, run: str) -> dict[str, Any]:
    """All settings of the last process that worked on a run; empty before the first."""
    session = schema.session
    query = select(session.c.settings).where(session.c.run == run).order_by(session.c.id_number.desc()).limit(1)
    return dict(json.loads(row.settings)) if (row := next(iter(reader.fetch_rows(query)), None)) else {}


def run_ids(reader: Reader) -> list[tuple[str, float]]:
    """Every run with the moment it began, newest first."""
    query = select(schema.run.c.id, schema.run.c.at).order_by(schema.run.c.at.desc())
    return [(row.id, row.at) for row in reader.fetch_rows(query)]


def _select_lines(
    reader: Reader, run: str, condition: Filter, where: Any, edge: SamplePlace | None, back: bool, size: int
) -> list[SampleLine]:
    joined = request.outerjoin(verdict, is_counted).outerjoin(candidate, _COUNTED)
    query = select(request.c.id, *PLACE, *_FOUND, verdict.c.at).select_from(joined)
    query = query.where(is_proposed(run), where, *_filter_conditions(condition))
    if edge is not None:
        place = tuple_(*PLACE, request.c.id)
        query = query.where(place < tuple_(*edge) if back else place > tuple_(*edge))
    order = [column.desc() for column in (*PLACE, request.c.id)] if back else (*PLACE, request.c.id)
    return [_read_line(row) for row in reader.fetch_rows(query.order_by(*order).limit(size))]


def _filter_conditions(condition: Filter) -> Iterator[Any]:
    pairs = ((request.c.task, condition.task), (request.c.round, condition.round), (candidate.c.agent, condition.agent))
    yield from (column == value for column, value in pairs if value is not None)
    if condition.temperature is not None:
        yield request.c.temperature == condition.temperature
    if condition.stage is not None:
        yield verdict.c.stage == condition.stage.name
    if condition.outcome is Outcome.UNJUDGED:
        yield verdict.c.outcome.is_(None)
    elif condition.outcome is not None:
        yield verdict.c.outcome == condition.outcome.value
    if condition.words:
        yield or_(
            _holds_words(candidate.c.id, condition.words),
            _holds_words(verdict.c.body, json.dumps(condition.words, ensure_ascii=False)[1:-1]),  # it is JSON
        )


def _holds_words(name: Any, words: str) -> Any:
    """Whether the text of this hash holds them."""
    pattern = "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in words)
    return exists().where(text.c.hash == name, text.c.body.ilike(f"%{pattern}%", escape="\\"))


def read_findings(reader: Reader, samples: Collection[str]) -> dict[str, Diagnostic]:
    """The first finding of the verdicts that refused these samples, by sample."""
    query = select(verdict.c.sample, text.c.body).join(text, text.c.hash == verdict.c.body)
    query = query.where(verdict.c.sample.in_(samples), verdict.c.final, verdict.c.outcome == Outcome.REFUSED.value)
    verdicts = {row.sample: verdict_from_json(json.loads(row.body)) for row in reader.fetch_rows(query)}
    return {sample: one.errors[0] for sample, one in verdicts.items() if one.errors}


def read_failures(reader: Reader, samples: Collection[str]) -> dict[str, str]:
    """What left these samples without a verdict last, by sample."""
    query = select(failure.c.sample, failure.c.message).where(failure.c.sample.in_(samples))
    return {row.sample: row.message for row in reader.fetch_rows(query.order_by(failure.c.id_number))}


def _read_line(row: Row[Any]) -> SampleLine:
    place = SamplePlace(row.round, row.task, row.temperature, row.number, row.id)
    return SampleLine(row.id, place, *read_outcome(row), row.agent, row.at)
