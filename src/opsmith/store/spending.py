"""What was spent on a run, and on what? By round, task or agent, and how long its prompts were."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import case, func, select

from opsmith.models.price import PRICE_LIST
from opsmith.records import Usage
from opsmith.store import schema
from opsmith.store.queries import Reader, tokens_of_prompt
from opsmith.store.rows import PROPOSER
from opsmith.store.schema import reply, request

By = Literal["round", "task", "agent"]


def usage_by(reader: Reader, run: str, by: By) -> dict[Any, Usage]:
    """Billed tokens and money; where a reply's cost is not known, neither is the sum."""
    names = ("requests", "input_tokens", "output_tokens", "cached_tokens")
    sums = [func.sum(reply.c[name]).label(name) for name in names]
    unknown = func.sum(case((reply.c.cost_usd.is_(None), 1), else_=0)).label("unknown")
    what = request.c[by].label("what")
    query = select(what, *sums, func.sum(reply.c.cost_usd).label("cost"), unknown)
    query = query.join(reply, reply.c.request == request.c.id).where(request.c.run == run).group_by(what)
    return {
        row.what: Usage(**{name: getattr(row, name) for name in names}, cost_usd=None if row.unknown else row.cost)
        for row in reader.ask(query.order_by(what))
    }


def usage_by_round(reader: Reader, run: str) -> dict[int, Usage]:
    """Of all agents."""
    return usage_by(reader, run, "round")


def known_usd(reader: Reader, run: str) -> float:
    """What the replies cost whose cost is known."""
    query = select(func.coalesce(func.sum(reply.c.cost_usd), 0.0).label("cost")).where(reply.c.run == run)
    return float(reader.ask(query)[0].cost)


def uncounted(reader: Reader, run: str) -> int:
    """Requests whose replies came without token counts: their tokens are missing from every sum."""
    none = (reply.c.requests > 0) & (reply.c.input_tokens == 0)
    query = select(func.coalesce(func.sum(reply.c.requests), 0).label("requests")).where(reply.c.run == run, none)
    return int(reader.ask(query)[0].requests)


@dataclass(frozen=True)
class PriceList:
    """What the prices of a run were taken from, since when."""

    version: str | None  # of the package; None: it was not there, or this opsmith did not note it yet
    since: float  # the first session's begin, in seconds since 1970


def price_lists(reader: Reader, run: str) -> list[PriceList]:
    """One for each time that the version changed between two sessions."""
    told = schema.session
    query = select(told.c.versions, told.c.at).where(told.c.run == run).order_by(told.c.id_number)
    found: list[PriceList] = []
    for row in reader.ask(query):
        version = json.loads(row.versions).get(PRICE_LIST)
        if not found or found[-1].version != version:
            found.append(PriceList(version, row.at))
    return found


def prompt_tokens_by_round(reader: Reader, run: str) -> dict[int, dict[str, int]]:
    """By round, then task: the input tokens of one of the proposer's requests."""
    query = select(request.c.round, request.c.task, tokens_of_prompt())
    query = query.join(reply, reply.c.request == request.c.id)
    query = query.where(request.c.run == run, request.c.agent == PROPOSER).group_by(request.c.round, request.c.task)
    found: dict[int, dict[str, int]] = {}
    for row in reader.ask(query.order_by(request.c.round)):
        found.setdefault(row.round, {})[row.task] = row.tokens
    return found
