"""`opsmith check`: whether task files themselves are right."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import JudgingOptions, TargetName, TargetOptions, read_target_options
from opsmith.cli.progress import show_progress


def add_to(app: CommandApp) -> None:
    app.add("check", check_tasks, has_secret=True)


def check_tasks(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK|DIR", help="Ids, suites, YAML files or folders.")],
    target: TargetName = None,
    option: TargetOptions = None,
    *,
    judging: JudgingOptions,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per task.")] = False,
) -> None:
    """Judge task files themselves.

    Would a wrong answer pass? Does every input and every function matter? Is the reference the same twice?
    Exit code 0: all are fine; 1: some are faulty; 2: none is, but something could not be checked.
    """
    from opsmith.judging.audited_files import audit_files, exit_code
    from opsmith.report.audits import audit_json, audits_table, findings_text
    from opsmith.report.tables import open_console
    from opsmith.suites import find_files

    audits, paths, options = [], find_files(tasks), read_target_options(option)
    first = f"{paths[0].stem}, 1 of {len(paths)}"
    with judging.make_pool() as pool, show_progress(first) as tell:
        for audit in audit_files(paths, pool, target, options):
            audits.append(audit)
            if as_json:
                tell("")
                print(json.dumps(audit_json(audit)), flush=True)
            tell(f"{audit.task}: {audit.state}, {len(audits)} of {len(paths)}")
    if not as_json:
        open_console().print(audits_table(audits), *findings_text(audits), sep="\n", soft_wrap=True)
    raise typer.Exit(exit_code(audits))
