"""`opsmith plan`: how a task can be split, without a run."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import (
    AsJson,
    CandidateSeconds,
    TargetName,
    TargetOptions,
    TrustTasks,
    make_pool,
    read_target_options,
)
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.judging.pool import Pool
    from opsmith.records import Task
    from opsmith.splits import Split


def add_to(app: CommandApp) -> None:
    app.add("plan", show_plan)


def show_plan(
    task: Annotated[str, typer.Argument(metavar="TASK", help="An id, or a task's file.")],
    target: TargetName = None,
    option: TargetOptions = None,
    splits: Annotated[int, typer.Option(metavar="N", min=1, max=16, help="Different splits that are shown.")] = 1,
    depth: Annotated[int, typer.Option(metavar="N", min=1, max=6, help="Levels that the task is split down to.")] = 1,
    candidate_seconds: CandidateSeconds = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Show how a task can be split.

    The static planner's splits, the best first: each node with its contracts, its code and the functions offered.
    Exit code 1: there is none.
    """
    from opsmith.terminal import write_document

    with make_pool(1, trust_tasks, candidate_seconds) as pool:
        pool.start_early()
        from opsmith.suites import load_task

        task_read = load_task(task, target, read_target_options(option))
        plans, reason = _list_plans(pool, task_read, splits, depth)
    if as_json:
        print(json.dumps({"task": task_read.id, "splits": plans, "reason": reason}))
    elif plans:
        write_document("\n".join(line for plan in plans for line in _write_plan(task_read.id, plan, "")) + "\n")
    else:
        write_document(f"{task_read.id}: {reason}\n")
    raise typer.Exit(0 if plans else 1)


def _list_plans(pool: Pool, task: Task, count: int, depth: int) -> tuple[list[dict[str, Any]], str]:
    """The first splits of a task as JSON, the nodes' own under them; or why there is none."""
    answer = pool.plan(task, "list", most=count)
    return [_describe_split(pool, task, split, depth) for split in answer.splits[:count]], answer.reason


def _describe_split(pool: Pool, task: Task, split: Split, depth: int) -> dict[str, Any]:
    from opsmith.records import to_json
    from opsmith.targets import get_target
    from opsmith.targets.protocols import Planned

    target = get_target(task.target)
    if not isinstance(target, Planned):  # the pool has refused it
        raise UsageError(f"target {task.target} cannot split tasks")
    plan: dict[str, Any] = to_json(split)
    for node, child in zip(plan["nodes"], target.make_children(task, split), strict=True):
        node["task"] = child.id
        if depth > 1:
            node["splits"] = _list_plans(pool, child, 1, depth - 1)[0]
    return plan


def _write_plan(name: str, plan: dict[str, Any], margin: str) -> Iterator[str]:
    """A line for each node and each line of its code; a tree by its margin."""
    yield f"{margin}{name} -> {', '.join(plan['outputs'])}"
    for node in plan["nodes"]:
        borders = node["gives"]
        gives = ", ".join(f"{border['name']}: {border['dtype']} [{', '.join(border['dims'])}]" for border in borders)
        yield f"{margin}  {node['name']}: {', '.join(node['takes'])} -> {gives}"
        if node["fns"]:
            yield f"{margin}    fns: {', '.join(node['fns'])}"
        yield from (f"{margin}    | {line}" for line in node["code"].splitlines())
        for inner in node.get("splits", ()):
            yield from _write_plan(node["task"], inner, margin + "    ")
