"""`opsmith import`: problems of others as problem files."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, TrustTasks
from opsmith.cli.progress import show_progress

if TYPE_CHECKING:
    from opsmith.imports.outcomes import ImportRow

importing = CommandApp(help="Turn problems of others into problem files.")
Place = Annotated[Path, typer.Argument(metavar="DIR|FILE")]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the problem files.")]
MaxBytes = Annotated[
    str, typer.Option("--max-bytes", metavar="N", help="Bytes of all tensors at the base sizes, such as 8MB.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files of that name that differ.")]


def add_to(app: CommandApp) -> None:
    app.add_typer(importing, name="import")


@importing.callback()
def _describe_import() -> None:
    """Turn problems of others into problem files, which every language of Opsmith can be asked for."""


def import_flashinfer(
    place: Place,
    out: OutFolder,
    max_bytes: MaxBytes = "8MB",
    force: Force = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Import definitions of FlashInfer Trace.

    Sizes are those of their workloads. DIR is laid out as the data set is (definitions/, workloads/), or holds
    definitions. A row per file. Exit code 0: at least one was imported; 1: none was.
    """
    from opsmith.imports.flashinfer.folder import import_definitions
    from opsmith.imports.outcomes import read_bytes
    from opsmith.imports.worker import ImportWorkers
    from opsmith.imports.writing import ProblemFolder

    most_bytes, folder, start = read_bytes(max_bytes), ProblemFolder(out, force), time.monotonic()
    with show_progress("files are looked for") as tell, ImportWorkers(trust_tasks) as workers:
        rows = tuple(import_definitions(place, folder, workers, most_bytes, tell))
    _print_report(rows, time.monotonic() - start, as_json)


def import_kernelbench(
    place: Place,
    out: OutFolder,
    max_bytes: MaxBytes = "8MB",
    max_flops: Annotated[
        float,
        typer.Option("--max-flops", metavar="N", help="Operations of one call at the largest sizes, such as 4e8."),
    ] = 4e8,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="That one file may take.")] = 60.0,
    force: Force = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Import KernelBench's files.

    A file holds a class Model, get_inputs and get_init_inputs. Its code runs in confined processes only. Sizes are
    halved until the largest set fits the limits. A row per file. Exit code 0: at least one was imported; 1: none was.
    """
    from opsmith.imports.kernelbench.folder import ANALYSES, ModuleLimits, import_modules
    from opsmith.imports.outcomes import read_bytes
    from opsmith.imports.worker import ImportWorkers
    from opsmith.imports.writing import ProblemFolder

    limits = ModuleLimits(read_bytes(max_bytes), int(max_flops), seconds)
    folder, start = ProblemFolder(out, force), time.monotonic()
    with show_progress("files are looked for") as tell, ImportWorkers(trust_tasks, ANALYSES) as workers:
        rows = tuple(import_modules(place, folder, workers, limits, tell))
    _print_report(rows, time.monotonic() - start, as_json)


def _print_report(rows: Sequence[ImportRow], seconds: float, as_json: bool) -> None:
    """When all processes have ended, so that their memory is known. Raises typer.Exit."""
    from opsmith.imports.outcomes import ImportReport, measure_peak

    report = ImportReport(rows, seconds, measure_peak())
    if as_json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        from opsmith.report.imports import import_parts
        from opsmith.report.tables import open_console

        open_console().print(*import_parts(report), sep="\n", soft_wrap=True)
    raise typer.Exit(0 if report.imported else 1)


importing.add("flashinfer", import_flashinfer)
importing.add("kernelbench", import_kernelbench)
