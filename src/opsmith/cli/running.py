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
    declare_option,
    make_store,
    open_store,
    read_shared,
)
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report

ExperimentFile = Annotated[Path | None, typer.Argument(metavar="[EXPERIMENT.toml]", help="Settings to start from.")]
SelectionName = Annotated[
    str | None, declare_option(LEARNING, "S", "adaptive|gain|all|random|similar|none (the control).")
]
PolicyName = Annotated[
    str | None,
    declare_option(MODELS, "P", "Who makes which sample, of several: each|cheapest-first|bandit; default each."),
]
GuardianName = Annotated[
    str | None, declare_option(MODELS, "M", "Asked by --guardian llm; default: the model of the sample.")
]
RequestDeadline = Annotated[
    float | None, declare_option(REQUESTS, "S", "Of a request, with all attempts and waits; default 900.")
]
InBatches = Annotated[
    bool | None,
    typer.Option(
        "--batch", help="The provider's batch API: half the price, hours of waiting.", rich_help_panel=REQUESTS
    ),
]
TasksOption = Annotated[str | None, declare_option(ASKED, "IDS|DIR", "Ids, files or folders, with commas.")]
SamplesOption = Annotated[int | None, declare_option(LEARNING, "N", "Per task, round and temperature.")]
LevelsOption = Annotated[int | None, declare_option(LEARNING, "m", "Bins of difficulty.")]
AgentsOption = Annotated[str | None, declare_option(MODELS, "single|agent", "With the guardian or without.")]
GuardianOption = Annotated[str | None, declare_option(MODELS, "static|llm", "A rewrite, or a second call.")]
PromptOption = Annotated[str | None, declare_option(ASKED, "structural|bare", "bare: in plain Python.")]
RepairOption = Annotated[int | None, declare_option(LEARNING, "K", "Turns to mend a refused answer.")]
FromRunOption = Annotated[str | None, declare_option(LEARNING, "RUN", "Start from its solutions.", "--from")]
BudgetFromOption = Annotated[str | None, declare_option(SPENDING, "RUN", "Spend as many samples as it did.")]
MaxRoundsOption = Annotated[int | None, declare_option(LEARNING, "N", "Rounds, at most.")]
CompletionsOption = Annotated[int | None, declare_option(REQUESTS, "N", "Samples per request; saves input.")]
RequestsPerMinuteOption = Annotated[int | None, declare_option(REQUESTS, "N", "The account's limit.")]
TokensPerMinuteOption = Annotated[int | None, declare_option(REQUESTS, "N", "The account's limit.")]
RequestTimeoutOption = Annotated[float | None, declare_option(REQUESTS, "S", "Of one attempt; default 300.")]
MeasureOption = Annotated[str | None, declare_option(LEARNING, "none|screen|full", "Time what is solved.")]
OptimiseOption = Annotated[int | None, declare_option(LEARNING, "N", "Rounds that make solutions better.")]
TrackOption = Annotated[str | None, declare_option(RESULTS, "mlflow", "Log the run there too.")]
NOT_SETTINGS = frozenset({"experiment", "out", "url", "track", "no_report", "as_json", "dry_run"})


def add_to(app: CommandApp) -> None:
    app.add("run", improve_on_tasks, has_secret=True)


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
    options = read_shared(options)
    tasks = options.pop("tasks")
    models = tuple(options.pop("model") or ())
    options |= {"model": models[0]} if len(models) == 1 else {"models": models or None}
    options["servers"] = tuple(options.pop("server") or ()) or None
    options["tasks"] = tuple(filter(None, tasks.split(","))) if tasks is not None else None
    return options
