"""`opsmith draw`: one task of a run as a picture, for a README, a talk or a paper."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import CandidateSeconds, RunName, StorePlace, TrustTasks, make_pool
from opsmith.cli.text import STDIN
from opsmith.terminal import write_document

if TYPE_CHECKING:
    from opsmith.records import Task


def add_to(app: CommandApp) -> None:
    app.add("draw", draw_task, has_tables=False)


def draw_task(
    run: RunName,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The id of one of its tasks.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE|-", help="Default: OUT/reports/RUN-TASK.svg; or .png, .pdf; -: stdout."),
    ] = None,
    width: Annotated[
        int,
        typer.Option(
            metavar="PX", min=320, max=4000, help="The picture's width; below 700 its parts stand in one column."
        ),
    ] = 880,
    *,
    place: StorePlace,
    candidate_seconds: CandidateSeconds = None,
    trust_tasks: TrustTasks = False,
) -> None:
    """Draw what came of one task of a run.

    Its PyTorch reference, where its samples ended, the refused program that came nearest with its message, and the
    program that was kept with its cost. An SVG, PNG or PDF. Where rounds made it better, the program that they began
    with stands in place of the refused one, and each attempt of theirs with its ratio below.
    """
    from opsmith.report.attempts import find_task
    from opsmith.report.files import write_picture
    from opsmith.report.story_picture import draw_story, tell_story

    with place.open() as store:
        name = store.find_run(run)
        story = tell_story(store, name, task)
        if story.solution is not None:
            costs = _estimate_costs(find_task(store, name, task), story.solution.source, candidate_seconds, trust_tasks)
            story = replace(story, costs=(*costs, *story.costs))
        picture = draw_story(story, width)
        if output == STDIN:
            write_document(picture)
        else:
            print(write_picture(store, name, task, picture, output))


def _estimate_costs(task: Task, source: str, candidate_seconds: float | None, trust_tasks: bool) -> tuple[str, ...]:
    """By the cost model of the task's language; nothing where it has none."""
    from opsmith.report.story_picture import describe_costs, has_cost_model

    if not has_cost_model(task):
        return ()
    with make_pool(1, trust_tasks, candidate_seconds) as pool:
        return (describe_costs(pool.cost(task, source), task),)
