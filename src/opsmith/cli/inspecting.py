"""`opsmith tasks`, `models`, `runs` and `show`: what there is."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson, Out, StoreUrl, open_store


def add_to(app: typer.Typer) -> None:
    for command in (tasks, models, runs, show):
        app.command()(command)


def tasks(as_json: AsJson = False) -> None:
    """List the bundled tasks."""
    from opsmith.benchmarks import SUITES, load_tasks
    from opsmith.report.tables import output, tasks_table

    suites = {suite: load_tasks([suite]) for suite in SUITES}
    if as_json:
        rows = [
            {"task": task.id, "group": task.group, "suite": suite, "target": task.target, "path": task.path}
            for suite, found in suites.items()
            for task in found
        ]
        print(json.dumps(rows, indent=1))
    else:
        output().print(tasks_table(suites))


def models() -> None:
    """List the models and their keys' state."""
    from opsmith.models.table import list_models
    from opsmith.report.tables import models_table, output

    output().print(models_table(list_models()))


def runs(out: Out = Path("runs"), url: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the runs of a store."""
    from opsmith.records import to_json
    from opsmith.report.tables import output, runs_table

    with open_store(out, url) as store:
        found = store.runs()
    if as_json:
        print(json.dumps([{"run": summary.info.id, **to_json(summary)} for summary in found]))
    else:
        output().print(runs_table(found))


def show(
    run: Annotated[str, typer.Argument(help="A run's id, or the beginning of it.")],
    sample: Annotated[str | None, typer.Argument(help="A sample's id, or a task's to list its samples.")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
) -> None:
    """Show a run or a sample.

    A run: rounds, solutions and the closing table. A sample: prompt, reply, candidates and verdicts.
    """
    from opsmith.learn.result import result_of
    from opsmith.report import closing
    from opsmith.report.tables import output

    console = output()
    with open_store(out, url) as store:
        run = store.find_run(run)
        if sample is None:
            result = result_of(store, run)
            console.print(closing.rounds_table(result), closing.solutions_table(store.experiences(run)))
            console.print(closing.closing_table(result), *closing.closing_lines(result), sep="\n")
        elif sample in {task.id for task in store.tasks(run)}:
            console.print(closing.samples_table(store.samples(run, sample)))
        else:
            console.print(*closing.sample_text(store.sample(run, sample)), sep="\n", soft_wrap=True)
