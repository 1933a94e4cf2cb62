"""What was tried at one task, and what each round cost. Questions of reports, with bounded work for large stores.

A program that was sampled many times is one row here, with its count and its first sample; what only some rows need
(texts, replies, verdicts) is fetched for those alone, by `Reader.read_texts` and `Reader.read_details`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, exists, func, select

from opsmith.records import Outcome, Stage, Usage
from opsmith.store.queries import Reader, Tally
from opsmith.store.requests import is_proposed
from opsmith.store.rows import FUNCTIONAL, PROPOSER
from opsmith.store.schema import PLACE, failure, is_counted, reply, request, text, verdict
from opsmith.store.spending import usage_by


@dataclass(frozen=True)
class Attempt:
    """One program of a task with its verdict, and how many samples held it."""

    program: str  # hash of its text; "": the replies held no program
    stage: Stage
    outcome: Outcome
    count: int
    sample: str  # the first of them
    round: int  # of the first


@dataclass(frozen=True)
class UnjudgedSample:
    """A sample that was answered and has no verdict."""

    round: int
    task: str
    temperature: float
    message: str  # what left it so, last; "": it is being judged


@dataclass(frozen=True)
class RoundSpending:
    """What a round took."""

    samples: int  # answered
    judged: int
    right: int
    usage: Usage  # the guardian's included


def list_attempts(reader: Reader, run: str, task: str, limit: int, first: str | None = None) -> list[Attempt]:
    """The task's different programs: the most frequent, of those the right ones, then those that came furthest.

    `first`: the hash of a program that comes before all, whatever its count.
    """
    columns = (verdict.c.candidate, verdict.c.stage, verdict.c.outcome)
    place = (request.c.round, request.c.number, request.c.temperature)
    nth = func.row_number().over(partition_by=columns, order_by=place).label("nth")
    samples = func.count().over(partition_by=columns).label("samples")
    every = _select_final(select(*columns, *place, request.c.id, samples, nth), reader, run, task).subquery()
    preferred = case((every.c.candidate == first, 0), else_=1)  # nothing equals None in SQL
    passed = case((every.c.outcome == Outcome.PASSED.value, 0), else_=1)
    nearness = {name: -Stage(name).rank for name in Stage.ORDER}
    furthest = case(nearness, value=every.c.stage, else_=0.5 - Stage.RUN.rank)
    order = (preferred, every.c.samples.desc(), passed, furthest, every.c.round, every.c.number, every.c.candidate)
    query = select(every).where(every.c.nth == 1).order_by(*order).limit(limit)
    return [
        Attempt(row.candidate, Stage(row.stage), Outcome(row.outcome), row.samples, row.id, row.round)
        for row in reader.fetch_rows(query)
    ]


def count_stages(reader: Reader, run: str, task: str) -> dict[tuple[Stage, Outcome], int]:
    """How many of the task's judged samples ended where."""
    query = _select_final(select(verdict.c.stage, verdict.c.outcome, func.count().label("samples")), reader, run, task)
    rows = reader.fetch_rows(query.group_by(verdict.c.stage, verdict.c.outcome))
    return {(Stage(row.stage), Outcome(row.outcome)): row.samples for row in rows}


_MOST = 5  # causes of failure that are named


def count_failures(reader: Reader, run: str, task: str) -> list[tuple[str, int]]:
    """What left samples of a task unjudged and how often, the most frequent first; some were judged later."""
    count = func.count().label("samples")
    query = select(failure.c.message, count).where(failure.c.run == run, failure.c.task == task)
    rows = reader.fetch_rows(query.group_by(failure.c.message).order_by(count.desc(), failure.c.message).limit(_MOST))
    return [(row.message, row.samples) for row in rows]


def list_unjudged(reader: Reader, run: str) -> list[UnjudgedSample]:
    """The samples of functional rounds that were answered and have no verdict."""
    is_judged = exists().where(verdict.c.sample == request.c.id, verdict.c.final)
    joined = request.outerjoin(failure, (failure.c.sample == request.c.id) & (failure.c.run == run))
    columns = (request.c.id, request.c.round, request.c.task, request.c.temperature, failure.c.message)
    query = select(*columns).select_from(joined).where(is_proposed(run), reader.is_functional(run), ~is_judged)
    rows = {row.id: row for row in reader.fetch_rows(query.order_by(failure.c.id_number))}  # the last of each
    return [UnjudgedSample(row.round, row.task, row.temperature, row.message or "") for row in rows.values()]


def spent_by_round(reader: Reader, run: str, tallies: Iterable[Tally] | None = None) -> dict[int, RoundSpending]:
    """By round, of all its requests. `tallies`: the run's, where they are known; of rounds that are not functional
    nothing is counted as judged."""
    usage = usage_by(reader, run, "round")
    answered = select(request.c.round, func.count().label("samples")).where(is_proposed(run)).group_by(request.c.round)
    samples = {row.round: row.samples for row in reader.fetch_rows(answered)}
    judged, right = Counter[int](), Counter[int]()
    for tally in reader.read_tallies(run, with_children=True) if tallies is None else tallies:
        judged[tally.round] += tally.judged
        right[tally.round] += tally.right
    return {
        number: RoundSpending(samples.get(number, 0), judged[number], right[number], bill)
        for number, bill in usage.items()
    }


def rows_of_run(reader: Reader, run: str) -> Iterator[dict[str, Any]]:
    """Every answered sample as plain values, by round, task, temperature and number; tokens are of all its requests."""
    columns = (verdict.c.stage, verdict.c.outcome, verdict.c.candidate, text.c.body.label("program"))
    joined = request.outerjoin(verdict, is_counted).outerjoin(text, text.c.hash == verdict.c.candidate)
    query = select(request.c.id.label("sample"), request.c.asked, *PLACE, *columns).select_from(joined).order_by(*PLACE)
    for number, task in reader.list_cells(run):
        place = (request.c.run == run, request.c.round == number, request.c.task == task)
        rows = reader.fetch_rows(query.where(*place, request.c.agent == PROPOSER))
        bills = _read_bills(reader, run, place)  # after the rows: a run that goes on adds to both
        yield from (row._asdict() | bills[row.sample] for row in rows)


def _read_bills(reader: Reader, run: str, place: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Tokens and cost by sample. Not a join: SQLite would read the bills of the whole run for each of its parts."""
    rewrites = select(request.c.id, request.c.sample).where(*place, request.c.agent != PROPOSER)
    serves = {row.id: row.sample for row in reader.fetch_rows(rewrites)}
    names = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
    is_billed = reply.c.request.in_(select(request.c.id).where(*place))
    bills: dict[str, dict[str, Any]] = {}
    for row in reader.fetch_rows(
        select(reply.c.request, *(reply.c[name] for name in names)).where(reply.c.run == run, is_billed)
    ):
        sample = serves.get(row.request, row.request)
        bill: dict[str, Any] = dict(zip(names, row[1:], strict=True))
        earlier = bills.get(sample)
        bills[sample] = bill if earlier is None else {name: _add_known(earlier[name], bill[name]) for name in names}
    return bills


def _add_known(first: Any, second: Any) -> Any:
    return None if first is None or second is None else first + second


def _select_final(query: Select[Any], reader: Reader, run: str, task: str) -> Select[Any]:
    """The task's judged samples of functional rounds, found by the index over run, round and task."""
    numbers = [info.number for info, _ in reader.read_rounds(run) if info.phase == FUNCTIONAL]
    joined = query.select_from(request).join(verdict, verdict.c.sample == request.c.id)
    return joined.where(is_proposed(run), request.c.round.in_(numbers), request.c.task == task, verdict.c.final)
