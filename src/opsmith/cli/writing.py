"""`opsmith prompt`, `codegen` and `cost`: what would be sent, the test script, the cost model."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.options import AsJson, Impl, Out, StoreUrl, TrustTasks, open_store
from opsmith.cli.text import read_text
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.records import Task

TaskName = Annotated[str, typer.Argument(metavar="TASK", help="An id or a YAML file.")]


def add_to(app: typer.Typer) -> None:
    for command in (prompt, codegen, cost):
        app.command()(command)


def prompt(
    task: TaskName,
    from_run: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Show all experiences of this run as demonstrations.")
    ] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    bare: Annotated[bool, typer.Option("--bare", help="In bare Python, without structural IR.")] = False,
) -> None:
    """Print what a model would be sent."""
    from opsmith.agents.prompt import compose
    from opsmith.api import load_task
    from opsmith.learn.stratify import stratify
    from opsmith.targets import get_target

    wanted = load_task(task)
    shown = []
    if from_run is not None:
        with open_store(out, url) as store:
            shown = [kept.experience for kept in store.experiences(store.find_run(from_run))]
    demonstrations = [item for stratum in stratify(shown, 1) for item in stratum]  # hardest first
    style = "bare" if bare else "structural"
    composed = compose(wanted, demonstrations, get_target(wanted.target), None, 0, style=style)
    for message in composed.messages:
        print(f"--- {message.role} ---\n{message.content}")
    print(f"about {composed.tokens:,} tokens, {len(composed.demonstrations_used)} demonstrations", file=sys.stderr)


def codegen(
    task: TaskName,
    impl: Impl = None,
    output: Annotated[Path | None, typer.Option("-o", metavar="FILE", help="Default: stdout.")] = None,
) -> None:
    """Write a self-contained test script."""
    from opsmith.targets import get_target

    wanted, source = _task_and_program(task, impl)
    script = get_target(wanted.target).script(wanted, source)
    if output is None:
        print(script, end="")
    else:
        output.write_text(script, encoding="utf-8")


def cost(task: TaskName, impl: Impl = None, trust_tasks: TrustTasks = False, as_json: AsJson = False) -> None:
    """Print a program's cost figures."""
    from opsmith.report.tables import figures_tables, output
    from opsmith.verification.pool import Pool

    wanted, source = _task_and_program(task, impl)
    with Pool(1, trust_tasks=trust_tasks) as pool:
        figures = pool.cost(wanted, source)
    if as_json:
        print(json.dumps(figures))
    else:
        output().print(*figures_tables(figures, title=wanted.id))


def _task_and_program(name: str, impl: Path | None) -> tuple[Task, str]:
    from opsmith.api import load_task

    task = load_task(name)
    source = task.impl if impl is None else read_text(impl)
    if source is None:
        raise UsageError(f"task {task.id}: {task.path} has no impl of its own; try: --impl FILE")
    return task, source
