"""`opsmith verify`: verdicts on programs, replies, or the implementations that task files carry."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import JudgingOptions, TargetName, TargetOptions, read_target_options
from opsmith.cli.progress import show_progress
from opsmith.cli.text import read_text

if TYPE_CHECKING:
    from opsmith.judging.files import FileVerdict
    from opsmith.records import Verdict


def add_to(app: CommandApp) -> None:
    app.add("verify", verify_programs, has_secret=True)


def verify_programs(  # noqa: PLR0913  (one parameter per option: that is how typer declares them)
    tasks: Annotated[list[str], typer.Argument(metavar="TASK", help="Ids, YAML files or folders.")],
    impl: Annotated[Path | None, typer.Option(metavar="FILE|-", help="The program to judge.")] = None,
    reply: Annotated[Path | None, typer.Option(metavar="FILE|-", help="A model's whole reply.")] = None,
    target: TargetName = None,
    option: TargetOptions = None,
    level: Annotated[
        str, typer.Option(metavar="cheap|full", help="How much is tried beyond what the task states.")
    ] = "full",
    insert_copies: Annotated[
        bool, typer.Option("--insert-copies", help="Repair streams that are used twice first.")
    ] = False,
    *,
    judging: JudgingOptions,
    show_commands: Annotated[
        bool,
        typer.Option("--show-commands", help="Show each compiler and simulator that is run, and what it said."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per task.")] = False,
) -> None:
    """Judge programs or replies.

    For each TASK: the program given, or else the one in the task's file.
    Exit code 0: all passed; 1: some were refused; 2: some could not be checked.
    """
    if impl and reply:
        raise typer.BadParameter("given both --impl and --reply; expected one of them")
    if show_commands:
        _log_commands()
    if level not in ("cheap", "full"):
        raise typer.BadParameter(f"given --level {level}; expected cheap or full")
    texts = (read_text(impl) if impl else None, read_text(reply) if reply else None)
    with (
        judging.make_pool() as pool,
        show_progress(f"programs are judged at the {level} level") as tell,
    ):
        pool.start_early()
        from opsmith.judging.files import ProgramSource, exit_code, judge_files
        from opsmith.records import Level
        from opsmith.suites import find_files

        judged_texts = ProgramSource(*texts, insert_copies, target, read_target_options(option))
        verdicts, files = [], find_files(tasks)
        for judged in judge_files(files, judged_texts, pool, Level(level)):
            tell("")
            verdicts.append(_print_verdict(judged, as_json))
            tell(f"{len(verdicts)} of {len(files)} are judged")
    labels = sorted({verdict.scrutiny for verdict in verdicts} - {""})
    if labels and not as_json and sys.stderr.isatty():  # elsewhere --json says it
        print(f"hidden sizes: {'; '.join(labels)}", file=sys.stderr)
    raise typer.Exit(exit_code(verdicts))


def _log_commands() -> None:
    """From now on what runs in a confined process is told on stderr."""
    log = logging.getLogger("opsmith.commands")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)
    log.propagate = False


def _print_verdict(judged: FileVerdict, as_json: bool) -> Verdict:
    from opsmith.records import printable
    from opsmith.report.verdicts import verdict_json, verdict_text

    name, verdict = judged.name, judged.verdict
    for warning in verdict.warnings if as_json else verdict.public_warnings:
        print(printable(f"{name}: warning: {warning}"), file=sys.stderr)
    print(json.dumps(verdict_json(name, verdict)) if as_json else verdict_text(name, verdict, judged.task), flush=True)
    return verdict
