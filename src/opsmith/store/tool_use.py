"""How often a run's models called tools, and how the samples ended that did. Questions of reports alone."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func, select

from opsmith.records import Outcome
from opsmith.store.queries import Reader
from opsmith.store.requests import is_asked
from opsmith.store.rows import TOOLS
from opsmith.store.schema import request, tool_call, verdict


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


def count_tools(reader: Reader, run: str) -> list[ToolCount]:
    """By tool, then outcome."""
    place = (tool_call.c.name, tool_call.c.outcome)
    samples = func.count(tool_call.c.sample.distinct()).label("samples")
    seconds = func.coalesce(func.sum(tool_call.c.seconds), 0.0).label("seconds")
    query = select(*place, func.count().label("calls"), samples, seconds).where(tool_call.c.run == run)
    rows = reader.fetch_rows(query.group_by(*place).order_by(*place))
    return [ToolCount(row.name, row.outcome, row.calls, row.samples, float(row.seconds)) for row in rows]


def count_turns(reader: Reader, run: str) -> dict[str, int]:
    """By sample that went on after tools, how many replies its conversation has."""
    is_turn = request.c.agent.startswith(f"{TOOLS}-", autoescape=True)
    query = select(request.c.sample, func.count().label("turns")).where(request.c.run == run, is_turn)
    return {row.sample: 1 + row.turns for row in reader.fetch_rows(query.group_by(request.c.sample))}


def count_users(reader: Reader, run: str) -> dict[bool, UserCount]:
    """By whether a sample called any tool; without joined programs, for which nobody could."""
    called = request.c.id.in_(select(tool_call.c.sample).where(tool_call.c.run == run))
    is_user = case((called, 1), else_=0).label("is_user")
    right = func.coalesce(func.sum(case((verdict.c.outcome == Outcome.PASSED.value, 1), else_=0)), 0).label("right")
    joined = request.outerjoin(verdict, (verdict.c.sample == request.c.id) & verdict.c.final)
    query = select(is_user, func.count().label("answered"), func.count(verdict.c.sample).label("verdicts"), right)
    query = query.select_from(joined).where(is_asked(run), reader.is_functional(run)).group_by(is_user)
    return {bool(row.is_user): UserCount(row.answered, row.verdicts, row.right) for row in reader.fetch_rows(query)}
