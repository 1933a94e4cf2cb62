"""`opsmith bench`: measurements, each a command; never a timed test."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

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
from opsmith.cli.progress import show_progress
from opsmith.errors import UsageError
from opsmith_lab.cli.attacking import bench_attack
from opsmith_lab.cli.mutating import bench_mutation
from opsmith_lab.cli.optimising_bench import bench_optimise
from opsmith_lab.cli.printing import KernelTasks, Markdown, StepTasks, name_command, print_figures
from opsmith_lab.cli.schedules_bench import bench_schedules

bench = CommandApp(help="Measure verdicts, runs, pages and stores.")


def add_to(app: CommandApp) -> None:
    app.add_typer(bench, name="bench")


@bench.callback()
def _describe_bench() -> None:
    """Measure verdicts, runs, pages and stores: how long they take, whether they can be fooled."""


def bench_verdicts(
    tasks: StepTasks = None,
    batch: Annotated[int, typer.Option(min=0, help="Random candidates of the embedded model per task.")] = 64,
    candidate_seconds: CandidateSeconds = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time verdicts in warm workers.

    On one core a row per task: its own program, programs that lack a line of it, and random candidates; then the
    medians. Times are divided by those of the PyTorch reference and of Python's parser, measured beside them. Last,
    full verdicts per second with one worker and with one per core.
    """
    from opsmith.judging.timings import summarise_timings
    from opsmith.suites import load_tasks
    from opsmith_lab.bench.throughput import measure_throughput
    from opsmith_lab.bench.verdict_tables import bench_table
    from opsmith_lab.models.sampling import sample_programs

    solved = [task for task in load_tasks(tuple(tasks or ())) if task.impl]
    if not solved:
        raise UsageError("bench verify: none of these tasks has an impl of its own; expected at least one")
    drawn, rows, speeds = {}, {}, {}
    with show_progress("programs are drawn") as tell:
        for count, task in enumerate(solved, 1):
            tell(f"{task.id}: programs are drawn, {count} of {len(solved)}")
            drawn[task.id] = sample_programs(task, batch)
        batches = [(task, drawn[task.id]) for task in solved if drawn[task.id]]
        with make_pool(1, trust_tasks, candidate_seconds) as pool:
            for count, task in enumerate(solved, 1):
                tell(f"{task.id}: verdicts are timed, {count} of {len(solved)}")
                rows[task.id] = pool.timings(task, task.impl or "", drawn[task.id])
        for workers in (1, os.cpu_count() or 1) if batches else ():
            tell(f"verdicts of all tasks together, workers: {workers}")
            with make_pool(workers, trust_tasks, candidate_seconds) as pool:
                speeds[workers] = measure_throughput(pool, batches)
    totals = {**summarise_timings(rows), "verdicts_per_second": speeds}
    print_figures(as_json, {"summary": totals, "tasks": rows}, bench_table(rows, totals))


def bench_native(
    tasks: KernelTasks = None,
    target: TargetName = "c",
    target_options: TargetOptions = None,
    times: Annotated[int, typer.Option(min=1, help="Verdicts of each kind per task.")] = 10,
    batch: Annotated[int, typer.Option(min=0, help="Candidates judged together; 0: none.")] = 64,
    workers: Annotated[int, typer.Option(min=1, help="For the batch.")] = os.cpu_count() or 1,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time verdicts on compiled candidates.

    A row per task: a verdict on a candidate that must be built, on one whose build is kept, both in a warm worker; and
    a batch. Candidates are the task's own program with a constant that makes each another one, so all of them pass.
    """
    from dataclasses import asdict

    from opsmith.report.tables import records_table
    from opsmith.suites import load_tasks
    from opsmith_lab.bench.native import measure_native, summarise_native

    chosen = load_tasks(tuple(tasks or ("kernels",)), target, read_target_options(target_options))
    with show_progress("verdicts are timed") as tell:
        rows = measure_native(chosen, lambda size: make_pool(size, trust_tasks), times, batch, workers, tell)
    totals = summarise_native(rows)
    records = [asdict(row) for row in rows]
    tables = records_table(records, "verdicts"), records_table([totals], "all tasks")
    print_figures(as_json, {"summary": totals, "tasks": records}, *tables)


def bench_measurements(
    times: Annotated[int, typer.Option(min=1, help="Each is measured.")] = 20,
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Not beside busy processes as well.")] = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Measure known ratios: how often is the interval right?

    A program beside itself, and beside copies that do 5 %, 20 % and 100 % more; quiet, and beside two busy processes.
    A row says how often the interval held the true ratio, and how far the worst figure lay from it.
    """
    from dataclasses import asdict

    from opsmith.report.tables import records_table
    from opsmith_lab.bench.speed import NEIGHBOURS, measure_accuracy

    loads = (0,) if is_quiet else (0, NEIGHBOURS)
    with show_progress("it is measured") as tell:
        accuracies = measure_accuracy(times, loads, lambda: make_pool(1, trust_tasks), tell)
        rows = [asdict(accuracy) for accuracy in accuracies]
    print_figures(as_json, rows, records_table(rows, "measurements of a known ratio"))


def bench_speeds(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    tasks: KernelTasks = None,
    programs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Programs to measure, each a file named as its task.")
    ] = None,
    is_full: Annotated[
        bool, typer.Option("--full/--screen", help="Several processes and two clocks, or a quick look.")
    ] = True,
    lines: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep rows here, and measure those no second time.")
    ] = None,
    markdown: Markdown = None,
    target: TargetName = "c",
    target_options: TargetOptions = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Time problems' own programs and yours beside torch.

    Beside torch eager and torch.compile. A row for each problem and shape set, with ratios to the problem's own
    program; then the geometric mean of your programs over the faster of eager and compile. Best on a quiet machine; the
    24 kernels take half an hour.
    """
    from opsmith.measuring.loop import TimingRoom
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.records import to_json
    from opsmith.suites import load_tasks
    from opsmith_lab.bench.kernel_speeds import SpeedTable
    from opsmith_lab.bench.kernel_table import describe_mean, list_missing, tabulate_kernels, write_markdown

    chosen = load_tasks(tuple(tasks or ("kernels",)), target, read_target_options(target_options))
    grade = MeasuringGrade.FULL if is_full else MeasuringGrade.SCREEN
    with (
        show_progress("speeds are measured") as tell,
        make_pool(1, trust_tasks) as pool,
        TimingRoom() as room,
    ):
        speeds = SpeedTable(room, pool.verify, grade, programs, lines).measure_tasks(chosen, tell)
    if markdown is not None:
        markdown.write_text(write_markdown(speeds, name_command()), encoding="utf-8")
    figures = {**to_json(speeds), "mean": to_json(speeds.mean), "count": speeds.count}
    print_figures(as_json, figures, tabulate_kernels(speeds), lines=(*list_missing(speeds), describe_mean(speeds)))


def bench_pages(
    samples: Annotated[int, typer.Option(min=1, help="In the store.")] = 100_000,
    times: Annotated[int, typer.Option(min=1, help="Each page is asked for.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Time the pages of `opsmith ui`.

    A temporary store is filled with one run, then each page is asked for over HTTP while 50 samples a second go on
    coming.
    """
    import tempfile
    from dataclasses import asdict

    from opsmith.cli.serving import needs_extra
    from opsmith.report.tables import records_table
    from opsmith.store import Store

    with needs_extra():
        from opsmith_lab.bench.pages import time_pages

    with (
        show_progress("a store is filled") as tell,
        tempfile.TemporaryDirectory(prefix="opsmith-") as folder,
        Store.open(folder) as store,
    ):
        times_of_pages = time_pages(store, samples, times, tell)
    rows = [asdict(row) for row in times_of_pages]
    print_figures(as_json, rows, records_table(rows, "milliseconds"))


def bench_run(
    requests: Annotated[int, typer.Option(min=1, help="About as many, the same number for each task.")] = 5000,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 64,
    latency: Annotated[float, typer.Option(min=0.0, metavar="S", help="Of the server on loopback.")] = 0.2,
    tasks: Annotated[str, typer.Option(metavar="IDS|DIR")] = "",
    as_json: AsJson = False,
) -> None:
    """Time one round against a model server on loopback.

    The client's processor time has verdicts and the store in it, the server's not.
    """
    from opsmith.suites import load_tasks
    from opsmith_lab.bench.overhead import measure_overhead
    from opsmith_lab.bench.verdict_tables import overhead_table

    chosen = load_tasks(tuple(filter(None, tasks.split(","))))
    with show_progress("answers are drawn") as tell:
        figures = measure_overhead(chosen, requests, concurrency, latency, tell)
    print_figures(as_json, figures, overhead_table(figures))


def bench_store(
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
    from dataclasses import asdict

    from opsmith.cli.serving import needs_extra

    with needs_extra():
        from opsmith_lab.bench.growth.measure import measure_growth
    from opsmith_lab.bench.growth.table import tabulate_growth

    with show_progress("a store is filled") as tell:
        sizes = [measure_growth(size, runs, times, tell, url) for size in samples or (1000, 10_000)]
    print_figures(as_json, [asdict(store_size) for store_size in sizes], *tabulate_growth(sizes))


def bench_languages(
    languages: Annotated[
        list[str] | None, typer.Argument(metavar="LANGUAGE", help="Default: all that are compiled.")
    ] = None,
    tasks: Annotated[str, typer.Option(metavar="IDS|DIR", help="Problems with a plain program.")] = "kernels",
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What --json printed elsewhere: its languages that are not judged here."),
    ] = None,
    markdown: Markdown = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Judge plain programs and mistakes, language by language.

    Builds and verdicts are timed; what each language cost is said. Exit code 1: one was not judged as it should be. All
    wrong programs, under several secrets: `opsmith bench attack`.
    """
    from opsmith.devices.describe import describe_device
    from opsmith.records import to_json
    from opsmith_lab.bench.language_table import list_notes, tabulate_languages, write_markdown
    from opsmith_lab.bench.languages import add_rows, choose_languages, measure_languages

    names = choose_languages(languages or ())
    with show_progress("programs are judged") as tell:
        problems = tuple(filter(None, tasks.split(",")))
        rows = list(measure_languages(names, problems, lambda: make_pool(1, trust_tasks), tell))
    rows = add_rows(rows, beside or ())
    device = describe_device()
    machine = f"{device.name or 'a processor without a name'}, {device.usable_cores or device.cores} cores"
    if markdown is not None:
        markdown.write_text(write_markdown(rows, name_command(), machine), encoding="utf-8")
    figures = {"machine": machine, "languages": to_json(rows)}
    print_figures(as_json, figures, tabulate_languages(rows), lines=list_notes(rows))
    raise typer.Exit(int(any(row.surprises for row in rows)))


def bench_commands(
    pairs: Annotated[int, typer.Option(min=1, help="Each command and `import torch`, in turns.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Time commands from the shell, beside a bare import of torch.

    A row per command: its median wall time, and how much longer than `python -c "import torch"` it takes, with 95 %
    intervals; then the processor's seconds, which a busy machine moves less. Ten pairs take two to three minutes.
    """
    from dataclasses import asdict

    from opsmith.report.tables import make_table
    from opsmith_lab.bench.commands import time_commands

    with show_progress("commands are timed") as tell:
        rows = time_commands(pairs, tell)
    numbers = ("pairs", "seconds", "over import torch", "cpu", "over")
    table = make_table("opsmith", *numbers, right=numbers)
    for row in rows:
        seconds = f"{row.median:.2f} [{row.low:.2f}, {row.high:.2f}]"
        over = f"{row.over:+.2f} [{row.over_low:+.2f}, {row.over_high:+.2f}]"
        table.add_row(row.command, str(row.pairs), seconds, over, f"{row.cpu:.2f}", f"{row.over_cpu:+.2f}")
    print_figures(as_json, [asdict(row) for row in rows], table)


bench.add("verify", bench_verdicts, has_secret=True)
bench.add("native", bench_native, has_secret=True)
bench.add("measure", bench_measurements)
bench.add("speeds", bench_speeds)
bench.add("ui", bench_pages)
bench.add("run", bench_run, has_secret=True)
bench.add("store", bench_store)
bench.add("languages", bench_languages, has_secret=True)
bench.add("attack", bench_attack)
bench.add("mutation", bench_mutation, has_secret=True)
bench.add("optimise", bench_optimise, has_secret=True)
bench.add("schedules", bench_schedules, has_secret=True)
bench.add("commands", bench_commands)
