"""`opsmith tasks`, `models` and `runs`: what there is."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.deleting import delete_run
from opsmith.cli.options import AsJson, Out, StoreUrl, TargetName, TargetOptions, open_store, read_target_options
from opsmith.errors import UsageError


def add_to(app: CommandApp) -> None:
    app.add("tasks", show_tasks)
    app.add("models", show_models)
    app.add("runs", show_runs)


def show_tasks(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TASK|DIR...]", help="Default: all bundled.")] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the bundled tasks, or show one.

    A problem file asks for its problem in no language until --target says one.
    """
    from opsmith.report.tables import open_console, tasks_table
    from opsmith.suites import SUITES, find_files, read_task_files

    options = read_target_options(option)
    chosen = names or SUITES
    files = read_task_files(chosen, find_files(chosen), target, options)
    rows = [(path.parent.name, task) for path, task in files]
    if as_json:
        columns = ("task", "group", "suite", "target", "path")
        listed = [(task.id, task.group, suite, task.target, task.path) for suite, task in rows]
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in listed], indent=1))
    else:
        open_console().print(tasks_table(rows))


def show_models() -> None:
    """List the models and their keys' state."""
    from opsmith.models.table import list_models
    from opsmith.report.tables import models_table, open_console

    open_console().print(models_table(list_models()))


def show_runs(
    out: Out = Path("runs"),
    url: StoreUrl = None,
    as_json: AsJson = False,
    unwanted: Annotated[
        str | None, typer.Option("--delete", metavar="RUN", help="Delete that run and all that is its own; asks first.")
    ] = None,
    is_sure: Annotated[bool, typer.Option("--yes", help="With --delete: do not ask.")] = False,
) -> None:
    """List the runs of a store, or delete one."""
    from opsmith.records import printable, to_json
    from opsmith.report.run_gains import summarise_gains
    from opsmith.report.speed_rows import summarise_runs
    from opsmith.report.tables import open_console, runs_table

    if is_sure and unwanted is None:
        raise UsageError("--yes: given without --delete; expected a run to delete; try: opsmith runs --delete RUN")
    with open_store(out, url) as store:
        if unwanted is not None:
            run = delete_run(store, unwanted, is_sure)
            print(json.dumps({"deleted": run}) if as_json else f"deleted {printable(run)}")
            return
        summaries = store.list_runs()
        if as_json:
            print(json.dumps([{"run": summary.info.id, **to_json(summary)} for summary in summaries]))
        else:
            open_console().print(runs_table(summaries, summarise_runs(store), summarise_gains(store)))
