"""Samples and their candidates: a run's list of them, each with all that belongs to it, and counts of candidates."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, and_, func, or_, select

from opsmith.errors import UsageError
from opsmith.models import Message, Reply
from opsmith.records import Outcome, Stage, Verdict, verdict_from_json
from opsmith.store.reading import Reading, read_outcome
from opsmith.store.requests import begins_with, is_by, is_proposed, read_reply
from opsmith.store.rows import GUARDIAN, PROPOSER, read_prompt_names, turn_of
from opsmith.store.schema import PLACE, candidate, failure, is_counted, reply, request, text, verdict


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
    parent_sample: str | None = None  # the sample that holds the parent; None: this one


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


class SampleQueries(Reading):
    """Questions about the samples of a run. Raises UsageError for a sample that does not exist."""

    def list_cells(self, run: str) -> list[tuple[int, str]]:
        """(round, task) of the answered samples, in order: what large questions are asked by, so that no answer is."""
        query = select(request.c.round, request.c.task).where(is_proposed(run)).distinct()
        return [(row.round, row.task) for row in self.fetch_rows(query.order_by(request.c.round, request.c.task))]

    def list_samples(self, run: str, task: str | None = None) -> Iterator[SampleRow]:
        """Every answered sample of a run, or of one of its tasks, by round, task, temperature and number."""
        for number, name in self.list_cells(run):
            if task in (None, name):
                place = (request.c.run == run, request.c.round == number, request.c.task == name)
                yield from map(read_sample, self.fetch_rows(select_samples().where(*place)))

    def find_sample(self, run: str, name: str) -> SampleDetail:
        """One sample by its id or the beginning of it, with requests, replies, candidates and verdicts."""
        of_run = func.coalesce(request.c.run, "") == run  # no index knows this: the one of ids is used, not the run's
        rows = self.fetch_rows(select_samples().where(of_run, begins_with(name)).order_by(None).limit(2))
        if len(rows) != 1:
            problem = f"more than one sample of run {run} begins so" if rows else f"no task and no sample of run {run}"
            raise UsageError(f"{name!r}: {problem}; try: opsmith show {run}, then opsmith show {run} TASK --samples")
        [detail] = self._read_details(rows).values()
        return detail

    def read_details(self, names: Collection[str]) -> dict[str, SampleDetail]:
        """Samples by their whole ids, each with all that belongs to it; a few queries for all of them."""
        return self._read_details(self.fetch_rows(select_samples().where(request.c.id.in_(names))))

    def read_programs(self, run: str) -> list[tuple[str, str, bool]]:
        """(task, program, passed) of every judged sample of the functional rounds that held a program for a task of the
        run's own."""
        query = select(request.c.task, text.c.body, verdict.c.outcome).join(verdict, verdict.c.sample == request.c.id)
        query = query.join(text, text.c.hash == verdict.c.candidate).where(is_proposed(run), verdict.c.final)
        query, children = query.where(self.is_functional(run)), self.list_children(run)
        rows = [row for row in self.fetch_rows(query) if row.task not in children]
        return [(row.task, row.body, row.outcome == Outcome.PASSED.value) for row in rows]

    def guardian_pairs(self, run: str) -> Counter[tuple[bool, bool]]:
        """How many samples of the functional rounds that the guardian rewrote had (a proposal that passed, a rewrite
        that passed)."""
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
        query = self._keep_functional(query, run)
        passed, pairs = Outcome.PASSED.value, Counter[tuple[bool, bool]]()
        for row in self.fetch_rows(query):
            pairs[row.before == passed, row.after == passed] += row.samples
        return pairs

    def count_refused(self, run: str, stage: str) -> int:
        """The candidates of the functional rounds that were refused at a stage, those of the guardian left out."""
        joined = (verdict.c.sample == candidate.c.sample) & (verdict.c.candidate == candidate.c.id)
        query = select(func.count()).select_from(candidate).join(verdict, joined)
        refused = ~is_by(candidate, GUARDIAN) & (verdict.c.stage == stage)
        query = self._keep_functional(query.where(candidate.c.run == run, refused), run)
        number: int = self.fetch_rows(query)[0][0]
        return number

    def count_blamed(self, run: str, where: str) -> Counter[str]:
        """By task, the samples without a program whose verdict has its finding there."""
        mark = f'"where":{json.dumps(where)}'
        query = select(request.c.task, func.count().label("samples")).select_from(verdict)
        query = query.join(text, text.c.hash == verdict.c.body).join(request, request.c.id == verdict.c.sample)
        empty = (verdict.c.candidate == "") & (verdict.c.stage == Stage.FORMAT.name)
        query = query.where(verdict.c.run == run, empty, verdict.c.final, text.c.body.contains(mark, autoescape=True))
        return Counter({row.task: row.samples for row in self.fetch_rows(query.group_by(request.c.task))})

    def _keep_functional(self, query: Select[Any], run: str) -> Select[Any]:
        """A query on candidates, of those from functional rounds; as it was where the run has no others."""
        if self.find_optimisation(run) is None:
            return query
        return query.join(request, request.c.id == candidate.c.sample).where(self.is_functional(run))

    def _read_details(self, rows: Sequence[Row[Any]]) -> dict[str, SampleDetail]:
        names = [row.id for row in rows]
        calls, candidates, failures = self._read_calls(rows), self.read_candidates(names), self._read_failures(names)
        return {
            row.id: SampleDetail(
                read_sample(row), tuple(calls[row.id]), tuple(candidates[row.id]), tuple(failures[row.id])
            )
            for row in rows
        }

    def _read_calls(self, rows: Sequence[Row[Any]]) -> Mapping[str, list[Call]]:
        """By sample, in the order of the turns."""
        query = select(request, reply, text.c.body.label("parts")).join(reply, reply.c.request == request.c.id)
        query = query.join(text, text.c.hash == request.c.prompt)
        rows_asked = [
            row
            for start in range(0, len(rows), 100)  # in parts: a database takes no condition of any length
            for row in self.fetch_rows(query.where(or_(*map(_stands_at, rows[start : start + 100]))))
        ]
        messages_of = {row.prompt: read_prompt_names(row.parts) for row in rows_asked}
        bodies = self.read_texts(name for named in messages_of.values() for message in named for name in message.names)
        calls = defaultdict[str, list[Call]](list)
        for row in sorted(rows_asked, key=lambda row: turn_of(row.agent)):
            messages = tuple(message.read_message(bodies) for message in messages_of[row.prompt])
            calls[row.sample].append(Call(row.agent, messages, read_reply(row), row.seed, row.max_tokens))
        return calls

    def read_candidates(self, samples: Collection[str]) -> Mapping[str, list[CandidateRow]]:
        """By sample, the one that it counts by last."""
        body = text.alias("verdict_text")
        same = (candidate.c.sample == verdict.c.sample) & (candidate.c.id == verdict.c.candidate)
        joined = verdict.join(body, body.c.hash == verdict.c.body).outerjoin(candidate, same)
        joined = joined.outerjoin(text, text.c.hash == verdict.c.candidate)
        columns = (candidate.c.agent, candidate.c.parent, candidate.c.parent_sample, text.c.body.label("source"))
        query = select(verdict.c.sample, verdict.c.final, *columns, body.c.body.label("verdict")).select_from(joined)
        rows = self.fetch_rows(query.where(verdict.c.sample.in_(samples)))
        candidates = defaultdict[str, list[CandidateRow]](list)
        for row in sorted(rows, key=lambda row: (row.final, turn_of(row.agent or PROPOSER))):
            verdict_read, agent = verdict_from_json(json.loads(row.verdict)), row.agent or PROPOSER
            line = CandidateRow(row.source, agent, row.parent, verdict_read, row.final, row.parent_sample)
            candidates[row.sample].append(line)
        return candidates

    def _read_failures(self, samples: Collection[str]) -> Mapping[str, dict[str, None]]:
        """The different messages by sample."""
        query = select(failure.c.sample, failure.c.message).where(failure.c.sample.in_(samples))
        messages = defaultdict[str, dict[str, None]](dict)
        for row in self.fetch_rows(query.order_by(failure.c.id_number)):
            messages[row.sample][row.message] = None
        return messages


def select_samples() -> Select[Any]:
    """The proposer's requests in their order, each with the verdict that counts; `read_sample` reads the rows."""
    joined = request.outerjoin(verdict, is_counted)
    query = select(request.c.id, request.c.run, *PLACE, verdict.c.stage, verdict.c.outcome).select_from(joined)
    return query.where(request.c.agent == PROPOSER).order_by(*PLACE)


def read_sample(row: Row[Any]) -> SampleRow:
    return SampleRow(row.id, row.round, row.task, row.temperature, row.number, *read_outcome(row))


def _stands_at(row: Row[Any]) -> Any:
    """A request serves the sample of that row: an index knows places, and none knows the sample that is served."""
    return and_(request.c.run == row.run, *(column == row._mapping[column] for column in PLACE))
