"""`opsmith check`: are task files themselves right?"""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import Annotated

import typer

from opsmith.cli.options import TrustTasks


def add_to(app: typer.Typer) -> None:
    app.command()(check)


def check(
    tasks: Annotated[list[str], typer.Argument(metavar="TASK|DIR...", help="Ids, suites, YAML files or folders.")],
    trust_tasks: TrustTasks = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per task.")] = False,
) -> None:
    """Judge task files themselves.

    Would a wrong answer pass? Does every input and every function matter? Is the reference the same twice?
    Exit code 0: all are fine; 1: some are faulty; 2: none is, but something could not be checked.
    """
    from opsmith.benchmarks import resolve
    from opsmith.report.audits import audit_json, audits_table, findings_text
    from opsmith.report.tables import output
    from opsmith.verification.audited_files import audit_files, exit_code
    from opsmith.verification.pool import Pool

    audits, paths = [], resolve(tasks)
    waiting = output(stderr=True).status(f"{paths[0].stem}, 1 of {len(paths)}")
    with Pool(trust_tasks=trust_tasks) as pool, waiting:
        for audit in audit_files(paths, pool):
            audits.append(audit)
            waiting.update(f"{audit.task}: {audit.state}, {len(audits)} of {len(paths)}")
            if as_json:
                print(json.dumps(audit_json(audit)), flush=True)
    if not as_json:
        output().print(audits_table(audits), *findings_text(audits), sep="\n", soft_wrap=True)
    raise typer.Exit(exit_code(audits))
