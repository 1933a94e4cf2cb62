"""`opsmith submit`: a person's program for a task of a run that goes on."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, JudgingOptions, RunName, StorePlace
from opsmith.cli.text import read_text


def add_to(app: CommandApp) -> None:
    app.add("submit", submit_file, has_tables=False)


def submit_file(
    run: RunName,
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task of that run, without a program yet.")],
    file: Annotated[Path, typer.Argument(metavar="FILE|-", help="The program.")],
    *,
    place: StorePlace,
    judging: JudgingOptions,
    as_json: AsJson = False,
) -> None:
    """Give a run a program of yours while it goes.

    It is judged at the full level. A right one is stored, and shown as an example from the next round on, also when the
    run was stopped or killed and goes on later. It is never counted as the model's.
    Exit code 0: it is kept; 1: it is refused; 2: it could not be judged.
    """
    from opsmith.judging.files import exit_code
    from opsmith.learn.known import PERSON, find_submitted, submit_program
    from opsmith.records import KnownProgram
    from opsmith.report.verdicts import verdict_json, verdict_text
    from opsmith.store.pages import session_settings

    with place.open() as store:
        run = store.find_run(run)
        program = KnownProgram(find_submitted(store, run, task), read_text(file), PERSON, file.name)
        limits = session_settings(store, run)
        with judging.make_pool(limits) as pool:
            verdict = asyncio.run(submit_program(store, run, program, pool))
        first, is_held = len(store.read_rounds(run)), store.is_held(run)
    if as_json:
        print(json.dumps({**verdict_json(task, verdict), "run": run, "round": first if verdict.passed else None}))
    elif verdict.passed:
        later = "" if is_held else "; nobody works on the run just now: the command that began it goes on"
        print(f"{task}: kept as yours in run {run}; round {first} is the first that may show it{later}")
    else:
        print(f"{verdict_text(task, verdict, program.task)}\n{task}: not kept; run {run} is as it was")
    raise typer.Exit(exit_code([verdict]))
