"""`opsmith tasks`, `models` and `runs`: what there is."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.deleting import delete_run
from opsmith.cli.options import AsJson, StorePlace, TargetName, TargetOptions, read_target_options
from opsmith.cli.text import read_text
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.records import Task
    from opsmith.store import Store
    from opsmith.store.notes import Remarks
    from opsmith.store.queries import RunSummary

_SECTIONS = ("dims", "global", "inputs", "fns", "outputs", "reference")  # of a task file, that say what is asked
_NAMES = frozenset({"test_name", "problem", "group", "target"})


def add_to(app: CommandApp) -> None:
    app.add("tasks", show_tasks)
    app.add("models", show_models)
    app.add("runs", show_runs)


def show_tasks(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="TASK|DIR", help="What to list; default: all that are bundled.")
    ] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    as_json: AsJson = False,
) -> None:
    """List the bundled tasks, or show one.

    Of one task: what it is, inputs, functions, outputs and reference, as its file has them.
    A problem states no language: --target says in which one it is asked for.
    """
    from opsmith.report.tables import open_console, tasks_table
    from opsmith.suites import SUITES, find_files, list_program_languages, read_task_files
    from opsmith.suites.description import describe_text

    options = read_target_options(option)
    chosen = names or SUITES
    files = read_task_files(chosen, find_files(chosen), target, options)
    rows = [
        (path.absolute().parent.name, task, describe_text(read_text(path)), list_program_languages(task))
        for path, task in files
    ]
    if as_json:
        columns = ("task", "group", "suite", "target", "path", "what", "programs")
        listed = [(task.id, task.group, suite, task.target, task.path, *more) for suite, task, *more in rows]
        print(json.dumps([dict(zip(columns, row, strict=True)) for row in listed], indent=1))
    elif names is not None and len(names) == len(files) == 1 and names[0] not in SUITES:
        _print_task(*rows[0], read_text(files[0][0]))
    else:
        open_console().print(tasks_table(rows))


def _print_task(suite: str, task: Task, what: str, programs: Sequence[str], text: str) -> None:
    from opsmith.records import printable
    from opsmith.suites.description import split_sections
    from opsmith.targets.problem import EXAMPLE, explain_lack_of_language

    sections = split_sections(text)
    print(printable(f"{task.id}: {what}"))
    print(printable(f"suite {suite}, group {task.group}, target {task.target}"))
    print(printable(f"programs of its own: {', '.join(programs) or 'none'}"))
    print(printable(f"file    {task.path}"))
    for name in (name for name in _SECTIONS if name in sections):
        print(f"\n{printable(sections[name], keep=chr(10))}")
    others = [name for name in sections if name not in _SECTIONS and name not in _NAMES]
    if others:
        print(f"\nalso in the file: {', '.join(others)}")
    language = f" --target {(*programs, EXAMPLE)[0]}" if explain_lack_of_language(task) else ""
    print(printable(f"what a model is sent: opsmith prompt {task.id}{language}"))


def show_models(as_json: AsJson = False) -> None:
    """List the models and their keys' state."""
    from opsmith.models.table import list_models
    from opsmith.records import to_json
    from opsmith.report.tables import models_table, open_console

    if as_json:
        print(json.dumps([to_json(model) for model in list_models()], indent=1))
    else:
        open_console().print(models_table(list_models()))


def show_runs(
    *,
    place: StorePlace,
    as_json: AsJson = False,
    tags: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Only runs that have this tag; archived: the hidden ones."),
    ] = None,
    unwanted: Annotated[
        str | None, typer.Option("--delete", metavar="RUN", help="Delete that run and all that is its own; asks first.")
    ] = None,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask before --delete.")] = False,
) -> None:
    """List the runs of a store, or delete one."""
    from opsmith.records import printable, to_json
    from opsmith.report.speeds import summarise_runs
    from opsmith.report.tables import open_console, runs_table
    from opsmith.results.settings_apart import find_single
    from opsmith.store.notes import NO_REMARKS, has_tags

    if is_sure and unwanted is None:
        raise UsageError("--yes: given without --delete; expected a run to delete; try: opsmith runs --delete RUN")
    with place.open() as store:
        if unwanted is not None:
            run = delete_run(store, unwanted, is_sure)
            print(json.dumps({"deleted": run}) if as_json else f"deleted {printable(run)}")
            return
        every, remarks = store.list_runs(), store.list_remarks()
        summaries = [run for run in every if has_tags(remarks.get(run.info.id, NO_REMARKS), tags or ())]
        singles = find_single(run.info for run in summaries)
        if as_json:
            rows = [{"run": run.info.id, **to_json(run), **_tell_remarks(remarks, run)} for run in summaries]
            for row in rows:
                if (single := singles.get(row["run"])) is not None:
                    row["differs"] = {"from": single.other.id, "setting": single.setting, "values": single.values}
            print(json.dumps(rows))
            return
        if summaries or not every:
            gains = _summarise_gains(store)
            open_console().print(runs_table(summaries, summarise_runs(store), gains, remarks, singles))
        elif tags:
            print(f"no run has the tag {printable(' and '.join(tags))}", file=sys.stderr)
        if archived := sum(remark.is_archived for remark in remarks.values()) if not tags else 0:
            print(f"archived, not listed: {archived}; opsmith runs --tag archived", file=sys.stderr)


def _summarise_gains(store: Store) -> dict[str, str]:
    """By run; most stores hold no optimisation, and load nothing of it."""
    if not store.list_optimised_runs():
        return {}
    from opsmith.report.optimised import summarise_gains

    return summarise_gains(store)


def _tell_remarks(remarks: Mapping[str, Remarks], run: RunSummary) -> dict[str, Any]:
    """What is said of a run, for a script."""
    remark = remarks.get(run.info.id)
    return {"note": remark.text if remark else "", "tags": list(remark.all_tags) if remark else []}
