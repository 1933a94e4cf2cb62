"""Calls of tools within samples, with what the model was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from sqlalchemy import Row, Select, exists, select

from opsmith.store.reading import Reading
from opsmith.store.rows import ToolCallEntry
from opsmith.store.schema import request, text, tool_call, verdict


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
