"""`opsmith spent`: where the tokens and the money of a run went."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson, Out, StoreUrl, open_store
from opsmith.errors import UsageError


def add_to(app: typer.Typer) -> None:
    app.command()(spent)


def spent(
    run: Annotated[str, typer.Argument(help="A run's id, or the beginning of it.")],
    by: Annotated[str | None, typer.Option(metavar="round|agent|task", help="One table; default: all three.")] = None,
    out: Out = Path("runs"),
    url: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run spent, and on what.

    Tokens and money by round, agent and task, as the provider billed them when each reply came, and the price list that
    held then.
    """
    from opsmith.records import to_json
    from opsmith.report.spent import BY, spent_lines, spent_of, spent_table
    from opsmith.report.tables import output

    if by is not None and by not in BY:
        raise UsageError(f"--by: given {by!r}; expected one of {', '.join(BY)}")
    with open_store(out, url) as store:
        found = spent_of(store, store.find_run(run), BY if by is None else (by,))
    if as_json:
        print(json.dumps(to_json(found), indent=1))
    else:
        output().print(*[spent_table(found, name) for name in found.by], *spent_lines(found), sep="\n")
