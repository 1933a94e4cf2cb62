"""What was tried at one task, and what did each round cost? Questions of reports, with bounded work for large stores.

A program that was sampled many times is one row here, with its count and its first sample; what only some rows need
(texts, replies, verdicts) is fetched for those alone, in one query each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, case, func, select

from opsmith.models import Message
from opsmith.records import Outcome, Stage, Usage, verdict_from_json
from opsmith.store import queries
from opsmith.store.queries import Call, CandidateRow, Reader, SampleDetail, Tally
from opsmith.store.rows import PROPOSER, turn_of
from opsmith.store.schema import candidate, failure, reply, reply_of, request, text, verdict


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
class Spent:
    """What a round took."""

    samples: int  # answered
    judged: int
    right: int
    usage: Usage  # the guardian's included


def attempts(reader: Reader, run: str, task: str, limit: int, first: str | None = None) -> list[Attempt]:
    """The task's different programs: the most frequent, of those the right ones, then those that came furthest.

    `first`: the hash of a program that comes before all, whatever its count.
    """
    found = (verdict.c.candidate, verdict.c.stage, verdict.c.outcome)
    place = (request.c.round, request.c.number, request.c.temperature)
    nth = func.row_number().over(partition_by=found, order_by=place).label("nth")
    samples = func.count().over(partition_by=found).label("samples")
    every = _final(select(*found, *place, request.c.id, samples, nth), reader, run, task).subquery()
    wanted = case((every.c.candidate == first, 0), else_=1)  # nothing equals None in SQL
    passed = case((every.c.outcome == Outcome.PASSED.value, 0), else_=1)
    furthest = case({stage.name: -stage.value for stage in Stage}, value=every.c.stage)
    order = (wanted, every.c.samples.desc(), passed, furthest, every.c.round, every.c.number, every.c.candidate)
    query = select(every).where(every.c.nth == 1).order_by(*order).limit(limit)
    return [
        Attempt(row.candidate, Stage[row.stage], Outcome(row.outcome), row.samples, row.id, row.round)
        for row in reader.ask(query)
    ]


def stages(reader: Reader, run: str, task: str) -> dict[tuple[Stage, Outcome], int]:
    """How many of the task's judged samples ended where."""
    query = _final(select(verdict.c.stage, verdict.c.outcome, func.count().label("samples")), reader, run, task)
    rows = reader.ask(query.group_by(verdict.c.stage, verdict.c.outcome))
    return {(Stage[row.stage], Outcome(row.outcome)): row.samples for row in rows}


def failures(reader: Reader, run: str, task: str, limit: int = 5) -> list[tuple[str, int]]:
    """What left samples of a task unjudged and how often, the most frequent first; some were judged later."""
    count = func.count().label("samples")
    query = select(failure.c.message, count).where(failure.c.run == run, failure.c.task == task)
    rows = reader.ask(query.group_by(failure.c.message).order_by(count.desc(), failure.c.message).limit(limit))
    return [(row.message, row.samples) for row in rows]


def spent_by_round(reader: Reader, run: str, tallies: Iterable[Tally] | None = None) -> dict[int, Spent]:
    """By round, of all its requests. `tallies`: the run's, where they are known."""
    usage = _usage_by_round(reader, run)
    answered = select(request.c.round, func.count().label("samples")).where(_proposed(run)).group_by(request.c.round)
    samples = {row.round: row.samples for row in reader.ask(answered)}
    judged, right = Counter[int](), Counter[int]()
    for tally in reader.tallies(run) if tallies is None else tallies:
        judged[tally.round] += tally.judged
        right[tally.round] += tally.right
    return {at: Spent(samples.get(at, 0), judged[at], right[at], found) for at, found in usage.items()}


def texts(reader: Reader, names: Iterable[str]) -> dict[str, str]:
    """The texts of these hashes."""
    query = select(text.c.hash, text.c.body).where(text.c.hash.in_(sorted(set(names))))
    return {row.hash: row.body for row in reader.ask(query)}


def details(reader: Reader, samples: Collection[str]) -> dict[str, SampleDetail]:
    """Samples by their whole ids, each with all that belongs to it; a few queries for all of them."""
    rows = [queries._sample_row(row) for row in reader.ask(queries._samples().where(request.c.id.in_(samples)))]
    calls, candidates, failures = _calls(reader, samples), _candidates(reader, samples), _failures(reader, samples)
    return {
        row.id: SampleDetail(row, calls.get(row.id, ()), candidates.get(row.id, ()), failures.get(row.id, ()))
        for row in rows
    }


def rows_of_run(reader: Reader, run: str) -> Iterator[dict[str, Any]]:
    """Every answered sample as plain values, by round, task, temperature and number; tokens are of all its requests."""
    order = (request.c.round, request.c.task, request.c.temperature, request.c.number)
    found = (verdict.c.stage, verdict.c.outcome, verdict.c.candidate, text.c.body.label("program"))
    own = (verdict.c.sample == request.c.id) & verdict.c.final
    joined = request.outerjoin(verdict, own).outerjoin(text, text.c.hash == verdict.c.candidate)
    query = select(request.c.id.label("sample"), *order, *found).select_from(joined).order_by(*order)
    for number, task in reader.cells(run):
        place = (request.c.run == run, request.c.round == number, request.c.task == task)
        rows = reader.ask(query.where(*place, request.c.agent == PROPOSER))
        bills = _bills(reader, run, place)  # after the rows: a run that goes on adds to both
        yield from (row._asdict() | bills[row.sample] for row in rows)


def _bills(reader: Reader, run: str, place: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Tokens and cost by sample. Not a join: SQLite would read the bills of the whole run for each of its parts."""
    others = select(request.c.id, request.c.sample).where(*place, request.c.agent != PROPOSER)
    serves = {row.id: row.sample for row in reader.ask(others)}
    names = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
    asked = reply.c.request.in_(select(request.c.id).where(*place))
    found: dict[str, dict[str, Any]] = {}
    for row in reader.ask(select(reply.c.request, *(reply.c[name] for name in names)).where(reply.c.run == run, asked)):
        sample = serves.get(row.request, row.request)
        one: dict[str, Any] = dict(zip(names, row[1:], strict=True))
        earlier = found.get(sample)
        found[sample] = one if earlier is None else {name: _sum(earlier[name], one[name]) for name in names}
    return found


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _proposed(run: str) -> Any:
    return (request.c.run == run) & (request.c.agent == PROPOSER)


def _final(query: Select[Any], reader: Reader, run: str, task: str) -> Select[Any]:
    """The task's judged samples, found by the index over run, round and task."""
    numbers = [info.number for info, _ in reader.rounds(run)]
    joined = query.select_from(request).join(verdict, verdict.c.sample == request.c.id)
    return joined.where(_proposed(run), request.c.round.in_(numbers), request.c.task == task, verdict.c.final)


def _usage_by_round(reader: Reader, run: str) -> dict[int, Usage]:
    sums = [func.sum(reply.c[name]).label(name) for name in queries._TOKENS]
    unknown = func.sum(case((reply.c.cost_usd.is_(None), 1), else_=0)).label("unknown")
    query = select(request.c.round, *sums, func.sum(reply.c.cost_usd).label("cost"), unknown)
    query = query.join(reply, reply_of).where(request.c.run == run)
    rows = reader.ask(query.group_by(request.c.round).order_by(request.c.round))
    return {row.round: queries._usage(row, None if row.unknown else row.cost or 0.0) for row in rows}


def _calls(reader: Reader, samples: Collection[str]) -> dict[str, tuple[Call, ...]]:
    query = select(request, reply, text.c.body.label("parts")).join(reply, reply.c.request == request.c.id)
    query = query.join(text, text.c.hash == request.c.prompt).where(request.c.sample.in_(samples))
    rows = sorted(reader.ask(query), key=lambda row: turn_of(row.agent))
    parts = {row.prompt: json.loads(row.parts) for row in rows}
    bodies = texts(reader, [name for named in parts.values() for _, name in named])
    found: dict[str, tuple[Call, ...]] = {}
    for row in rows:
        messages = tuple(Message(role, bodies[name]) for role, name in parts[row.prompt])
        call = Call(row.agent, messages, queries._reply(row), row.seed, row.max_tokens)
        found[row.sample] = (*found.get(row.sample, ()), call)
    return found


def _candidates(reader: Reader, samples: Collection[str]) -> dict[str, tuple[CandidateRow, ...]]:
    body = text.alias("verdict_text")
    same = (candidate.c.sample == verdict.c.sample) & (candidate.c.id == verdict.c.candidate)
    joined = verdict.join(body, body.c.hash == verdict.c.body).outerjoin(candidate, same)
    joined = joined.outerjoin(text, text.c.hash == verdict.c.candidate)
    columns = (verdict.c.sample, verdict.c.final, candidate.c.agent, candidate.c.parent, text.c.body)
    query = select(*columns, body.c.body.label("found")).select_from(joined)
    found: dict[str, tuple[CandidateRow, ...]] = {}
    rows = reader.ask(query.where(verdict.c.sample.in_(samples)))
    for row in sorted(rows, key=lambda row: (row.final, turn_of(row.agent or PROPOSER))):
        seen = verdict_from_json(json.loads(row.found))
        made = CandidateRow(row.body, row.agent or PROPOSER, row.parent, seen, row.final)
        found[row.sample] = (*found.get(row.sample, ()), made)
    return found


def _failures(reader: Reader, samples: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    query = select(failure.c.sample, failure.c.message).where(failure.c.sample.in_(samples))
    found: dict[str, dict[str, None]] = {}
    for row in reader.ask(query.order_by(failure.c.id_number)):
        found.setdefault(row.sample, {})[row.message] = None
    return {sample: tuple(messages) for sample, messages in found.items()}
