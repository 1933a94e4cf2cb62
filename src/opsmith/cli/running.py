"""`opsmith run`: adaptive self-improvement on a set of tasks."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.declared_options import (
    declare_environment,
    declare_planning,
    declare_showing,
    declare_thinking,
    declare_tools,
    with_options,
)
from opsmith.cli.options import (
    ASKED,
    LEARNING,
    MODELS,
    REQUESTS,
    RESULTS,
    SPENDING,
    AsJson,
    BaseUrl,
    CandidateSeconds,
    Concurrency,
    DryRun,
    Executor,
    MaxCost,
    ModelNames,
    NoReport,
    Out,
    RayAddress,
    Seed,
    Servers,
    StoreUrl,
    TargetName,
    TargetOptions,
    Temperatures,
    TokensFrom,
    TrialSeconds,
    TrustTasks,
    Workers,
    make_store,
    open_store,
    read_target_options,
)
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report

ExperimentFile = Annotated[Path | None, typer.Argument(metavar="[EXPERIMENT.toml]", help="Settings to start from.")]
SelectionName = Annotated[
    str | None,
    typer.Option(metavar="S", help="adaptive|gain|all|random|similar|none (the control).", rich_help_panel=LEARNING),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        metavar="P",
        help="Who makes which sample, of several: each|cheapest-first|bandit; default each.",
        rich_help_panel=MODELS,
    ),
]
GuardianName = Annotated[
    str | None,
    typer.Option(
        metavar="M", help="Asked by --guardian llm; default: the model of the sample.", rich_help_panel=MODELS
    ),
]
RequestDeadline = Annotated[
    float | None,
    typer.Option(metavar="S", help="Of a request, with all attempts and waits; default 900.", rich_help_panel=REQUESTS),
]
InBatches = Annotated[
    bool | None,
    typer.Option(
        "--batch", help="The provider's batch API: half the price, hours of waiting.", rich_help_panel=REQUESTS
    ),
]
TasksOption = Annotated[
    str | None, typer.Option(metavar="IDS|DIR", help="Ids, files or folders, with commas.", rich_help_panel=ASKED)
]
SamplesOption = Annotated[
    int | None, typer.Option(metavar="N", help="Per task, round and temperature.", rich_help_panel=LEARNING)
]
LevelsOption = Annotated[int | None, typer.Option(metavar="m", help="Bins of difficulty.", rich_help_panel=LEARNING)]
AgentsOption = Annotated[
    str | None, typer.Option(metavar="single|agent", help="With the guardian or without.", rich_help_panel=MODELS)
]
GuardianOption = Annotated[
    str | None, typer.Option(metavar="static|llm", help="A rewrite, or a second call.", rich_help_panel=MODELS)
]
PromptOption = Annotated[
    str | None, typer.Option(metavar="structural|bare", help="bare: in plain Python.", rich_help_panel=ASKED)
]
RepairOption = Annotated[
    int | None, typer.Option(metavar="K", help="Turns to mend a refused answer.", rich_help_panel=LEARNING)
]
FromRunOption = Annotated[
    str | None, typer.Option("--from", metavar="RUN", help="Start from its solutions.", rich_help_panel=LEARNING)
]
BudgetFromOption = Annotated[
    str | None, typer.Option(metavar="RUN", help="Spend as many samples as it did.", rich_help_panel=SPENDING)
]
MaxRoundsOption = Annotated[int | None, typer.Option(metavar="N", help="Rounds, at most.", rich_help_panel=LEARNING)]
CompletionsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Samples per request; saves input.", rich_help_panel=REQUESTS)
]
RequestsPerMinuteOption = Annotated[
    int | None, typer.Option(metavar="N", help="The account's limit.", rich_help_panel=REQUESTS)
]
TokensPerMinuteOption = Annotated[
    int | None, typer.Option(metavar="N", help="The account's limit.", rich_help_panel=REQUESTS)
]
RequestTimeoutOption = Annotated[
    float | None, typer.Option(metavar="S", help="Of one attempt; default 300.", rich_help_panel=REQUESTS)
]
MeasureOption = Annotated[
    str | None, typer.Option(metavar="none|screen|full", help="Time what is solved.", rich_help_panel=LEARNING)
]
OptimiseOption = Annotated[
    int | None, typer.Option(metavar="N", help="Rounds that make solutions better.", rich_help_panel=LEARNING)
]
TrackOption = Annotated[
    str | None, typer.Option(metavar="mlflow", help="Log the run there too.", rich_help_panel=RESULTS)
]
NOT_SETTINGS = frozenset({"experiment", "out", "url", "track", "no_report", "as_json", "dry_run"})


def add_to(app: CommandApp) -> None:
    app.add("run", improve_on_tasks)


@with_options(declare_environment, declare_planning, declare_tools, declare_thinking, declare_showing)
def improve_on_tasks(  # noqa: PLR0913, PLR0917  (one parameter per option: that is how typer declares them)
    experiment: ExperimentFile = None,
    model: ModelNames = None,
    base_url: BaseUrl = None,
    server: Servers = None,
    policy: PolicyName = None,
    guardian_model: GuardianName = None,
    tasks: TasksOption = None,
    target: TargetName = None,
    option: TargetOptions = None,
    samples: SamplesOption = None,
    temperature: Temperatures = None,
    levels: LevelsOption = None,
    agents: AgentsOption = None,
    guardian: GuardianOption = None,
    selection: SelectionName = None,
    prompt: PromptOption = None,
    repair: RepairOption = None,
    from_run: FromRunOption = None,
    budget_from: BudgetFromOption = None,
    tokens_from: TokensFrom = None,
    seed: Seed = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    max_rounds: MaxRoundsOption = None,
    max_cost: MaxCost = None,
    completions: CompletionsOption = None,
    concurrency: Concurrency = None,
    requests_per_minute: RequestsPerMinuteOption = None,
    tokens_per_minute: TokensPerMinuteOption = None,
    request_timeout: RequestTimeoutOption = None,
    request_deadline: RequestDeadline = None,
    batch: InBatches = None,
    measure: MeasureOption = None,
    executor: Executor = None,
    ray_address: RayAddress = None,
    workers: Workers = None,
    candidate_seconds: CandidateSeconds = None,
    trial_seconds: TrialSeconds = None,
    optimise: OptimiseOption = None,
    dry_run: DryRun = False,
    track: TrackOption = None,
    no_report: NoReport = False,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
    **shared: Any,
) -> None:
    """Improve on tasks, round by round. The same command goes on where an earlier one was stopped."""
    options = {name: value for name, value in locals().items() if name not in NOT_SETTINGS}
    from opsmith.config import refuse_idle_options, resolve_settings
    from opsmith.suites import load_tasks

    stated = _as_settings(options)
    settings = resolve_settings(experiment, stated)
    refuse_idle_options(stated, settings)
    chosen = load_tasks(settings.tasks, settings.target, settings.target_options)
    if dry_run:
        raise typer.Exit(print_forecast(settings, chosen, partial(open_store, out, url), as_json))
    place, output = partial(make_store, out, url), RunOutput(track, as_json, not no_report)
    raise typer.Exit(run_and_report(settings, chosen, place, output))


def _as_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The options by the names of the settings."""
    options |= options.pop("shared")
    temperatures, tasks = options.pop("temperature"), options.pop("tasks")
    models = tuple(options.pop("model") or ())
    options |= {"model": models[0]} if len(models) == 1 else {"models": models or None}
    options["servers"] = tuple(options.pop("server") or ()) or None
    options["target_options"] = read_target_options(options.pop("option")) or None
    options["temperatures"] = tuple(temperatures) if temperatures else None
    options["pass_env"] = tuple(options["pass_env"]) if options["pass_env"] is not None else None
    options["tasks"] = tuple(filter(None, tasks.split(","))) if tasks is not None else None
    return options
