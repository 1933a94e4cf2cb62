"""What happened? Questions to the store, answered from what is committed.

`Reader` holds what learning and reports ask about whole runs; `sample` shows one sample with all that belongs to it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, case, exists, func, select
from sqlalchemy.exc import SQLAlchemyError

from opsmith.errors import UsageError
from opsmith.models import Message, Reply
from opsmith.records import Experience, Outcome, Stage, Task, Usage, Verdict, verdict_from_json
from opsmith.store import schema
from opsmith.store.database import Database
from opsmith.store.patience import Patience, Stubborn
from opsmith.store.rows import GUARDIAN, PROPOSER, RoundInfo, RunInfo, task_from_body, turn_of
from opsmith.store.schema import candidate, failure, reply, reply_of, request, run_end, session_end, text, verdict


@dataclass(frozen=True)
class RunSummary:
    info: RunInfo
    started: float  # seconds since 1970
    tasks: int
    solved: int  # of its own tasks; what it was given at the start apart
    rounds: int  # that have ended
    samples: int  # replies of the proposer
    usage: Usage
    end: str | None  # why it ended, or why it stopped for now; None: it runs, or was killed
    finished: bool
    seconds: float  # of all sessions that ended in an orderly way


@dataclass(frozen=True)
class Kept:
    """An experience as the store has it; `sample` None: it was there when the run began."""

    experience: Experience
    sample: str | None
    contaminated: bool


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


@dataclass(frozen=True)
class SampleRow:
    """One line of a run's list of samples; `outcome` None: there is no verdict yet, or no reply."""

    id: str
    round: int
    task: str
    temperature: float
    number: int
    stage: Stage | None
    outcome: Outcome | None


@dataclass(frozen=True)
class CandidateRow:
    source: str | None  # None: the reply held no program
    agent: str
    parent: str | None
    verdict: Verdict
    final: bool


@dataclass(frozen=True)
class Call:
    """One request of an agent with its reply."""

    agent: str
    messages: tuple[Message, ...]
    reply: Reply
    seed: int | None
    max_tokens: int


@dataclass(frozen=True)
class SampleDetail:
    row: SampleRow
    calls: tuple[Call, ...]
    candidates: tuple[CandidateRow, ...]
    failures: tuple[str, ...]  # what left it unjudged, now or in an earlier session


class Reader:
    """The questions. Raises UsageError for a run or sample that does not exist, StoreError when it cannot read."""

    def __init__(self, database: Database, patience: Patience) -> None:
        self._database = database
        self._reading = Stubborn(patience)
        self.path = database.name

    def runs(self) -> list[RunSummary]:
        """Oldest first."""
        return [self.summary(row.id) for row in self._rows(select(schema.run.c.id).order_by(schema.run.c.at))]

    def find_run(self, name: str) -> str:
        """The id of the run that is called `name`, or begins so."""
        known = [row.id for row in self._rows(select(schema.run.c.id).order_by(schema.run.c.at))]
        found = [name] if name in known else [id_ for id_ in known if id_.startswith(name)]
        if len(found) == 1:
            return found[0]
        problem = "no such run" if not found else "more than one run begins so"
        raise UsageError(f"run {name!r}: {problem} in {self.path}; known: {', '.join(found or known) or 'none'}")

    def info(self, run: str) -> RunInfo | None:
        rows = self._rows(select(schema.run).where(schema.run.c.id == run))
        return _run_info(rows[0]) if rows else None

    def summary(self, run: str) -> RunSummary:
        known = self._rows(select(schema.run).where(schema.run.c.id == run))
        row = known[0] if known else self._rows(select(schema.run).where(schema.run.c.id == self.find_run(run)))[0]
        ends = self._rows(select(session_end).where(session_end.c.run == run).order_by(session_end.c.id_number))
        end = self.end(run)
        return RunSummary(
            info=_run_info(row),
            started=row.at,
            tasks=self._count(schema.task, run),
            solved=self._count(schema.experience, run, schema.experience.c.sample.is_not(None)),
            rounds=self._count(schema.round_end, run),
            samples=self.sample_count(run),
            usage=self.usage(run),
            end=end or (ends[-1].reason if ends else None),
            finished=end is not None,
            seconds=sum(row.seconds for row in ends),
        )

    def end(self, run: str) -> str | None:
        """Why the run is finished; None when it is not."""
        rows = self._rows(select(run_end.c.reason).where(run_end.c.run == run))
        return rows[0].reason if rows else None

    def is_paused(self, run: str) -> bool:
        """Whether the last wish for the run is that it pauses."""
        told = schema.control
        query = select(told.c.wish).where(told.c.run == run).order_by(told.c.id_number.desc()).limit(1)
        return [row.wish for row in self._rows(query)] == ["pause"]

    def tasks(self, run: str) -> list[Task]:
        query = select(text.c.body).join(schema.task, schema.task.c.body == text.c.hash)
        return [task_from_body(row.body) for row in self._rows(query.where(schema.task.c.run == run))]

    def rounds(self, run: str) -> list[tuple[RoundInfo, tuple[str, ...] | None]]:
        """Every round with the tasks it solved; None for a round that has not ended."""
        began, ended = schema.round_, schema.round_end
        joined = began.outerjoin(ended, (began.c.run == ended.c.run) & (began.c.number == ended.c.number))
        query = select(began, ended.c.solved).select_from(joined).where(began.c.run == run).order_by(began.c.number)
        return [(_round_info(row), _names(row.solved)) for row in self._rows(query)]

    def experiences(self, run: str) -> list[Kept]:
        """By round, then task."""
        kept, body = schema.experience, text.alias("task_text")
        query = (
            select(kept, text.c.body.label("program"), body.c.body.label("task_body"))
            .join(text, text.c.hash == kept.c.source)
            .join(body, body.c.hash == kept.c.body)
            .where(kept.c.run == run)
            .order_by(kept.c.round, kept.c.task)
        )
        return [_kept(row) for row in self._rows(query)]

    def sample_count(self, run: str) -> int:
        """Samples that were answered, in all rounds."""
        return self._count(request, run, request.c.agent == PROPOSER)

    def usage(self, run: str, agent: str | None = None) -> Usage:
        """Billed tokens and money of a run, or of one of its agents (in every turn of a conversation)."""
        sums = [func.coalesce(func.sum(reply.c[name]), 0).label(name) for name in _TOKENS]
        unknown = func.sum(case((reply.c.cost_usd.is_(None), 1), else_=0)).label("unknown")
        query = select(*sums, func.coalesce(func.sum(reply.c.cost_usd), 0.0).label("cost"), unknown)
        query = query.where(reply.c.run == run)
        if agent is not None:
            query = query.join(request, reply_of).where(request.c.run == run, _by(request, agent))
        row = self._rows(query)[0]
        return _usage(row, None if row.unknown else row.cost)

    def spent_before(self, run: str, number: int) -> tuple[int, int]:
        """(samples that were answered, input and output tokens of all agents) in the rounds before round `number`."""
        answered = func.count().filter(request.c.agent == PROPOSER).label("answered")
        tokens = func.coalesce(func.sum(reply.c.input_tokens + reply.c.output_tokens), 0).label("tokens")
        query = select(answered, tokens).select_from(request).join(reply, reply_of)
        row = self._rows(query.where(request.c.run == run, request.c.round < number))[0]
        return row.answered, row.tokens

    def attempts_before(self, run: str, number: int) -> dict[str, int]:
        """By task: the proposer's requests that were answered in the rounds before round `number`."""
        query = select(request.c.task, func.count().label("answered")).where(_in_round(run, None))
        rows = self._rows(query.where(request.c.round < number).group_by(request.c.task))
        return {row.task: row.answered for row in rows}

    def judged(self, run: str, number: int) -> set[str]:
        """The samples of a round that have their verdict."""
        query = select(request.c.id).join(verdict, verdict.c.sample == request.c.id)
        return {row.id for row in self._rows(query.where(_in_round(run, number), verdict.c.final))}

    def unused_replies(self, run: str, number: int) -> dict[str, Reply]:
        """Replies, by request, of samples that have no verdict: a run was killed between the two."""
        judged = exists().where(verdict.c.sample == request.c.sample, verdict.c.final)
        query = select(reply).join(request, request.c.id == reply.c.request)
        rows = self._rows(query.where(request.c.run == run, request.c.round == number, ~judged))
        return {row.request: _reply(row) for row in rows}

    def tallies(self, run: str, number: int | None = None) -> list[Tally]:
        """Right and judged samples of a round, or of all, by round, task and temperature."""
        right = func.sum(case((verdict.c.outcome == Outcome.PASSED.value, 1), else_=0)).label("right")
        place = (request.c.round, request.c.task, request.c.temperature)
        query = select(*place, right, func.count().label("judged")).join(verdict, verdict.c.sample == request.c.id)
        query = query.where(_in_round(run, number), verdict.c.final).group_by(*place).order_by(*place)
        return [Tally(r.round, r.task, r.temperature, r.right, r.judged) for r in self._rows(query)]

    def answers(self, run: str, number: int) -> list[Answer]:
        """The right programs of a round."""
        query = (
            select(request.c.task, request.c.temperature, request.c.number, request.c.id, text.c.body)
            .join(verdict, verdict.c.sample == request.c.id)
            .join(text, text.c.hash == verdict.c.candidate)
            .where(_in_round(run, number), verdict.c.final, verdict.c.outcome == Outcome.PASSED.value)
        )
        return [Answer(r.task, r.temperature, r.number, r.id, r.body) for r in self._rows(query)]

    def programs(self, run: str) -> list[tuple[str, str, bool]]:
        """(task, program, passed) of every judged sample that held a program."""
        query = select(request.c.task, text.c.body, verdict.c.outcome).join(verdict, verdict.c.sample == request.c.id)
        query = query.join(text, text.c.hash == verdict.c.candidate).where(_in_round(run, None), verdict.c.final)
        return [(row.task, row.body, row.outcome == Outcome.PASSED.value) for row in self._rows(query)]

    def prompt_tokens(self, run: str) -> dict[str, int]:
        """By task: the proposer's input tokens for one sample of the last round in which it was tried."""
        last = select(request.c.task, func.max(request.c.round).label("round"))
        newest = last.where(_in_round(run, None)).group_by(request.c.task).subquery()
        query = (
            select(request.c.task, tokens_of_prompt())
            .join(newest, (newest.c.task == request.c.task) & (newest.c.round == request.c.round))
            .join(reply, reply_of)
            .where(_in_round(run, None))
            .group_by(request.c.task)
        )
        return {row.task: row.tokens for row in self._rows(query)}

    def guardian_pairs(self, run: str) -> Counter[tuple[bool, bool]]:
        """How many samples that the guardian rewrote had (a proposal that passed, a rewrite that passed)."""
        before = verdict.alias("before")
        pair = (before.c.outcome.label("before"), verdict.c.outcome.label("after"))
        query = (
            select(*pair, func.count().label("samples"))
            .select_from(candidate)
            .join(verdict, (verdict.c.sample == candidate.c.sample) & (verdict.c.candidate == candidate.c.id))
            .join(before, (before.c.sample == candidate.c.sample) & (before.c.candidate == candidate.c.parent))
            .where(candidate.c.run == run, candidate.c.agent != PROPOSER)
            .group_by(*pair)
        )
        passed, found = Outcome.PASSED.value, Counter[tuple[bool, bool]]()
        for row in self._rows(query):
            found[row.before == passed, row.after == passed] += row.samples
        return found

    def unaffine(self, run: str) -> int:
        """The candidates that failed the resource check: what a static guardian is shown."""
        joined = (verdict.c.sample == candidate.c.sample) & (verdict.c.candidate == candidate.c.id)
        query = select(func.count()).select_from(candidate).join(verdict, joined)
        refused = ~_by(candidate, GUARDIAN) & (verdict.c.stage == Stage.AFFINE.name)
        number: int = self._rows(query.where(candidate.c.run == run, refused))[0][0]
        return number

    def failures(self, run: str, number: int) -> list[tuple[str, str, str]]:
        """(task, charged to, message) of the samples of a round that were left unjudged at least once."""
        query = select(failure.c.task, failure.c.charged_to, failure.c.message)
        rows = self._rows(query.where(failure.c.run == run, failure.c.round == number).order_by(failure.c.id_number))
        return [(row.task, row.charged_to, row.message) for row in rows]

    def charged(self, run: str) -> set[tuple[int, str, str]]:
        """(round, task, charged to) of all samples of a run that were left unjudged at least once."""
        query = select(failure.c.round, failure.c.task, failure.c.charged_to).where(failure.c.run == run).distinct()
        return {(row.round, row.task, row.charged_to) for row in self._rows(query)}

    def cells(self, run: str) -> list[tuple[int, str]]:
        """(round, task) of the answered samples, in order: what large questions are asked by, so that no answer is."""
        query = select(request.c.round, request.c.task).where(_in_round(run, None)).distinct()
        return [(row.round, row.task) for row in self._rows(query.order_by(request.c.round, request.c.task))]

    def samples(self, run: str, task: str | None = None) -> Iterator[SampleRow]:
        """Every answered sample of a run, or of one of its tasks, by round, task, temperature and number."""
        for number, name in self.cells(run):
            if task in (None, name):
                place = (request.c.run == run, request.c.round == number, request.c.task == name)
                yield from map(_sample_row, self._rows(_samples().where(*place)))

    def sample(self, run: str, name: str) -> SampleDetail:
        """One sample by its id or the beginning of it, with requests, replies, candidates and verdicts."""
        of_run = func.coalesce(request.c.run, "") == run  # no index knows this: the one of ids is used, not the run's
        rows = self._rows(_samples().where(of_run, begins_with(name)).order_by(None).limit(2))
        if len(rows) != 1:
            problem = "more than one sample of" if rows else "no sample of"
            raise UsageError(
                f"sample {name!r}: {problem} run {run} begins so; `opsmith show {run} TASK` lists a task's"
            )
        row = _sample_row(rows[0])
        query = select(failure.c.message).where(failure.c.sample == row.id).order_by(failure.c.id_number)
        messages = tuple(dict.fromkeys(found.message for found in self._rows(query)))
        return SampleDetail(row, self._calls(run, row), self._candidates(row.id), messages)

    def _calls(self, run: str, of: SampleRow) -> tuple[Call, ...]:
        cell = (request.c.run == run, request.c.round == of.round, request.c.task == of.task)  # what an index knows
        place = (*cell, request.c.temperature == of.temperature, request.c.number == of.number)
        query = select(request, reply, text.c.body.label("parts")).join(reply, reply.c.request == request.c.id)
        query = query.join(text, text.c.hash == request.c.prompt).where(*place)
        rows = sorted(self._rows(query), key=lambda row: turn_of(row.agent))
        calls = [(row, tuple(Message(role, self.text(name)) for role, name in json.loads(row.parts))) for row in rows]
        return tuple(Call(row.agent, messages, _reply(row), row.seed, row.max_tokens) for row, messages in calls)

    def _candidates(self, sample: str) -> tuple[CandidateRow, ...]:
        body = text.alias("verdict_text")
        joined = verdict.join(body, body.c.hash == verdict.c.body).outerjoin(
            candidate, (candidate.c.sample == verdict.c.sample) & (candidate.c.id == verdict.c.candidate)
        )
        query = (
            select(body.c.body.label("found"), verdict.c.final, candidate.c.agent, candidate.c.parent, text.c.body)
            .select_from(joined.outerjoin(text, text.c.hash == verdict.c.candidate))
            .where(verdict.c.sample == sample)
        )
        rows = sorted(self._rows(query), key=lambda row: (row.final, turn_of(row.agent or PROPOSER)))
        found = [(row, verdict_from_json(json.loads(row.found))) for row in rows]
        return tuple(CandidateRow(r.body, r.agent or PROPOSER, r.parent, seen, r.final) for r, seen in found)

    def batches(self, model: str) -> dict[str, str]:
        """The last batch that each request was handed in with, by the request's name, less those that failed in it."""
        told, failed = schema.batched, schema.batch_failure
        lost = exists().where(failed.c.request == told.c.request, failed.c.batch == told.c.batch)
        query = select(told.c.request, told.c.batch).where(told.c.model == model, ~lost)
        return {row.request: row.batch for row in self._rows(query.order_by(told.c.at))}

    def text(self, name: str) -> str:
        """The text of that hash."""
        body: str = self._rows(select(text.c.body).where(text.c.hash == name))[0].body
        return body

    def contents(self, run: str) -> frozenset[tuple[str, str]]:
        """Every record of a run as (table, JSON), clock times left out: equal runs have equal contents.

        Sessions are no part of it; texts are there by their hash.
        """
        found: set[tuple[str, str]] = set()
        for table in schema.metadata.tables.values():
            if table.name in _NO_RECORDS:
                continue
            owner = table.c.id if table is schema.run else table.c.run
            rows = self._rows(select(table).where(owner == run))
            found |= {(table.name, _content(row._asdict())) for row in rows}
        return frozenset(found)

    def ask(self, query: Select[Any]) -> list[Row[Any]]:
        """The rows of a query that another module asks."""
        return self._rows(query)

    def _count(self, table: Any, run: str, *conditions: Any) -> int:
        query = select(func.count()).select_from(table).where(table.c.run == run, *conditions)
        number: int = self._rows(query)[0][0]
        return number

    def _rows(self, query: Select[Any]) -> list[Row[Any]]:
        return self._reading.try_(lambda: self._found(query))

    def _found(self, query: Select[Any]) -> list[Row[Any]]:
        try:
            with self._database.engine.connect() as connection:
                return list(connection.execute(query))
        except (SQLAlchemyError, OSError) as error:
            raise self._database.explain(error) from error


_NO_RECORDS = {"meta", "alembic_version", "session", "session_end", "control", "batched", "batch_failure", "text"}
_TOKENS = ("requests", "input_tokens", "output_tokens", "cached_tokens")


def tokens_of_prompt() -> Any:
    """The input tokens of one request; rows that share another's request have none of their own."""
    requests = func.nullif(reply.c.requests, 0, type_=reply.c.requests.type)
    return func.coalesce(func.min(reply.c.input_tokens // requests), 0).label("tokens")


def begins_with(name: str) -> Any:
    """A request's id begins so: a range, which an index can answer."""
    return (request.c.id >= name) & (request.c.id < name + chr(sys.maxunicode))


def _by(table: Any, agent: str) -> Any:
    """What an agent did, in its first turn or a later one."""
    return (table.c.agent == agent) | table.c.agent.startswith(f"{agent}-", autoescape=True)


def _in_round(run: str, number: int | None) -> Any:
    """The proposer's requests of a round, or of all rounds."""
    whole = (request.c.run == run) & (request.c.agent == PROPOSER)
    return whole if number is None else whole & (request.c.round == number)


def _samples() -> Select[Any]:
    place = (request.c.round, request.c.task, request.c.temperature, request.c.number)
    joined = request.outerjoin(verdict, (verdict.c.sample == request.c.id) & verdict.c.final)
    query = select(request.c.id, *place, verdict.c.stage, verdict.c.outcome).select_from(joined)
    return query.where(request.c.agent == PROPOSER).order_by(*place)


def _sample_row(row: Row[Any]) -> SampleRow:
    stage = Stage[row.stage] if row.stage else None
    outcome = Outcome(row.outcome) if row.outcome else None
    return SampleRow(row.id, row.round, row.task, row.temperature, row.number, stage, outcome)


def _run_info(row: Row[Any]) -> RunInfo:
    settings, versions = json.loads(row.settings), json.loads(row.versions)
    return RunInfo(row.id, row.identity, row.model, row.is_language_model, row.target, row.seed, settings, versions)


def _round_info(row: Row[Any]) -> RoundInfo:
    shown = tuple((task, source) for task, source in json.loads(row.demonstrations))
    return RoundInfo(row.number, row.cycle, row.level, shown, _names(row.attempted) or (), row.planned)


def _names(text_of_list: str | None) -> tuple[str, ...] | None:
    return None if text_of_list is None else tuple(json.loads(text_of_list))


def _kept(row: Row[Any]) -> Kept:
    found = Experience(task_from_body(row.task_body), row.program, row.success_rate, row.round, row.origin)
    return Kept(found, row.sample, row.contaminated)


def _reply(row: Row[Any]) -> Reply:
    return Reply(tuple(json.loads(row.texts)), _usage(row, row.cost_usd), row.model, tuple(json.loads(row.finish)))


def _usage(row: Row[Any], cost_usd: float | None) -> Usage:
    return Usage(row.requests, row.input_tokens, row.output_tokens, row.cached_tokens, cost_usd)


def _content(values: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in values.items() if key not in schema.CLOCK}, sort_keys=True)
