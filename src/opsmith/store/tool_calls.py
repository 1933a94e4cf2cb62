"""Calls of tools within samples, with what the model was told; for reports, how often and how those samples ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, case, exists, func, select

from opsmith.store.reading import Reading
from opsmith.store.requests import is_asked
from opsmith.store.rows import TOOLS, ToolCallEntry
from opsmith.store.schema import is_counted, one_if_right, request, text, tool_call, verdict


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


class ToolCallQueries(Reading):
    """Questions about the tools that models called."""

    def unused_tool_calls(self, run: str, number: int) -> dict[str, list[ToolCallEntry]]:
        """Of the samples of a round that have no verdict, by sample, in order: a run was killed in their midst."""
        is_judged = exists().where(verdict.c.sample == tool_call.c.sample, verdict.c.final)
        query = _select_calls().join(request, request.c.id == tool_call.c.sample)
        query = query.where(tool_call.c.run == run, request.c.round == number, ~is_judged)
        return _group_calls(self.fetch_rows(query))

    def read_tool_calls(self, samples: Collection[str]) -> dict[str, list[ToolCallEntry]]:
        """By sample, in order; samples without calls are not there."""
        return _group_calls(self.fetch_rows(_select_calls().where(tool_call.c.sample.in_(samples))))


def count_tools(reader: Reading, run: str) -> list[ToolCount]:
    """By tool, then outcome."""
    place = (tool_call.c.name, tool_call.c.outcome)
    samples = func.count(tool_call.c.sample.distinct()).label("samples")
    seconds = func.coalesce(func.sum(tool_call.c.seconds), 0.0).label("seconds")
    query = select(*place, func.count().label("calls"), samples, seconds).where(tool_call.c.run == run)
    rows = reader.fetch_rows(query.group_by(*place).order_by(*place))
    return [ToolCount(row.name, row.outcome, row.calls, row.samples, float(row.seconds)) for row in rows]


def count_turns(reader: Reading, run: str) -> dict[str, int]:
    """By sample that went on after tools, how many replies its conversation has."""
    is_turn = request.c.agent.startswith(f"{TOOLS}-", autoescape=True)
    query = select(request.c.sample, func.count().label("turns")).where(request.c.run == run, is_turn)
    return {row.sample: 1 + row.turns for row in reader.fetch_rows(query.group_by(request.c.sample))}


def count_users(reader: Reading, run: str) -> dict[bool, UserCount]:
    """By whether a sample called any tool; without joined programs, for which nobody could."""
    called = request.c.id.in_(select(tool_call.c.sample).where(tool_call.c.run == run))
    is_user = case((called, 1), else_=0).label("is_user")
    right = func.coalesce(func.sum(one_if_right), 0).label("right")
    joined = request.outerjoin(verdict, is_counted)
    query = select(is_user, func.count().label("answered"), func.count(verdict.c.sample).label("verdicts"), right)
    query = query.select_from(joined).where(is_asked(run), reader.is_functional(run)).group_by(is_user)
    return {bool(row.is_user): UserCount(row.answered, row.verdicts, row.right) for row in reader.fetch_rows(query)}


def _select_calls() -> Select[Any]:
    arguments, result = text.alias("arguments_text"), text.alias("result_text")
    columns = (tool_call.c.sample, tool_call.c.number, tool_call.c.turn, tool_call.c.name)
    bodies = (arguments.c.body.label("arguments"), result.c.body.label("result"))
    query = select(*columns, *bodies, tool_call.c.outcome, tool_call.c.seconds).select_from(tool_call)
    query = query.join(arguments, arguments.c.hash == tool_call.c.arguments)
    query = query.join(result, result.c.hash == tool_call.c.result)
    return query.order_by(tool_call.c.sample, tool_call.c.number)


def _group_calls(rows: list[Row[Any]]) -> dict[str, list[ToolCallEntry]]:
    groups = defaultdict[str, list[ToolCallEntry]](list)
    for row in rows:
        values = row._asdict()
        groups[values.pop("sample")].append(ToolCallEntry(**values))
    return dict(groups)
