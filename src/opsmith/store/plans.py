"""The plans of a run: how its tasks were split, and the parts, which are tasks themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from opsmith.records import Split, Task, split_from_json
from opsmith.store.reading import Reading
from opsmith.store.rows import task_from_body
from opsmith.store.schema import plan, plan_node, text


@dataclass(frozen=True)
class StoredPlan:
    """One attempt at splitting a task, or a part of one."""

    id: str
    task: str
    number: int  # of the attempts at splitting that task, from 0
    planner: str  # static or llm; `CONTRACT`: the plan before it, with another contract for one part
    reason: str
    round: int  # the first one that may use it
    split: Split | None  # None: there is none, for the reason in `problem`
    problem: str = ""
    changed: str = ""  # of planner `CONTRACT`: the part whose contract it is about
    children: tuple[Task, ...] = ()  # in the order of the split's nodes


class PlanQueries(Reading):
    """Questions about the plans of a run."""

    def read_plans(self, run: str) -> list[StoredPlan]:
        """In the order in which they were made, as far as it matters: by round, task and number."""
        query = select(plan, text.c.body.label("split")).join(text, text.c.hash == plan.c.body)
        rows = self.fetch_rows(query.where(plan.c.run == run).order_by(plan.c.round, plan.c.task, plan.c.number))
        children = self._read_children(run) if rows else {}
        return [_read_plan(row, children.get(row.id, ())) for row in rows]

    def read_children(self, run: str) -> list[Task]:
        """The parts of all plans of a run, as tasks: they are none of its own."""
        return [child for children in self._read_children(run).values() for child in children]

    def _read_children(self, run: str) -> Mapping[str, tuple[Task, ...]]:
        """By plan."""
        query = select(plan_node.c.plan, text.c.body).join(text, text.c.hash == plan_node.c.body)
        children: dict[str, tuple[Task, ...]] = {}
        for row in self.fetch_rows(query.where(plan_node.c.run == run).order_by(plan_node.c.plan, plan_node.c.place)):
            children[row.plan] = (*children.get(row.plan, ()), task_from_body(row.body))
        return children


def _read_plan(row: Row[Any], children: tuple[Task, ...]) -> StoredPlan:
    body = json.loads(row.split)
    split = split_from_json(body) if "nodes" in body else None
    place = (row.id, row.task, row.number, row.planner, row.reason, row.round)
    return StoredPlan(*place, split, body.get("problem", ""), body.get("changed", ""), children)
