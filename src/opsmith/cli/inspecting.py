"""`opsmith tasks`, `models`, `runs` and `show`: what there is."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.deleting import delete_run
from opsmith.cli.options import AsJson, Out, StoreUrl, TargetName, TargetOptions, open_store, read_target_options
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.store.notes import Remarks
    from opsmith.store.queries import RunSummary


def add_to(app: typer.Typer) -> None:
    app.command(name="tasks")(show_tasks)
    app.command(name="models")(show_models)
    app.command(name="runs")(show_runs)
    app.command(name="show")(show_run)


def show_tasks(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TASK|DIR...]", help="Default: all bundled.")] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the bundled tasks.

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
    tags: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Those that have it; archived: the hidden ones.")
    ] = None,
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
    from opsmith.store.notes import NO_REMARKS, has_tags

    if is_sure and unwanted is None:
        raise UsageError("--yes: given without --delete; expected a run to delete; try: opsmith runs --delete RUN")
    with open_store(out, url) as store:
        if unwanted is not None:
            run = delete_run(store, unwanted, is_sure)
            print(json.dumps({"deleted": run}) if as_json else f"deleted {printable(run)}")
            return
        every, remarks = store.list_runs(), store.list_remarks()
        summaries = [run for run in every if has_tags(remarks.get(run.info.id, NO_REMARKS), tags or ())]
        if as_json:
            print(
                json.dumps([{"run": run.info.id, **to_json(run), **_tell_remarks(remarks, run)} for run in summaries])
            )
            return
        open_console().print(runs_table(summaries, summarise_runs(store), summarise_gains(store), remarks))
        if archived := sum(remark.is_archived for remark in remarks.values()) if not tags else 0:
            print(f"archived, not listed: {archived}; opsmith runs --tag archived", file=sys.stderr)


def _tell_remarks(remarks: Mapping[str, Remarks], run: RunSummary) -> dict[str, Any]:
    """What is said of a run, for a script."""
    remark = remarks.get(run.info.id)
    return {"note": remark.text if remark else "", "tags": list(remark.all_tags) if remark else []}


def show_run(
    run: Annotated[str, typer.Argument(help="A run's id, or the beginning of it.")],
    sample: Annotated[str | None, typer.Argument(help="A sample's id, or a task's to list its samples.")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
) -> None:
    """Show a run or a sample.

    A run: rounds, solutions and the closing table. A sample: prompt, reply, candidates and verdicts. Of optimisation
    rounds: gains and timelines; a sample's suggestion, profiles and changes.
    """
    from opsmith.report import closing
    from opsmith.report.attempts import find_task
    from opsmith.report.by_model import print_models
    from opsmith.report.conversations import print_tool_use
    from opsmith.report.optimised_tables import list_improvement, print_optimisation
    from opsmith.report.plan_tables import print_plans
    from opsmith.report.speed_rows import choose_kept, choose_own
    from opsmith.report.speeds import print_speeds
    from opsmith.report.tables import open_console
    from opsmith.results.result import result_of

    console = open_console()
    with open_store(out, url) as store:
        run = store.find_run(run)
        if sample is None:
            result, solutions = result_of(store, run), store.read_experiences(run)
            console.print(closing.rounds_table(result), closing.solutions_table(solutions))
            print_speeds(console, choose_kept(store.read_speeds(run), solutions))
            print_plans(console, store, run)
            print_models(console, store, run)
            print_tool_use(console, store, run)
            print_optimisation(console, store, run)
            console.print(closing.closing_table(result), *closing.closing_lines(result), sep="\n")
        elif sample in {task.id for task in (*store.read_tasks(run), *store.read_children(run))}:
            print_plans(console, store, run, sample)
            console.print(closing.samples_table(store.list_samples(run, sample)))
            print_speeds(console, store.read_speeds(run, sample))
            print_optimisation(console, store, run, sample)
        else:
            detail = store.find_sample(run, sample)
            used = store.read_tool_calls([detail.row.id]).get(detail.row.id, ())
            texts = closing.sample_text(detail, find_task(store, run, detail.row.task), used)
            console.print(*texts, sep="\n", soft_wrap=True)
            for text in list_improvement(store, run, detail):
                console.print(text, soft_wrap=True)
            print_speeds(console, choose_own(store.read_speeds(run, detail.row.task), detail))
