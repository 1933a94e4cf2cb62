"""`opsmith run`: adaptive self-improvement on a set of tasks."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import RESULTS, AsJson, DryRun, NoReport, StorePlace, declare_option
from opsmith.cli.performing import RunOutput, print_forecast, run_and_report
from opsmith.cli.run_options import offer_settings

ExperimentFile = Annotated[Path | None, typer.Argument(metavar="SETTINGS.toml", help="Settings to start from.")]
LibraryOption = Annotated[
    Path | None, declare_option(RESULTS, "DIR", "Ask only for what that library lacks, or has broken or slower.")
]
TrackOption = Annotated[str | None, declare_option(RESULTS, "mlflow", "Log the run in that tracker, too.")]


def add_to(app: CommandApp) -> None:
    app.add("run", improve_on_tasks, has_secret=True)


@offer_settings(
    "models base_url servers policy guardian_model tasks target target_options samples temperatures levels agents "
    "guardian selection prompt repair from_run budget_from tokens_from seed max_rounds max_cost completions "
    "concurrency requests_per_minute tokens_per_minute request_timeout request_deadline context_window batch "
    "price_in price_out measure executor ray_address workers candidate_seconds trial_seconds optimise trust_tasks "
    "pass_env name plan planner plan_after splits depth contract_rounds tools tool_calls tool_tokens tool_seconds "
    "reasoning think translate example manual manual_tokens manual_sections known show_known"
)
def improve_on_tasks(
    stated: dict[str, Any],
    experiment: ExperimentFile = None,
    *,
    place: StorePlace,
    dry_run: DryRun = False,
    for_library: LibraryOption = None,
    track: TrackOption = None,
    no_report: NoReport = False,
    as_json: AsJson = False,
) -> None:
    """Write programs, round by round: ask, judge, ask again.

    The same command goes on where an earlier one was stopped.
    """
    from opsmith.config import refuse_idle_options, resolve_settings
    from opsmith.suites import load_tasks

    if len(stated.get("models", ())) == 1:
        [stated["model"]] = stated.pop("models")
    settings = resolve_settings(experiment, stated)
    refuse_idle_options(stated, settings)
    chosen = load_tasks(settings.tasks, settings.target, settings.target_options)
    if dry_run or for_library is not None:  # else the run reads what is known
        from opsmith.errors import UsageError
        from opsmith.learn.known import KnownPrograms, list_asked, read_known

        known = read_known(settings, chosen)  # what is wrong with it is said before a library is judged
    if for_library is not None:
        from opsmith.cli.living import narrow_to_library

        chosen, names = narrow_to_library(for_library, chosen, settings.place.trust_tasks)
        if not chosen:
            raise typer.Exit(0)
        settings = settings.replace(tasks=names)
        try:
            known = read_known(settings, chosen)  # of fewer tasks
        except UsageError:
            given = settings.teamwork.showing.known
            print(f"opsmith: known {given}: only programs of operators that the library has", file=sys.stderr)
            settings, known = settings.replace(known=None), KnownPrograms(tuple(chosen))
    if dry_run:
        asked = list_asked(known.tasks, known.programs, settings)
        less = asked if len(asked) < len(known.tasks) else None
        shown = len({program.task.digest for program in known.programs})
        raise typer.Exit(print_forecast(settings, known.tasks, place.open, as_json, less_tasks=less, given=shown))
    output = RunOutput(track, as_json, not no_report)
    raise typer.Exit(run_and_report(settings, chosen, place.make, output))
