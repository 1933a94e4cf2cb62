"""The plans of a run: how its tasks were split, and their children, which are tasks themselves."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select

from opsmith.records import Stage, Task, content_hash, dumps, to_json
from opsmith.splits import Split, split_from_json
from opsmith.store.database import Row as NewRow
from opsmith.store.reading import Reading
from opsmith.store.rows import JOIN, task_body, task_from_body, text_row
from opsmith.store.schema import experience, plan, plan_node, request, text, verdict

CONTRACT = "contract"  # in place of a planner's name: the plan before, with another contract for one child


@dataclass(frozen=True)
class StoredPlan:
    """One attempt at splitting a task, or a child of one."""

    task: str
    number: int  # of the attempts at splitting that task, from 0
    planner: str  # static, llm or `CONTRACT`
    reason: str
    round: int  # the first one that may use it
    split: Split | None  # None: there is none, for the reason in `problem`
    problem: str = ""
    changed: str = ""  # of `CONTRACT`: the node whose contract it is about
    children: tuple[Task, ...] = ()  # in the order of the split's nodes

    @property
    def lack(self) -> str:
        """The problem, to stand behind words which say that there is no split."""
        return self.problem.removeprefix("no split: ")


class PlanQueries(Reading):
    """Questions about the plans of a run."""

    def read_plans(self, run: str) -> list[StoredPlan]:
        """In the order in which they were made, as far as it matters: by round, task and number."""
        query = select(plan, text.c.body.label("split")).join(text, text.c.hash == plan.c.body)
        rows = self.fetch_rows(query.where(plan.c.run == run).order_by(plan.c.round, plan.c.task, plan.c.number))
        children = self._read_children(run) if rows else {}
        return [_read_plan(row, children.get(row.id, ())) for row in rows]

    def has_plans(self, run: str) -> bool:
        """Whether any task of a run was split, or was to be."""
        return bool(self.fetch_rows(select(plan.c.id).where(plan.c.run == run).limit(1)))

    def read_children(self, run: str) -> list[Task]:
        """Those of all plans of a run: they are none of its own tasks."""
        return [child for children in self._read_children(run).values() for child in children]

    def read_joined(self, run: str) -> frozenset[str]:
        """The digests of the tasks, and children, that a joined program solved."""
        query = select(experience.c.digest).join(request, request.c.id == experience.c.sample)
        rows = self.fetch_rows(query.where(experience.c.run == run, request.c.asked == JOIN))
        return frozenset(row.digest for row in rows)

    def read_tried_joins(self, run: str, rounds: Collection[int]) -> frozenset[tuple[str, int]]:
        """The tasks, and children, whose children's programs were joined in these rounds, with the plan's number."""
        query = select(request.c.task, request.c.number).where(request.c.run == run, request.c.asked == JOIN)
        return frozenset((row.task, row.number) for row in self.fetch_rows(query.where(request.c.round.in_(rounds))))

    def read_compared(self, run: str, rounds: Collection[int]) -> frozenset[str]:
        """The tasks, and children, of which a program came as far as being compared in these rounds."""
        query = select(request.c.task).distinct().join(verdict, verdict.c.sample == request.c.id)
        compared = (verdict.c.run == run) & (verdict.c.stage == Stage.MATCH.name)
        in_rounds = (request.c.run == run) & request.c.round.in_(rounds)
        return frozenset(row.task for row in self.fetch_rows(query.where(compared, in_rounds)))

    def find_origins(self, run: str) -> dict[str, str]:
        """By child of a plan, the task of the run's own that it was split off from."""
        query = select(plan_node.c.id, plan.c.task).join(
            plan, (plan.c.run == plan_node.c.run) & (plan.c.id == plan_node.c.plan)
        )
        parents = {row.id: row.task for row in self.fetch_rows(query.where(plan_node.c.run == run))}
        origins = {}
        for child in parents:
            origins[child] = child
            while origins[child] in parents:
                origins[child] = parents[origins[child]]
        return origins

    def _read_children(self, run: str) -> Mapping[str, tuple[Task, ...]]:
        """By plan."""
        query = select(plan_node.c.plan, text.c.body).join(text, text.c.hash == plan_node.c.body)
        children: dict[str, tuple[Task, ...]] = {}
        for row in self.fetch_rows(query.where(plan_node.c.run == run).order_by(plan_node.c.plan, plan_node.c.place)):
            children[row.plan] = (*children.get(row.plan, ()), task_from_body(row.body))
        return children


def name_plan(run: str, task: str, number: int) -> str:
    """The id of a plan."""
    return content_hash(run, task, str(number))


def plan_rows(run: str, stored: StoredPlan) -> list[NewRow]:
    """A plan with its children; one without a split says why."""
    content = {} if stored.split is None else dict(to_json(stored.split))
    content |= {"problem": stored.problem} if stored.split is None else {}
    content |= {"changed": stored.changed} if stored.changed else {}
    body, name = text_row(dumps(content)), name_plan(run, stored.task, stored.number)
    place = {"run": run, "id": name, "task": stored.task, "number": stored.number, "round": stored.round}
    words = {"planner": stored.planner, "reason": stored.reason, "body": body[1]["hash"]}
    rows = [body, (plan, {**place, **words, "at": time.time()})]
    for number, child in enumerate(stored.children):
        text_of_child = text_row(task_body(child))
        named = {"run": run, "id": child.id, "plan": name, "place": number, "digest": child.digest}
        rows += [text_of_child, (plan_node, {**named, "body": text_of_child[1]["hash"], "at": time.time()})]
    return rows


def _read_plan(row: Row[Any], children: tuple[Task, ...]) -> StoredPlan:
    body = json.loads(row.split)
    split = split_from_json(body) if "nodes" in body else None
    place = (row.task, row.number, row.planner, row.reason, row.round)
    return StoredPlan(*place, split, body.get("problem", ""), body.get("changed", ""), children)
