"""`opsmith spent`: where the tokens and the money of a run went."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import Annotated

import typer

from opsmith.cli.commands import CommandApp
from opsmith.cli.options import AsJson, NewestRun, StorePlace
from opsmith.errors import UsageError


def add_to(app: CommandApp) -> None:
    app.add("spent", print_bill)


def print_bill(
    run: NewestRun = None,
    by: Annotated[
        str | None, typer.Option(metavar="round|agent|task|model", help="Only this table; default: all.")
    ] = None,
    *,
    place: StorePlace,
    as_json: AsJson = False,
) -> None:
    """Show what a run spent, and on what.

    Tokens and money by round, agent, task and model (where several replied), as the provider billed them when each
    reply came, and the price list that held then.
    """
    from opsmith.records import to_json
    from opsmith.report.spent import BY, spent_lines, spent_of, spent_table
    from opsmith.report.tables import open_console, print_fact

    if by is not None and by not in BY:
        raise UsageError(f"--by: given {by!r}; expected one of {', '.join(BY)}")
    with place.open() as store:
        bill = spent_of(store, store.find_run(run), () if by is None else (by,))
        if as_json:
            print(json.dumps(to_json(bill), indent=1))
        else:
            console = open_console()
            console.print(*[spent_table(bill, name) for name in bill.by])
            for line in spent_lines(bill):
                print_fact(console, line)
