"""`opsmith bench commands`: how long commands take from the shell."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
from typing import Annotated

import typer

from opsmith.cli.options import AsJson
from opsmith.cli.progress import show_progress


def bench_commands(
    pairs: Annotated[int, typer.Option(min=1, help="Each command and `import torch`, in turns.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Time commands from the shell, beside a bare import of torch.

    A row per command: its median wall time, and how much longer than `python -c "import torch"` it takes, with 95 %
    intervals; then the processor's seconds, which a busy machine moves less. Ten pairs take two to three minutes.
    """
    from dataclasses import asdict

    from opsmith.report.tables import make_table, open_console
    from opsmith_lab.bench.commands import time_commands

    with show_progress("commands are timed") as tell:
        rows = time_commands(pairs, tell)
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    numbers = ("pairs", "seconds", "over import torch", "cpu", "over")
    table = make_table("opsmith", *numbers, right=numbers)
    for row in rows:
        seconds = f"{row.median:.2f} [{row.low:.2f}, {row.high:.2f}]"
        over = f"{row.over:+.2f} [{row.over_low:+.2f}, {row.over_high:+.2f}]"
        table.add_row(row.command, str(row.pairs), seconds, over, f"{row.cpu:.2f}", f"{row.over_cpu:+.2f}")
    open_console().print(table)
