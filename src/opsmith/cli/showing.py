"""`opsmith show`: a run, what came of one of its tasks, or one of its samples."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, NewestRun, StorePlace
from opsmith.errors import UsageError

if TYPE_CHECKING:
    from opsmith.report.fitting import PlainConsole
    from opsmith.store import Store


def add_to(app: CommandApp) -> None:
    app.add("show", show_run)


def show_run(
    run: NewestRun = None,
    sample: Annotated[str | None, typer.Argument(metavar="TASK|SAMPLE", help="What of it to show.")] = None,
    *,
    place: StorePlace,
    with_prompt: Annotated[
        bool,
        typer.Option(
            "--prompt",
            help="Of a sample: what was asked and answered. Of a task: what each round asked, demonstrations by name.",
        ),
    ] = False,
    with_samples: Annotated[bool, typer.Option("--samples", help="Of a task: a row for each sample.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run, a task of it, or a sample.

    A run: rounds, solutions and the closing table. A task: why its samples were refused, the nearest miss first, and
    its plans as they are now. A sample: verdict and program. Of optimisation rounds: gains and timelines; a sample's
    suggestion, profiles and changes.
    """
    from opsmith.report.samples import prompts_text
    from opsmith.report.tables import open_console

    console = open_console()
    with place.open() as store:
        run = store.find_run(run)
        is_task = sample in {task.id for task in (*store.read_tasks(run), *store.read_children(run))}
        _refuse_idle(is_task, sample, with_prompt, with_samples)
        if sample is None:
            _show_whole(console, store, run, as_json)
        elif is_task:
            if with_prompt:
                console.print(*prompts_text(store, run, sample), sep="\n", soft_wrap=True)
            else:
                _show_task(console, store, (run, sample), with_samples, as_json)
        else:
            _show_sample(console, store, (run, sample), with_prompt, as_json)


def _refuse_idle(is_task: bool, sample: str | None, with_prompt: bool, with_samples: bool) -> None:
    """Raises UsageError for an option that says nothing of what is shown."""
    if with_prompt and sample is None:
        raise UsageError("--prompt: expected a task or a sample; try: opsmith show RUN TASK --prompt")
    if with_samples and not is_task:
        raise UsageError("--samples: expected a task; try: opsmith show RUN TASK --samples")


def _show_whole(console: PlainConsole, store: Store, run: str, as_json: bool) -> None:
    from opsmith.records import to_json
    from opsmith.report.closing import print_run
    from opsmith.report.failures import FailureReader
    from opsmith.report.tables import print_fact
    from opsmith.results.optimisation import read_optimisation
    from opsmith.results.result import result_of

    result, failures, remarks = result_of(store, run), FailureReader(store, run), store.read_remarks(run)
    if as_json:
        beside = {"note": remarks.text, "tags": list(remarks.all_tags), "failures": failures.view_failures().as_json()}
        optimised = read_optimisation(store, run)
        rows = [to_json(task) for task in optimised.tasks] if optimised is not None else []
        gains = [{name: value for name, value in row.items() if name != "steps"} for row in rows]
        print(json.dumps({**result.as_json(), **beside, **({"optimised": gains} if gains else {})}))
        return
    if remarks.text or remarks.all_tags:
        tags = " ".join(f"[{tag}]" for tag in remarks.all_tags)
        print_fact(console, f"note    {tags} {remarks.text}")
    print_run(console, store, result)
    if result.rounds:
        print_fact(console, f"why     {failures.write_headline()} Reasons: opsmith show {run} TASK")


def _show_task(console: PlainConsole, store: Store, place: tuple[str, str], with_samples: bool, as_json: bool) -> None:
    from opsmith.measuring.record import MeasuringGrade
    from opsmith.report.attempts import find_improvement
    from opsmith.report.optimised import tabulate_steps
    from opsmith.report.plans import print_plans, view_plans
    from opsmith.report.samples import print_task, samples_table, task_json
    from opsmith.report.speeds import print_speeds
    from opsmith.results.optimisation import read_optimisation

    if as_json:
        print(json.dumps(task_json(store, *place)))
        return
    if with_samples:
        console.print(samples_table(store.list_samples(*place)))
        print_speeds(console, store.read_speeds(*place), is_of_task=True)
        return
    run, task = place
    print_plans(console, view_plans(store, run), task)
    speeds = store.read_speeds(*place)
    full = [speed for speed in speeds if speed.report.measurement.grade is MeasuringGrade.FULL]
    print_speeds(console, full or speeds, is_of_task=True)
    if (improved := find_improvement(read_optimisation(store, run), task)) is not None:
        console.print(tabulate_steps([improved], is_of_run=True))
    print_task(console, store, *place)


def _show_sample(console: PlainConsole, store: Store, place: tuple[str, str], with_prompt: bool, as_json: bool) -> None:
    from opsmith.report.attempts import find_task
    from opsmith.report.conversations import ExampleReader
    from opsmith.report.samples import conversation_text, list_improvement, sample_json, sample_text
    from opsmith.report.speeds import choose_own, print_speeds

    run, name = place
    detail = store.find_sample(run, name)
    if as_json:
        print(json.dumps(sample_json(detail, with_prompt)))
        return
    console.print(*sample_text(detail, find_task(store, run, detail.row.task)), sep="\n", soft_wrap=True)
    for text in list_improvement(store, run, detail):
        console.print(text, soft_wrap=True)
    print_speeds(console, choose_own(store.read_speeds(run, detail.row.task), detail))
    if with_prompt:
        used = store.read_tool_calls([detail.row.id]).get(detail.row.id, ())
        shown = ExampleReader(store, run).describe_shown(detail)
        console.print(*conversation_text(detail, used), *shown, sep="\n", soft_wrap=True)
    else:
        console.print(f"what was asked:  opsmith show {run} {detail.row.id[:12]} --prompt", soft_wrap=True)
