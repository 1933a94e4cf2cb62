"""A run from its settings to what is printed of it: for every command that performs one."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opsmith.errors import OpsmithError, UsageError

if TYPE_CHECKING:
    from opsmith.judging.judge import Solution
    from opsmith.records import Task
    from opsmith.settings import Settings
    from opsmith.store import Store

Place = Callable[[], "Store"]


@dataclass(frozen=True)
class RunOutput:
    """What is said of a run, and where."""

    track: str | None = None  # a tracker's name
    as_json: bool = False
    with_report: bool = True


def run_and_report(
    settings: Settings, tasks: Sequence[Task], place: Place, output: RunOutput, solutions: Sequence[Solution] = ()
) -> int:
    """The exit code. `solutions`: programs to begin with."""
    from opsmith.api import improve
    from opsmith.bridges.trackers import check_tracker, track_run
    from opsmith.report.closing import print_closing
    from opsmith.report.live import watch_run
    from opsmith.report.tables import open_console
    from opsmith.report.views import run_view

    check_tracker(output.track)
    with place() as store:
        with watch_run(open_console(stderr=True)) as show, track_run(output.track, store, show) as on_event:
            result = improve(tasks, settings.provider.model, settings, store, on_event=on_event, solutions=solutions)
            has_report = output.with_report and not result.end.startswith("interrupted")
            report = _write_report(store, result.run) if has_report else None
            on_event.files = (Path(report),) if report is not None else ()
        if output.as_json:
            print(json.dumps(result.as_json() | {"report": report}))
        else:
            print_closing(open_console(), run_view(store, result.run), result)
            if report is not None:
                print(f"report  {report}")
    if not result.finished:
        print(f"opsmith: stopped ({result.end}); nothing is lost: the same command goes on from here", file=sys.stderr)
    return 130 if result.end.startswith("interrupted") else 0


def print_forecast(
    settings: Settings,
    tasks: Sequence[Task],
    place: Place,
    as_json: bool,
    begins_right: bool = False,
    less_tasks: Sequence[Task] | None = None,
    given: int = 0,
) -> int:
    """The exit code. less_tasks: what is asked for if all known programs, `given` tasks', are right, which nobody knows
    before they are judged; None: nothing hangs on that."""
    from opsmith.forecast.forecast import Measure, describe_expectation, forecast_run, list_assumptions
    from opsmith.forecast.table import describe_duration, tabulate_run
    from opsmith.records import to_json
    from opsmith.report.tables import open_console

    budget_run, measure = settings.spending.budget_from or settings.spending.tokens_from, None
    with open_if_there(place, budget_run is not None) as store:
        if store is not None and budget_run is not None:
            spent = store.sum_usage(store.find_run(budget_run))
            measure = Measure(spent, spent)
        forecast = forecast_run(
            "run", settings, tasks, measure, begins_right, store, given if less_tasks is None else 0
        )
        least = forecast_run("run", settings, less_tasks, measure, begins_right, store, given) if less_tasks else None
    assumed = list_assumptions([settings])
    if as_json:
        ends = {} if less_tasks is None else {"if_known_are_right": to_json(least)}
        print(json.dumps({"run": to_json(forecast), **ends, "assumed": assumed}, indent=1))
    else:
        if less_tasks is not None:
            print("The known programs are not judged before the run. Were none of them right:")
        open_console().print(tabulate_run(forecast))
        if less_tasks is not None:
            asked = (
                f"{len(less_tasks)} of {len(tasks)} tasks would be asked for:"
                if less_tasks
                else "nothing would be asked."
            )
            print(f"Were all of them right, {asked}")
        if least is not None:
            open_console().print(tabulate_run(least))
        open_console().print(describe_expectation([forecast]), describe_duration([forecast]), *assumed, sep="\n")
    return 0


@contextmanager
def open_if_there(place: Place, is_needed: bool = False) -> Iterator[Store | None]:
    """The store, or None where there is none; one that is needed must be there."""
    try:
        opened = place()
    except UsageError:
        if is_needed:
            raise
        opened = None
    with opened or nullcontext() as store:
        yield store


def _write_report(store: Store, run: str) -> str | None:
    """The path of the run's report. That it cannot be written is said, and takes nothing from the run."""
    from opsmith.report.files import write_report

    try:
        return str(write_report(store, [run], "html")[0])
    except (OSError, OpsmithError) as error:
        print(f"opsmith: no report was written: {error}; try: opsmith report {run}", file=sys.stderr)
        return None
