"""What did each round of a run cost, and how long were its prompts? Asked by reports that follow a run through time."""

from __future__ import annotations

from sqlalchemy import case, func, select

from opsmith.records import Usage
from opsmith.store.queries import Reader
from opsmith.store.rows import PROPOSER
from opsmith.store.schema import reply, request


def usage_by_round(reader: Reader, run: str) -> dict[int, Usage]:
    """Billed tokens and money of all agents, by round; a round with a reply of unknown cost has no cost."""
    names = ("requests", "input_tokens", "output_tokens", "cached_tokens")
    sums = [func.sum(reply.c[name]).label(name) for name in names]
    unknown = func.sum(case((reply.c.cost_usd.is_(None), 1), else_=0)).label("unknown")
    query = select(request.c.round, *sums, func.sum(reply.c.cost_usd).label("cost"), unknown)
    query = query.join(reply, reply.c.request == request.c.id).where(request.c.run == run).group_by(request.c.round)
    return {
        row.round: Usage(**{name: getattr(row, name) for name in names}, cost_usd=None if row.unknown else row.cost)
        for row in reader.ask(query)
    }


def prompt_tokens_by_round(reader: Reader, run: str) -> dict[int, dict[str, int]]:
    """By round, then task: the input tokens of one of the proposer's requests."""
    query = select(request.c.round, request.c.task, func.min(reply.c.input_tokens).label("tokens"))
    query = query.join(reply, reply.c.request == request.c.id)
    query = query.where(request.c.run == run, request.c.agent == PROPOSER).group_by(request.c.round, request.c.task)
    found: dict[int, dict[str, int]] = {}
    for row in reader.ask(query.order_by(request.c.round)):
        found.setdefault(row.round, {})[row.task] = row.tokens
    return found
