"""`opsmith run`: adaptive self-improvement on a set of tasks."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.options import (
    AsJson,
    CandidateSeconds,
    Executor,
    Out,
    RayAddress,
    StoreUrl,
    TargetName,
    TargetOptions,
    TrialSeconds,
    TrustTasks,
    Workers,
    make_store,
    open_store,
    read_target_options,
)
from opsmith.errors import OpsmithError

if TYPE_CHECKING:
    from opsmith.store import Store

NOT_SETTINGS = frozenset({"experiment", "out", "url", "track", "no_report", "as_json", "dry_run"})


Place = Callable[[], "Store"]


def add_to(app: typer.Typer) -> None:
    app.command(name="run")(improve_on_tasks)


def improve_on_tasks(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    experiment: Annotated[
        Path | None, typer.Argument(metavar="[EXPERIMENT.toml]", help="Settings to start from.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="M", help="A name that `opsmith models` lists.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="U", help="A server of your own.")] = None,
    tasks: Annotated[str | None, typer.Option(metavar="IDS|DIR", help="Ids, files or folders, with commas.")] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    samples: Annotated[int | None, typer.Option(metavar="N", help="Per task, round and temperature.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(metavar="T", help="May be given several times.")] = None,
    levels: Annotated[int | None, typer.Option(metavar="m", help="Bins of difficulty.")] = None,
    agents: Annotated[str | None, typer.Option(metavar="single|agent", help="With the guardian or without.")] = None,
    guardian: Annotated[str | None, typer.Option(metavar="static|llm", help="A rewrite, or a second call.")] = None,
    selection: Annotated[
        str | None, typer.Option(metavar="S", help="adaptive|all|random|similar|none (the control).")
    ] = None,
    prompt: Annotated[str | None, typer.Option(metavar="structural|bare", help="bare: in plain Python.")] = None,
    repair: Annotated[int | None, typer.Option(metavar="K", help="Turns to mend a refused answer.")] = None,
    from_run: Annotated[str | None, typer.Option("--from", metavar="RUN", help="Start from its solutions.")] = None,
    budget_from: Annotated[str | None, typer.Option(metavar="RUN", help="Spend as many samples as it did.")] = None,
    tokens_from: Annotated[str | None, typer.Option(metavar="RUN", help="Spend as many tokens as it did.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="S")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    max_rounds: Annotated[int | None, typer.Option(metavar="N")] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="USD", help="Once it is spent, no request starts.")] = None,
    completions: Annotated[int | None, typer.Option(metavar="N", help="Samples per request; saves input.")] = None,
    concurrency: Annotated[int | None, typer.Option(metavar="N", help="Requests in flight, at most.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(metavar="N", help="The account's limit.")] = None,
    tokens_per_minute: Annotated[int | None, typer.Option(metavar="N", help="The account's limit.")] = None,
    request_timeout: Annotated[float | None, typer.Option(metavar="S", help="Of one attempt; default 300.")] = None,
    request_deadline: Annotated[
        float | None, typer.Option(metavar="S", help="Of a request, with all attempts and waits; default 900.")
    ] = None,
    batch: Annotated[
        bool | None, typer.Option("--batch", help="The provider's batch API: half the price, hours of waiting.")
    ] = None,
    measure: Annotated[str | None, typer.Option(metavar="none|screen|full", help="Time what is solved.")] = None,
    executor: Executor = None,
    ray_address: RayAddress = None,
    workers: Workers = None,
    candidate_seconds: CandidateSeconds = None,
    trial_seconds: TrialSeconds = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="What it would ask and cost; nothing is asked.")] = False,
    track: Annotated[str | None, typer.Option(metavar="mlflow", help="Log the run there too.")] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no HTML report at the end.")] = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Improve on tasks, round by round.

    The same command goes on where an earlier one was stopped.
    """
    options = {name: value for name, value in locals().items() if name not in NOT_SETTINGS}
    if dry_run:
        raise typer.Exit(_print_forecast(experiment, _as_settings(options), partial(open_store, out, url), as_json))
    place = partial(make_store, out, url)
    raise typer.Exit(_run_and_report(experiment, _as_settings(options), place, track, as_json, not no_report))


def _as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options by the names of the settings."""
    temperatures, tasks = options.pop("temperature"), options.pop("tasks")
    options["target_options"] = read_target_options(options.pop("option")) or None
    options["temperatures"] = tuple(temperatures) if temperatures else None
    options["tasks"] = tuple(filter(None, tasks.split(","))) if tasks is not None else None
    return options


def _run_and_report(
    experiment: Path | None, options: dict[str, Any], place: Place, track: str | None, as_json: bool, with_report: bool
) -> int:
    from opsmith.api import improve
    from opsmith.bridges.trackers import check_tracker, track_run
    from opsmith.config import resolve_settings
    from opsmith.report import closing
    from opsmith.report.live import watch_run
    from opsmith.report.tables import open_console
    from opsmith.suites import load_tasks

    settings = resolve_settings(experiment, options)
    check_tracker(track)
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    with place() as store, watch_run(open_console(stderr=True)) as show, track_run(track, store, show) as on_event:
        result = improve(tasks, settings.provider.model, settings, store, on_event=on_event)
        report = _write_report(store, result.run) if with_report and result.end != "interrupted" else None
        on_event.files = (Path(report),) if report is not None else ()
    if as_json:
        print(json.dumps(result.as_json() | {"report": report}))
    else:
        open_console().print(closing.closing_table(result), *closing.closing_lines(result), sep="\n")
        if report is not None:
            print(f"report  {report}")
    if not result.finished:
        print(f"opsmith: stopped ({result.end}); nothing is lost: the same command goes on from here", file=sys.stderr)
    return 130 if result.end == "interrupted" else 0


def _print_forecast(experiment: Path | None, options: dict[str, Any], place: Place, as_json: bool) -> int:
    from opsmith.config import resolve_settings
    from opsmith.evaluation.forecast import ASSUMED, forecast_run
    from opsmith.evaluation.forecast_table import tabulate_forecasts
    from opsmith.records import to_json
    from opsmith.report.tables import open_console
    from opsmith.suites import load_tasks

    settings = resolve_settings(experiment, options)
    budget_run = settings.spending.budget_from or settings.spending.tokens_from
    measure = None
    if budget_run is not None:
        with place() as store:
            measure = store.sum_usage(store.find_run(budget_run))
    tasks = load_tasks(settings.tasks, settings.target, settings.target_options)
    forecast = forecast_run("run", settings, tasks, measure)
    if as_json:
        print(json.dumps({"run": to_json(forecast), "assumed": ASSUMED}, indent=1))
    else:
        open_console().print(tabulate_forecasts("run", [forecast]))
        print(*ASSUMED, sep="\n")
    return 0


def _write_report(store: Store, run: str) -> str | None:
    """The path of the run's report. That it cannot be written is said, and takes nothing from the run."""
    from opsmith.report.files import write_report

    try:
        return str(write_report(store, [run], "html")[0])
    except (OSError, OpsmithError) as error:
        print(f"opsmith: no report was written: {error}; try: opsmith report {run}", file=sys.stderr)
        return None
