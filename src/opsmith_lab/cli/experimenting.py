"""`opsmith experiment`: the evaluation of the paper, one command each."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import LEARNING, MODELS, SPENDING, AsJson, DryRun, StorePlace, declare_option
from opsmith.cli.performing import open_if_there
from opsmith.cli.run_options import offer_settings

if TYPE_CHECKING:
    from opsmith.store import Store
    from opsmith_lab.evaluation.experiment import Experiment
    from opsmith_lab.evaluation.files import ConductedExperiment
    from opsmith_lab.evaluation.plan import ExperimentOptions


def add_to(app: CommandApp) -> None:
    app.add("experiment", run_experiment, has_secret=True)


_WHERE = (  # settings of a run that no experiment compares
    *("target", "price_in", "price_out", "concurrency", "requests_per_minute", "tokens_per_minute", "request_timeout"),
    *("request_deadline", "context_window", "batch", "executor", "ray_address", "workers", "candidate_seconds"),
    *("trial_seconds", "pass_env", "measure"),
)


@offer_settings(f"base_url tasks samples trust_tasks {' '.join(_WHERE)}")
def run_experiment(  # noqa: PLR0913  (one parameter per option: that is how typer declares them)
    stated: dict[str, Any],
    name: Annotated[str | None, typer.Argument(metavar="NAME|FILE|all", help="Without: list the experiments.")] = None,
    model: Annotated[
        list[str] | None, declare_option(MODELS, "M", "In place of the experiment's own; several may be given.")
    ] = None,
    seed: Annotated[list[int] | None, declare_option(LEARNING, "S", "May be given several times.")] = None,
    *,
    place: StorePlace,
    results: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the results.")] = Path("results"),
    arms: Annotated[str | None, declare_option(LEARNING, "NAMES", "Of a study: who searches; with commas.")] = None,
    sets: Annotated[str | None, declare_option(LEARNING, "NAMES", "Of a study: sets of problems; with commas.")] = None,
    language: Annotated[str | None, declare_option(LEARNING, "NAMES", "Of study2: with commas; else C.")] = None,
    redraw: Annotated[
        bool, typer.Option("--redraw", help="Draw the figures of --results again; nothing runs.")
    ] = False,
    dry_run: DryRun = False,
    max_cost: Annotated[
        float | None, declare_option(SPENDING, "USD", "Of all its runs together; once it is spent, no request starts.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the paper, or a study of models.

    The same command goes on where an earlier one was stopped; a run that is there already is not made again.
    """
    from opsmith.errors import UsageError
    from opsmith_lab.evaluation.catalogue import find_experiments
    from opsmith_lab.evaluation.plan import ExperimentOptions
    from opsmith_lab.study import STUDIES

    if name is None:
        return _list_experiments(as_json)
    if max_cost is not None and not max_cost > 0:
        raise UsageError(f"--max-cost: given {max_cost}; expected more than 0")
    options = ExperimentOptions(
        tuple(model or ()),
        stated.get("samples"),
        stated.get("tasks", ()),
        tuple(seed or ()),
        stated.get("trust_tasks", False),
        stated.get("base_url"),
        {field: stated[field] for field in _WHERE if field in stated},
    )
    chosen = [tuple(filter(None, (names or "").split(","))) for names in (arms, sets, language)]
    if any(chosen) and name not in STUDIES:
        raise UsageError(f"--arms, --sets, --language: given with {name!r}; expected a study: {', '.join(STUDIES)}")
    if redraw:
        return _redraw_figures(
            [name] if name in STUDIES else [e.name for e in find_experiments(name)], results, as_json
        )
    if name in STUDIES:
        raise typer.Exit(_run_study(name, options, chosen, (place.out, results), max_cost, dry_run, as_json))
    experiments = find_experiments(name)
    if dry_run:
        return _print_forecast(experiments, options, place.open, as_json)
    raise typer.Exit(_run_experiments(experiments, options, place.make, results, max_cost, as_json))


def _redraw_figures(names: list[str], results: Path, as_json: bool) -> None:
    """Of several experiments those that have a result there; one that was named must have it."""
    from opsmith_lab.evaluation.files import redraw_results

    present = [name for name in names if (results / f"{name}.json").is_file()] or names[:1]
    paths = {name: [str(path) for path in redraw_results(results, name)] for name in present}
    print(json.dumps(paths, indent=1) if as_json else "\n".join(path for own in paths.values() for path in own))


def _list_experiments(as_json: bool) -> None:
    from opsmith.report.tables import make_table, open_console
    from opsmith_lab.evaluation.catalogue import ALL, list_experiments
    from opsmith_lab.evaluation.reading import read_experiment
    from opsmith_lab.study import STUDIES

    experiments = [(read_experiment(file), file) for file in list_experiments().values()]
    if as_json:
        listed = [(each.name, each.title, str(file)) for each, file in experiments]
        listed += [(name, title, "") for name, title in STUDIES.items()]  # no file says what these do
        print(json.dumps([dict(zip(("name", "title", "file"), each, strict=True)) for each in listed], indent=1))
        return
    rows = make_table("experiment", "what it shows", "arms")
    for name, title in STUDIES.items():
        rows.add_row(name, title, "known minds" if name == "instruments" else "optimisers, chat models")
    for experiment, _ in experiments:
        rows.add_row(experiment.name, experiment.title, ", ".join(arm.name for arm in experiment.arms))
    collections = sorted({experiment.collection for experiment, _ in experiments} - {""})
    several = f"several at once: {ALL} (those of the paper), {', '.join(collections)}"
    open_console().print(rows, several)


def _print_forecast(
    experiments: tuple[Experiment, ...], options: ExperimentOptions, place: Callable[[], Store], as_json: bool
) -> None:
    from opsmith.forecast.forecast import describe_expectation, list_assumptions
    from opsmith.forecast.table import describe_duration, tabulate_forecasts
    from opsmith.records import to_json
    from opsmith.report.tables import open_console
    from opsmith_lab.evaluation.forecast import forecast_runs
    from opsmith_lab.evaluation.plan import plan_runs

    planned = {experiment.name: plan_runs(experiment, options) for experiment in experiments}
    with open_if_there(place) as store:
        lines = {name: forecast_runs(runs, store) for name, runs in planned.items()}
    assumed = list_assumptions([run.settings for runs in planned.values() for run in runs])
    assumed += tuple(
        f"{experiment.name}: arm {arm.name} is the first round of {arm.first_round_of}, and asks nothing of its own."
        for experiment in experiments
        for arm in experiment.arms
        if arm.first_round_of
    )
    if as_json:
        print(json.dumps({"experiments": to_json(lines), "assumed": assumed}, indent=1))
        return
    for name, runs in lines.items():
        open_console().print(tabulate_forecasts(name, runs))
    every = [run for runs in lines.values() for run in runs]
    open_console().print(describe_expectation(every), describe_duration(every), *assumed, sep="\n")


def _run_study(
    name: str,
    options: ExperimentOptions,
    chosen: list[tuple[str, ...]],
    places: tuple[Path, Path],
    max_cost: float | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    from opsmith.forecast.table import tabulate_forecasts
    from opsmith.records import to_json
    from opsmith.report.tables import open_console
    from opsmith_lab.study.studies import CONDUCT, FORECAST, StudyOrder, foresee_power

    order = StudyOrder(options, chosen[0], chosen[1], places[0] / "studies", chosen[2])
    if not dry_run:
        conducted = CONDUCT[name](order, places[1], max_cost, partial(print, file=sys.stderr))
        return _print_conducted([conducted], as_json)
    forecasts = FORECAST[name](order)
    if as_json:
        lines = foresee_power(order, places[1]) if name == "study1" and forecasts else ()
        print(json.dumps({"experiments": {name: to_json(forecasts)}, "assumed": lines}, indent=1))
    elif not forecasts:
        print(f"{name}: no model is asked")
    else:
        open_console().print(tabulate_forecasts(name, forecasts))
        print("Expected: one request a sample or proposal, each reply that alone; tokens are characters / 4.")
        print("At most: a proposal is refused once, and replies are as long as max_tokens allows.")
        if name == "study1":
            print(*foresee_power(order, places[1]), sep="\n")
    return 0


def _run_experiments(
    experiments: tuple[Experiment, ...],
    options: ExperimentOptions,
    place: Callable[[], Store],
    results: Path,
    max_cost: float | None,
    as_json: bool,
) -> int:
    from opsmith.report.live import watch_run
    from opsmith.report.tables import open_console
    from opsmith_lab.evaluation.conduct import conduct_experiment

    conducted: list[ConductedExperiment] = []
    with place() as store, watch_run(open_console(stderr=True)) as on_event:
        for experiment in experiments:
            money = None if max_cost is None else max_cost - sum(result.cost for result in conducted)
            conducted.append(conduct_experiment(experiment, options, store, results, money, on_event))
            if conducted[-1].stopped:
                break
    return _print_conducted(conducted, as_json)


def _print_conducted(conducted: list[ConductedExperiment], as_json: bool) -> int:
    """What came of experiments; the exit code."""
    from opsmith.report.tables import open_console

    for result in conducted:
        print(json.dumps(result.data)) if as_json else open_console().print(*result.lines, sep="\n", soft_wrap=True)
    if conducted[-1].stopped:
        again = "nothing is lost: the same command goes on from here"
        print(f"opsmith: {conducted[-1].name} stopped ({conducted[-1].stopped}); {again}", file=sys.stderr)
    return 130 if conducted[-1].stopped.startswith("interrupted") else 0
