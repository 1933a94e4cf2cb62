"""`opsmith library`: a library is updated, and judged again."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, JudgingOptions, StorePlace
from opsmith.cli.progress import show_progress
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.export.library_check import LibraryCheck
    from opsmith.export.living import LibraryTools
    from opsmith.judging.pool import Pool
    from opsmith.records import Task

ACTIONS = ("update", "verify")


def add_to(app: CommandApp) -> None:
    app.add("library", live_on)


def live_on(  # noqa: PLR0913  (one parameter per option: that is how typer declares them)
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `export --library` wrote.")],
    action: Annotated[str, typer.Argument(metavar="update|verify", help="What is done.")],
    source: Annotated[str | None, typer.Argument(metavar="RUN|DIR", help="Update: a run, or another library.")] = None,
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Verify: figures of before; default: DIR/baseline.json.")
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Verify: today's figures are the baseline from now on.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(metavar="FILE.xml", help="Verify: write the results as JUnit.")] = None,
    waits: Annotated[bool, typer.Option("--wait/--no-wait", help="Update: wait while somebody else writes it.")] = True,
    target: Annotated[
        str | None, typer.Option(metavar="FILE.toml", help="Where the language file of the library lies today.")
    ] = None,
    *,
    place: StorePlace,
    judging: JudgingOptions,
    as_json: AsJson = False,
) -> None:
    """Keep a library alive: update it, judge it again.

    Exit code of update: 0, or 1 where something offered is not right, or another problem of that name. Of verify: 0:
    all is right and as fast as the baseline; 1: something broke or became slower; 2: something could not be judged.
    """
    if action not in ACTIONS:
        raise UsageError(f"library: given {action!r}; expected one of {', '.join(ACTIONS)}")
    if (action == "update") != (source is not None):
        raise UsageError(
            f"library {folder} {action}: expected {'RUN or DIR behind it' if source is None else 'nothing'}"
        )
    if action == "verify":
        with use_tools(judging) as (tools, tell):
            check = verify_folder(folder, tools, tell, target, baseline, accept)
        raise typer.Exit(_say_check(check, junit, as_json))
    assert source is not None
    opened = use_tools(judging)
    raise typer.Exit(_update_folder(folder, source, opened, place, target, waits, as_json))


def _update_folder(
    folder: Path,
    source: str,
    opened: AbstractContextManager[tuple[LibraryTools, Callable[[str], None]]],
    place: StorePlace,
    target: str | None,
    waits: bool,
    as_json: bool,
) -> int:
    """The exit code."""
    from opsmith.export.living import list_offered, read_living, update_library
    from opsmith.export.solved import operators_of
    from opsmith.report.tables import open_console

    with opened as (tools, tell):
        if (Path(source) / "manifest.json").is_file():
            offered = list(list_offered(read_living(Path(source), target), tools))
        else:
            with place.open() as store:
                run = store.find_run(source)
                offered = operators_of(store, run, tools.pool.with_secret(store.read_secret(run)))
        updated = update_library(folder, offered, tools, tell, target, waits)
    if as_json:
        print(json.dumps(updated.as_json(), indent=1))
    else:
        console = open_console()
        for update in updated.updates:
            console.print(
                f"{update.what}: {update.function} ({update.task}): {update.why}".removesuffix(": "), markup=False
            )
        if not updated.is_changed:
            console.print(f"{folder}: as it was", markup=False)
        if lack := updated.explain_outdated():
            console.print(lack, markup=False, soft_wrap=True)
    return int(any(update.what == "refused" for update in updated.updates))


@contextmanager
def use_tools(judging: JudgingOptions) -> Iterator[tuple[LibraryTools, Callable[[str], None]]]:
    """What judges and measures, and what hears how far it is."""
    from opsmith.export.living import LibraryTools
    from opsmith.measuring.loop import TimingRoom
    from opsmith.remote.filling import fill_order

    pool: Pool
    with (
        judging.make_pool() as pool,
        TimingRoom() as room,
        show_progress("programs are judged and measured") as tell,
    ):
        yield LibraryTools(pool, partial(fill_order, pool=pool, room=room)), tell


def verify_folder(
    folder: Path,
    tools: LibraryTools,
    tell: Callable[[str], None],
    target: str | None = None,
    baseline: Path | None = None,
    is_accepted: bool = False,
) -> LibraryCheck:
    from opsmith.export.folder import BASELINE
    from opsmith.export.library_check import check_library
    from opsmith.export.living import read_living

    return check_library(read_living(folder, target), tools, baseline or folder / BASELINE, is_accepted, tell)


def narrow_to_library(
    folder: Path, tasks: Sequence[Task], trust_tasks: bool
) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """The tasks that a library has no operator of, or one that is broken or slower, and what they are called. Says
    which. Raises UsageError for a task that is another problem than the library's of that name."""
    from opsmith.export.folder import BASELINE
    from opsmith.export.library_check import check_library, list_reusable
    from opsmith.export.living import read_living
    from opsmith.results.problems import digest_problems

    library, names = read_living(folder, tasks[0].target if tasks else None), {task.id for task in tasks}
    library = replace(library, operators=[each for each in library.operators if each.task.id in names])
    own = {operator.task.id: operator.problem for operator in library.operators}
    problems = digest_problems(tasks)
    for task in tasks:
        if task.id in own and own[task.id] != problems.get(task.id):
            what = f"task {task.id}: given problem {problems.get(task.id)}; the library {folder} has {own[task.id]}"
            raise UsageError(f"{what}; expected the same under one name; try: another name")
    reused, states = list_reusable(library), {}
    if own:
        with use_tools(JudgingOptions(trust_tasks=trust_tasks)) as (tools, tell):
            checks = check_library(library, tools, folder / BASELINE, False, tell, reused).checks
        states = {check.operator.task.id: check.state for check in checks}
    asked = {task.id: state for task in tasks if (state := states.get(task.id, "missing")) not in ("right", "unjudged")}
    words = ", ".join(f"{name} ({state})" for name, state in asked.items())
    print(f"opsmith: for the library {folder}: {words or 'nothing is missing, broken or slower'}", file=sys.stderr)
    if reused:
        why = "its verdicts, not judged again, where verifier, tools, problem and program are as they were"
        print(f"opsmith: {why}: {', '.join(reused)}", file=sys.stderr)
    chosen = tuple(task for task in tasks if task.id in asked)
    return chosen, tuple(map(_name_task, chosen))


def _name_task(task: Task) -> str:
    """Its id where that means its file, else the file."""
    from opsmith.suites import find_files

    try:
        paths = find_files((task.id,))
    except UsageError:
        return task.path
    return task.id if [str(path) for path in paths] == [task.path] else task.path


def _say_check(check: LibraryCheck, junit: Path | None, as_json: bool) -> int:
    """The exit code."""
    from opsmith.report.tables import open_console

    if junit is not None:
        check.write_junit(junit)
    if as_json:
        print(json.dumps(check.as_json(), indent=1))
    else:
        console = open_console()
        for line in check.list_lines():
            console.print(line, markup=False, soft_wrap=True)
        if not check.has_baseline and check.objective:
            console.print("no baseline was there: today's figures are it", markup=False)
    return check.exit_code
