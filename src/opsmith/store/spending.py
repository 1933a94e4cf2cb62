"""What was spent on a run, and on what. By round, task or agent, and how long its prompts were."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from sqlalchemy import func, select, true

from opsmith.models.price import PRICE_LIST
from opsmith.models.tokens import MESSAGE_TOKENS, estimate_tokens
from opsmith.records import Usage
from opsmith.store import schema
from opsmith.store.queries import Reader
from opsmith.store.requests import is_asked, is_proposed, read_sum, sums_of_bills, tokens_of_prompt
from opsmith.store.rows import RunInfo, read_prompt_names
from opsmith.store.schema import reply, reply_of, request, text

By = Literal["round", "task", "agent", "model"]


def usage_by(reader: Reader, run: str, by: By) -> dict[Any, Usage]:
    """Billed tokens and money of all agents; where a reply's cost is not known, neither is the sum."""
    what = (reply.c.model if by == "model" else request.c[by]).label("what")
    query = select(what, *sums_of_bills()).join(reply, reply_of).where(request.c.run == run)
    return {row.what: read_sum(row) for row in reader.fetch_rows(query.group_by(what).order_by(what))}


@dataclass(frozen=True)
class RunPace:
    """How fast a run came on: means, in seconds."""

    run: str  # as people call it
    requests: int
    request_s: float  # from one request to its reply
    reply_s: float  # from one reply to the next, while any was awaited
    programs: int  # different ones that were judged
    program_s: float  # that judging one took, at all levels


def read_pace(reader: Reader, run: RunInfo) -> RunPace | None:
    """None: it got no reply yet."""
    begun, ended = func.min(reply.c.at - reply.c.seconds), func.max(reply.c.at)
    sums = func.count().label("requests"), func.sum(reply.c.seconds).label("seconds"), (ended - begun).label("span")
    query = select(*sums).join(request, reply_of).where(request.c.run == run.id, reply.c.requests > 0)
    rounds = reader.fetch_rows(query.group_by(request.c.round))
    requests, judging, programs = sum(row.requests for row in rounds), 0.0, 0
    if not requests:
        return None
    for table in (schema.full_verdict, schema.verdict):  # a program that several samples hold is judged once
        of_one = select(func.max(table.c.seconds).label("seconds")).where(
            table.c.run == run.id, table.c.candidate != ""
        )
        rows = reader.fetch_rows(of_one.group_by(table.c.candidate))
        judging, programs = judging + sum(row.seconds for row in rows), len(rows)
    total = sum(row.seconds for row in rounds)
    awaited = sum(min(row.span, row.seconds) for row in rounds)  # the span of one that was halted holds the halt
    return RunPace(run.label, requests, total / requests, awaited / requests, programs, judging / max(1, programs))


def usage_by_round(reader: Reader, run: str) -> dict[int, Usage]:
    """Of all agents."""
    return usage_by(reader, run, "round")


def known_usd(reader: Reader, run: str) -> float:
    """What the replies cost whose cost is known."""
    query = select(func.coalesce(func.sum(reply.c.cost_usd), 0.0).label("cost")).where(reply.c.run == run)
    return float(reader.fetch_rows(query)[0].cost)


def count_uncounted(reader: Reader, run: str) -> int:
    """Requests whose replies came without token counts: their tokens are missing from every sum."""
    none = (reply.c.requests > 0) & (reply.c.input_tokens == 0)
    query = select(func.coalesce(func.sum(reply.c.requests), 0).label("requests")).where(reply.c.run == run, none)
    return int(reader.fetch_rows(query)[0].requests)


def count_pictures(reader: Reader, run: str) -> int:
    """Pictures that were sent to models; one that several requests hold counts for each of them."""
    joined = select(text.c.body, func.coalesce(func.sum(reply.c.requests), 0).label("requests")).join(reply, reply_of)
    query = joined.join(text, text.c.hash == request.c.prompt).where(request.c.run == run)
    rows = reader.fetch_rows(query.where(text.c.body.contains('"image/')).group_by(request.c.prompt, text.c.body))
    return sum(
        int(row.requests) * sum(len(message.pictures) for message in read_prompt_names(row.body)) for row in rows
    )


@dataclass(frozen=True)
class PriceList:
    """What the prices of a run were taken from, since when."""

    version: str | None  # of the package; None: it was not there, or this opsmith did not note it yet
    since: float  # the first session's begin, in seconds since 1970


def price_lists(reader: Reader, run: str) -> list[PriceList]:
    """One for each time that the version changed between two sessions."""
    session = schema.session
    query = select(session.c.versions, session.c.at).where(session.c.run == run).order_by(session.c.id_number)
    lists: list[PriceList] = []
    for row in reader.fetch_rows(query):
        version = json.loads(row.versions).get(PRICE_LIST)
        if not lists or lists[-1].version != version:
            lists.append(PriceList(version, row.at))
    return lists


def prompt_tokens_by_round(reader: Reader, run: str) -> dict[int, dict[str, int]]:
    """By round, then task: the input tokens of one of the proposer's requests."""
    query = select(request.c.round, request.c.task, tokens_of_prompt())
    query = query.join(reply, reply_of).where(is_asked(run)).group_by(request.c.round, request.c.task)
    tokens: dict[int, dict[str, int]] = {}
    for row in reader.fetch_rows(query.order_by(request.c.round)):
        tokens.setdefault(row.round, {})[row.task] = row.tokens
    return tokens


def seconds_by_round(reader: Reader, run: str) -> dict[int, float]:
    """How long processes had worked on a run when each of its rounds ended. One that was killed counts up to its last
    reply, or the end of its last round."""
    session, end, of_round = schema.session, schema.session_end, schema.round_end
    begins = sorted(row.at for row in reader.fetch_rows(select(session.c.at).where(session.c.run == run)))
    ended = reader.fetch_rows(select(end.c.at, end.c.seconds).where(end.c.run == run))
    rounds = reader.fetch_rows(select(of_round.c.number, of_round.c.at).where(of_round.c.run == run))
    spans = [(row.at - row.seconds, row.at) for row in ended]
    for begin, after in pairwise([*begins, math.inf]):
        if any(begin <= row.at < after for row in ended):
            continue
        is_own = (reply.c.at >= begin) & (reply.c.at < after if after < math.inf else true())
        last = reader.fetch_rows(select(func.max(reply.c.at)).where(reply.c.run == run, is_own))[0][0]
        spans.append((begin, max([last or begin, *(row.at for row in rounds if begin <= row.at < after)])))
    return {row.number: sum(max(0.0, min(row.at, stop) - begin) for begin, stop in spans) for row in rounds}


def measure_estimates(reader: Reader, run: str, number: int) -> list[float]:
    """Of each prompt of the proposer's in a round: the input tokens that its server counted at most, for one that we
    estimate; prompts that came without a count are left out."""
    counted = func.max(reply.c.input_tokens).label("tokens")
    query = select(counted, text.c.body).select_from(request).join(reply, reply_of)
    query = query.join(text, text.c.hash == request.c.prompt).where(is_proposed(run, number), reply.c.input_tokens > 0)
    rows = reader.fetch_rows(query.group_by(request.c.prompt, text.c.body).order_by(request.c.prompt))
    prompts = [(row.tokens, [message.text for message in read_prompt_names(row.body)]) for row in rows]
    bodies = reader.read_texts(name for _, names in prompts for name in names)
    return [tokens / sum(estimate_tokens(bodies[name]) + MESSAGE_TOKENS for name in names) for tokens, names in prompts]
