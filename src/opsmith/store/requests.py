"""What agents asked and what came back: requests with their replies, the tokens and the money that were billed."""

from __future__ import annotations

import json
import sys
from typing import Any

from sqlalchemy import Row, case, exists, func, select

from opsmith.models import Reply
from opsmith.records import Usage
from opsmith.store import schema
from opsmith.store.reading import Reading
from opsmith.store.rows import JOIN, PROPOSER, read_calls
from opsmith.store.schema import reply, reply_of, request, verdict

_TOKENS = ("requests", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


class RequestQueries(Reading):
    """Questions about the requests of a run."""

    def sample_count(self, run: str) -> int:
        """Samples that were answered, in all rounds."""
        return self.count_rows(request, run, request.c.agent == PROPOSER)

    def sum_usage(self, run: str, agent: str | None = None) -> Usage:
        """Billed tokens and money of a run, or of one of its agents (in every turn of a conversation)."""
        query = select(*sums_of_bills()).where(reply.c.run == run)
        if agent is not None:
            query = query.join(request, reply_of).where(request.c.run == run, is_by(request, agent))
        return read_sum(self.fetch_rows(query)[0])

    def count_functional(self, run: str, agent: str) -> int:
        """The requests of an agent, in every turn of a conversation, in the rounds that solve tasks."""
        query = select(*sums_of_bills()).where(reply.c.run == run).join(request, reply_of)
        query = query.where(request.c.run == run, is_by(request, agent), self.is_functional(run))
        return read_sum(self.fetch_rows(query)[0]).requests

    def spent_before(self, run: str, number: int) -> tuple[int, int]:
        """(samples that were answered, input and output tokens of all agents) in the rounds before round `number`."""
        answered = func.count().filter(request.c.agent == PROPOSER).label("answered")
        tokens = func.coalesce(func.sum(reply.c.input_tokens + reply.c.output_tokens), 0).label("tokens")
        query = select(answered, tokens).select_from(request).join(reply, reply_of)
        row = self.fetch_rows(query.where(request.c.run == run, request.c.round < number))[0]
        return row.answered, row.tokens

    def attempts_before(self, run: str, number: int) -> dict[tuple[str, str], int]:
        """By (task, model): the proposer's requests that were answered in the rounds before round `number`."""
        place = (request.c.task, request.c.asked)
        query = select(*place, func.count().label("answered")).where(is_proposed(run))
        rows = self.fetch_rows(query.where(request.c.round < number).group_by(*place))
        return {(row.task, row.asked or ""): row.answered for row in rows}

    def unused_replies(self, run: str, number: int) -> dict[str, Reply]:
        """Replies, by request, of samples that have no verdict: a run was killed between the two."""
        is_judged = exists().where(verdict.c.sample == request.c.sample, verdict.c.final)
        query = select(reply).join(request, request.c.id == reply.c.request)
        rows = self.fetch_rows(query.where(request.c.run == run, request.c.round == number, ~is_judged))
        return {row.request: read_reply(row) for row in rows}

    def prompt_tokens(self, run: str) -> dict[str, int]:
        """By task: the proposer's input tokens for one sample of the last functional round in which a model was asked
        for it."""
        proposed = is_asked(run) & self.is_functional(run)
        last = select(request.c.task, func.max(request.c.round).label("round"))
        newest = last.where(proposed).group_by(request.c.task).subquery()
        query = (
            select(request.c.task, tokens_of_prompt())
            .join(newest, (newest.c.task == request.c.task) & (newest.c.round == request.c.round))
            .join(reply, reply_of)
            .where(proposed)
            .group_by(request.c.task)
        )
        return {row.task: row.tokens for row in self.fetch_rows(query)}

    def read_batches(self, model: str) -> dict[str, str]:
        """The last batch that each request was handed in with, by the request's name, less those that failed in it."""
        sent, failed = schema.batched, schema.batch_failure
        lost = exists().where(failed.c.request == sent.c.request, failed.c.batch == sent.c.batch)
        query = select(sent.c.request, sent.c.batch).where(sent.c.model == model, ~lost)
        return {row.request: row.batch for row in self.fetch_rows(query.order_by(sent.c.at))}


def is_proposed(run: str, number: int | None = None) -> Any:
    """It is one of the proposer's requests of a round, or of all rounds."""
    proposed = (request.c.run == run) & (request.c.agent == PROPOSER)
    return proposed if number is None else proposed & (request.c.round == number)


def is_asked(run: str) -> Any:
    """It is one of the proposer's requests that a model was shown: programs that were joined have no prompt."""
    return is_proposed(run) & (func.coalesce(request.c.asked, "") != JOIN)


def is_by(table: Any, agent: str) -> Any:
    """It is what an agent did, in its first turn or a later one."""
    return (table.c.agent == agent) | table.c.agent.startswith(f"{agent}-", autoescape=True)


def begins_with(name: str) -> Any:
    """A request's id begins so: a range, which an index can answer."""
    return (request.c.id >= name) & (request.c.id < name + chr(sys.maxunicode))


def tokens_of_prompt() -> Any:
    """The input tokens of one request; rows that share another's request have none of their own."""
    requests = func.nullif(reply.c.requests, 0, type_=reply.c.requests.type)
    return func.coalesce(func.min(reply.c.input_tokens // requests), 0).label("tokens")


def sums_of_bills() -> list[Any]:
    """The columns of a sum of bills, which `read_sum` reads."""
    tokens = [func.coalesce(func.sum(reply.c[name]), 0).label(name) for name in _TOKENS]
    unknown = func.sum(case((reply.c.cost_usd.is_(None), 1), else_=0)).label("unknown")
    return [*tokens, func.coalesce(func.sum(reply.c.cost_usd), 0.0).label("cost"), unknown]


def read_sum(row: Row[Any]) -> Usage:
    """Where a reply's cost is not known, neither is the sum."""
    return _read_usage(row, None if row.unknown else row.cost)


def read_reply(row: Row[Any]) -> Reply:
    """A row of `reply` as what the model said."""
    usage = _read_usage(row, row.cost_usd)
    calls, raw = read_calls(row.calls)
    texts, finish = tuple(json.loads(row.texts)), tuple(json.loads(row.finish))
    return Reply(texts, usage, row.model, finish, calls=calls, raw=raw, shared=row.shared or 0)


def _read_usage(row: Row[Any], cost_usd: float | None) -> Usage:
    return Usage(
        row.requests, row.input_tokens, row.output_tokens, row.cached_tokens, cost_usd, row.reasoning_tokens or 0
    )
