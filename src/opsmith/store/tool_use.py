"""The tools that a run's models called: each call of a sample, and counts of a run. Questions of reports alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import case, func, select

from opsmith.records import Outcome
from opsmith.store.queries import Reader
from opsmith.store.requests import is_proposed
from opsmith.store.schema import request, text, tool_call, verdict


@dataclass(frozen=True)
class UsedTool:
    """One call with its result."""

    number: int  # within the sample, from 0
    turn: str  # the agent whose reply called
    name: str
    arguments: str  # as received
    result: str
    outcome: str  # ok, error, refused, limit
    seconds: float | None


@dataclass(frozen=True)
class ToolCount:
    """The calls of one tool that ended in one way."""

    name: str
    outcome: str
    calls: int
    samples: int
    seconds: float


@dataclass(frozen=True)
class UserCount:
    """Samples of functional rounds that called tools, or did not."""

    answered: int
    verdicts: int
    right: int


def read_used_tools(reader: Reader, samples: Collection[str]) -> dict[str, list[UsedTool]]:
    """By sample, in the order of the calls; samples without any are left out."""
    words = text.alias("result_text")
    query = select(tool_call, text.c.body.label("given"), words.c.body.label("answer"))
    query = query.join(text, text.c.hash == tool_call.c.arguments).join(words, words.c.hash == tool_call.c.result)
    query = query.where(tool_call.c.sample.in_(samples)).order_by(tool_call.c.sample, tool_call.c.number)
    used: dict[str, list[UsedTool]] = {}
    for row in reader.fetch_rows(query) if samples else []:
        place = (row.number, row.turn, row.name)
        used.setdefault(row.sample, []).append(UsedTool(*place, row.given, row.answer, row.outcome, row.seconds))
    return used


def count_tools(reader: Reader, run: str) -> list[ToolCount]:
    """By tool, then outcome."""
    place = (tool_call.c.name, tool_call.c.outcome)
    samples = func.count(tool_call.c.sample.distinct()).label("samples")
    seconds = func.coalesce(func.sum(tool_call.c.seconds), 0.0).label("seconds")
    query = select(*place, func.count().label("calls"), samples, seconds).where(tool_call.c.run == run)
    rows = reader.fetch_rows(query.group_by(*place).order_by(*place))
    return [ToolCount(row.name, row.outcome, row.calls, row.samples, float(row.seconds)) for row in rows]


def count_users(reader: Reader, run: str) -> dict[bool, UserCount]:
    """By whether a sample called any tool."""
    called = request.c.id.in_(select(tool_call.c.sample).where(tool_call.c.run == run))
    is_user = case((called, 1), else_=0).label("is_user")
    right = func.coalesce(func.sum(case((verdict.c.outcome == Outcome.PASSED.value, 1), else_=0)), 0).label("right")
    joined = request.outerjoin(verdict, (verdict.c.sample == request.c.id) & verdict.c.final)
    query = select(is_user, func.count().label("answered"), func.count(verdict.c.sample).label("verdicts"), right)
    query = query.select_from(joined).where(is_proposed(run), reader.is_functional(run)).group_by(is_user)
    return {bool(row.is_user): UserCount(row.answered, row.verdicts, row.right) for row in reader.fetch_rows(query)}
