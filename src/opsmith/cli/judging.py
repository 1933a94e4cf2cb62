"""`opsmith verify`: verdicts on programs, replies, or the implementations that task files carry."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import TrustTasks
from opsmith.cli.text import read_text


def add_to(app: typer.Typer) -> None:
    app.command()(verify)


def verify(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="Ids, YAML files or folders.")],
    impl: Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program to judge.")] = None,
    reply: Annotated[Path | None, typer.Option(metavar="FILE|-", help="A model's whole reply.")] = None,
    insert_copies: Annotated[bool, typer.Option("--insert-copies", help="Repair resource errors first.")] = False,
    trust_tasks: TrustTasks = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per task.")] = False,
) -> None:
    """Judge programs or replies.

    For each TASK: the program given, or else the one in the task's file.
    Exit code 0: all passed; 1: some were refused; 2: some could not be checked.
    """
    from opsmith.benchmarks import resolve
    from opsmith.report.verdicts import verdict_json, verdict_text
    from opsmith.verification.files import Given, exit_code, judge_files
    from opsmith.verification.pool import Pool

    if impl and reply:
        raise typer.BadParameter("given both --impl and --reply; expected one of them")
    given = Given(read_text(impl) if impl else None, read_text(reply) if reply else None, insert_copies)
    verdicts = []
    with Pool(trust_tasks=trust_tasks) as pool:
        for name, verdict in judge_files(resolve(tasks), given, pool):
            verdicts.append(verdict)
            for warning in verdict.warnings:
                print(f"{name}: warning: {warning}", file=sys.stderr)
            print(json.dumps(verdict_json(name, verdict)) if as_json else verdict_text(name, verdict), flush=True)
    raise typer.Exit(exit_code(verdicts))
