"""`opsmith bench`: measurements, each a command; never a timed test."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import os
from typing import Annotated

import typer

from opsmith.cli.mutating import mutation
from opsmith.cli.options import AsJson, TrustTasks

bench = typer.Typer(
    help="Measure verdicts, runs, pages and stores.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    app.add_typer(bench, name="bench")


@bench.callback()
def _bench() -> None:
    """Measure verdicts, runs, pages and stores: how long they take, whether they can be fooled."""


@bench.command()
def verify(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK...]", help="Default: the 26 tasks.")] = None,
    batch: Annotated[int, typer.Option(min=0, help="Random candidates of the embedded model per task.")] = 64,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time verdicts in warm workers.

    On one core a row per task: its own program, programs that lack a line of it, and random candidates; then the
    medians. Times are divided by those of the PyTorch reference and of Python's parser, measured beside them. Last,
    full verdicts per second with one worker and with one per core.
    """
    from opsmith.benchmarks import load_tasks
    from opsmith.models.sampling import programs
    from opsmith.report.tables import bench_table, output
    from opsmith.verification.bench import summary
    from opsmith.verification.pool import Pool
    from opsmith.verification.throughput import throughput

    solved = [task for task in load_tasks(tuple(tasks or ())) if task.impl]
    drawn = {task.id: programs(task, batch) for task in solved}
    batches = [(task, drawn[task.id]) for task in solved if drawn[task.id]]
    with Pool(1, trust_tasks=trust_tasks) as pool:
        rows = {task.id: pool.timings(task, task.impl or "", drawn[task.id]) for task in solved}
    speeds: dict[int, float] = {}
    for workers in (1, os.cpu_count() or 1) if batches else ():
        with Pool(workers, trust_tasks=trust_tasks) as pool:
            speeds[workers] = throughput(pool, batches)
    totals = {**summary(rows), "verdicts_per_second": speeds}
    if as_json:
        print(json.dumps({"summary": totals, "tasks": rows}))
    else:
        output().print(bench_table(rows, totals))


@bench.command()
def ui(
    samples: Annotated[int, typer.Option(min=1, help="In the store.")] = 100_000,
    times: Annotated[int, typer.Option(min=1, help="Each page is asked for.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Time the pages of `opsmith ui`.

    A temporary store is filled with one run, then each page is asked for over HTTP while 50 samples a second go on
    coming.
    """
    import sys
    import tempfile
    from dataclasses import asdict

    from opsmith.cli.serving import needs_extra
    from opsmith.report.tables import output, records_table
    from opsmith.store import Store

    with needs_extra():
        from opsmith.ui.bench import time_pages

    with tempfile.TemporaryDirectory(prefix="opsmith-") as folder, Store.open(folder) as store:
        found = time_pages(store, samples, times, lambda text: print(text, file=sys.stderr))
    if as_json:
        print(json.dumps([asdict(row) for row in found]))
    else:
        output().print(records_table([asdict(row) for row in found], "milliseconds"))


@bench.command()
def run(
    requests: Annotated[int, typer.Option(min=1, help="About as many, the same number for each task.")] = 5000,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 64,
    latency: Annotated[float, typer.Option(min=0.0, metavar="S", help="Of the server on loopback.")] = 0.2,
    tasks: Annotated[str, typer.Option(metavar="IDS|DIR")] = "",
    as_json: AsJson = False,
) -> None:
    """Time one round against a model server on loopback.

    The client's processor time has verdicts and the store in it, the server's not.
    """
    from opsmith.benchmarks import load_tasks
    from opsmith.learn.overhead import measure
    from opsmith.report.tables import output, overhead_table

    found = measure(load_tasks(tuple(filter(None, tasks.split(",")))), requests, concurrency, latency)
    if as_json:
        print(json.dumps(found))
    else:
        output().print(overhead_table(found))


@bench.command()
def store(
    samples: Annotated[
        list[int] | None, typer.Option(min=200, help="In a store; give several. Default: 1,000 and 10,000.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Over which they are spread; the last is asked for.")] = 1,
    times: Annotated[int, typer.Option(min=1, help="Each question is asked, unless it takes long.")] = 5,
    url: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="A PostgreSQL server, in a temporary database; default: SQLite."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Time what is asked of stores of several sizes.

    Temporary stores are filled with what a run would leave, then every question of the program is asked in a process of
    its own, and every page of `opsmith ui` over HTTP. A million samples take some 5 GB and half an hour.
    """
    import sys
    from dataclasses import asdict

    from opsmith.cli.serving import needs_extra
    from opsmith.report.tables import output

    with needs_extra():
        from opsmith.growth.measure import measure
    from opsmith.growth.table import growth_tables

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    found = [measure(size, runs, times, say, url) for size in samples or (1000, 10_000)]
    if as_json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        output().print(*growth_tables(found))


bench.command()(mutation)
