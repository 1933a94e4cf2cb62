"""`opsmith export` and `reverify`: take a run's results away; judge them again."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, JudgingOptions, RunName, StorePlace
from opsmith.cli.progress import show_progress
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.export.choice import ProgramChoice
    from opsmith.export.exported import ExportedFiles
    from opsmith.judging.pool import Pool
    from opsmith.store import Store


def add_to(app: CommandApp) -> None:
    app.add("export", export_run, has_tables=False)
    app.add("reverify", reverify_programs)


def export_run(  # noqa: PLR0913  (one parameter per option: that is how typer declares them)
    run: RunName,
    library: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write its operators there, as a Python package.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write its experiences there, as data for training.")
    ] = None,
    kernelbench: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write its kernels there, as `ModelNew` files of KernelBench.")
    ] = None,
    flashinfer: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write its kernels there, as solutions of FlashInfer Trace.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the package is imported as; default: its folder's name.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Take the right programs with the least time, cycles, on_chip_bytes or off_chip_bytes; default: "
            "the run's solutions, and of optimisation rounds what they showed to be better.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Data sets: every right reply, not one of each isomorphic group.")
    ] = False,
    *,
    place: StorePlace,
    judging: JudgingOptions,
    as_json: AsJson = False,
) -> None:
    """Take a run's operators or experiences away.

    Exit code 0: all is there; 1: operators were left out that the verifier of today does not pass.
    """
    options = {"library": library, "dataset": dataset, "kernelbench": kernelbench, "flashinfer": flashinfer}
    folders = {option: folder for option, folder in options.items() if folder is not None}
    if len(folders) != 1:
        raise UsageError("export: expected one of --library DIR, --dataset DIR, --kernelbench DIR and --flashinfer DIR")
    if name is not None and library is None:
        raise UsageError("export: --name belongs to --library")
    if objective is not None and dataset is not None:
        raise UsageError("export: --objective chooses programs, of which --dataset takes all; try: without it")
    if every and dataset is None:
        raise UsageError("export: --all belongs to --dataset")
    with place.open() as store:
        if dataset is not None:
            _export_dataset(store, run, dataset, every, as_json)
            return
        settings = store.summarise_run(store.find_run(run)).info.settings
        choices = _choose_programs(store, run, objective, judging.trust_tasks) if objective is not None else {}
        pool_of_run = judging.make_pool(settings)
        with pool_of_run as pool, show_progress("what is taken away is judged first"):
            own = pool.with_secret(store.read_secret(store.find_run(run)))
            written = _export_programs(store, run, folders, name, own, choices)
        raise typer.Exit(_print_export(*written, as_json))


def _choose_programs(store: Store, name: str, objective: str, trust_tasks: bool) -> dict[str, ProgramChoice]:
    """By task. Costs that are not counted yet are; times are those that are stored, of the full grade."""
    from opsmith.cli.fronts import complete_figures, load_common_tasks
    from opsmith.export.choice import choose_programs
    from opsmith.measuring.objectives import list_objectives, require_figures
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.records import TIME

    run = store.find_run(name)
    own = load_common_tasks(store, [run])
    require_figures(own[0], (objective,))
    if objective != TIME.name:
        costs = [offer for offer in list_objectives(own[0]) if offer.is_counted]
        complete_figures(store, run, own, costs, MeasuringGrade.SCREEN, trust_tasks)
    return choose_programs(store, run, own, objective)


def _export_programs(
    store: Store,
    run: str,
    folders: Mapping[str, Path],
    name: str | None,
    pool: Pool,
    choices: Mapping[str, ProgramChoice],
) -> tuple[ExportedFiles, Iterable[str]]:
    """What was written to the one folder, by its option, and what is said of it."""
    from opsmith.export.shown import exported_lines, list_module_lines, list_trace_lines

    [(form, folder)] = folders.items()
    if form == "library":
        from opsmith.export.library import export_library

        package = export_library(store, run, folder, name, pool, choices)
        return package, exported_lines(package)
    if form == "kernelbench":
        from opsmith.export.torch_modules import export_torch_modules

        modules = export_torch_modules(store, run, folder, pool, choices)
        return modules, list_module_lines(modules)
    from opsmith.export.flashinfer import export_traces

    traces = export_traces(store, run, folder, pool, choices)
    return traces, list_trace_lines(traces)


def _print_export(exported: ExportedFiles, lines: Iterable[str], as_json: bool) -> int:
    """Returns the exit code: 1 where something of the run's is not right by today's verifier."""
    from opsmith.report.tables import open_console

    if as_json:
        print(json.dumps(exported.as_json(), indent=1))
    else:
        open_console().print(*lines, sep="\n")
    return 1 if exported.refused else 0


def _export_dataset(store: Store, run: str, folder: Path, every: bool, as_json: bool) -> None:
    from opsmith.export.dataset import export_dataset

    with show_progress("replies are read"):
        exported = export_dataset(store, run, folder, every)
    if as_json:
        print(json.dumps(exported.as_json(), indent=1))
    else:
        for kind, splits in exported.rows.items():
            print(f"{folder}: {kind}: {', '.join(f'{split} {count}' for split, count in splits.items())}")


def reverify_programs(
    run: RunName,
    *,
    place: StorePlace,
    judging: JudgingOptions,
    as_json: AsJson = False,
) -> None:
    """Judge a run's programs again, by the verifier of today.

    The earlier verdicts stay; the new ones are kept beside them, and a second call judges only what is missing.
    Exit code 0: every kept solution passes; 1: one does not; 2: something could not be judged.
    """
    from opsmith.export.reverify import as_json as json_of
    from opsmith.export.reverify import reverify_run as judge_again
    from opsmith.export.shown import reverified_parts
    from opsmith.report.tables import open_console

    with place.open() as store:
        settings = store.summarise_run(store.find_run(run)).info.settings
        with (
            judging.make_pool(settings) as pool,
            show_progress("programs are judged again") as tell,
        ):
            own = pool.with_secret(store.read_secret(store.find_run(run)))
            result = judge_again(store, run, own.verify_all, tell)
    if as_json:
        print(json.dumps(json_of(result), indent=1))
    else:
        open_console().print(*reverified_parts(result), sep="\n")
    raise typer.Exit(result.exit_code)
