"""`opsmith bench attack`: the public library of attacks on the judge, run on every language."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opsmith.cli.options import AsJson
from opsmith.cli.progress import show_progress
from opsmith.records import Level
from opsmith_lab.cli.printing import Markdown, name_command, print_figures


def bench_attack(
    targets: Annotated[
        list[str] | None, typer.Option("--target", metavar="LANGUAGE", help="Default: all that have attacks.")
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--class", metavar="CLASS", help="Default: all, `right` programs too.")
    ] = None,
    also: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Further programs, in folders LANGUAGE/CLASS.")
    ] = None,
    level: Annotated[Level, typer.Option(help="How hard programs are tried at what no problem states.")] = Level.FULL,
    secrets: Annotated[int, typer.Option(min=1, help="Hidden draws are made anew for each: 1, 2, ...")] = 1,
    markdown: Markdown = None,
    as_json: AsJson = False,
) -> None:
    """Run the public library of attacks on the verdict.

    A row per language and class: programs that were tried, that were judged as they should be under every secret, that
    passed under one, and how many the usual harness lets pass. Exit code 1: a program was not judged as it should be.
    """
    from opsmith.devices.describe import describe_device
    from opsmith.errors import UsageError
    from opsmith.judging.pool import Pool
    from opsmith.records import to_json
    from opsmith_lab.bench.attack_table import list_notes, tabulate_attacks, write_markdown
    from opsmith_lab.bench.attacks import LANGUAGES, find_lack, list_attacks, open_clock, run_attacks
    from opsmith_lab.bench.usual_harness import UsualRoom

    for name in targets or ():
        if name not in LANGUAGES:
            raise UsageError(f"bench attack --target {name}: expected one of {', '.join(LANGUAGES)}")
    named = [name for name in LANGUAGES if not targets or name in targets]
    lacks = {name: lack for name in named if (lack := find_lack(name))}
    attacks = list(list_attacks([name for name in named if name not in lacks], kinds or (), also or ()))
    if not attacks:
        raise UsageError(f"bench attack: no program of {', '.join(named)}, class {', '.join(kinds or ['any'])}")
    numbers = [str(number) for number in range(1, secrets + 1)]
    with show_progress("programs are judged") as tell, UsualRoom() as room, open_clock(numbers[0]) as clock:
        rows = run_attacks(attacks, numbers, level, lambda secret: Pool(1, secret=secret), room, clock, tell)
    device = describe_device()
    machine = f"{device.name or 'a processor without a name'}, {device.usable_cores or device.cores} cores"
    facts = {
        "command": name_command(),
        "machine": machine,
        "level": level.value,
        "secrets": "one secret" if secrets == 1 else f"{secrets} secrets",
    }
    if markdown is not None:
        markdown.write_text(write_markdown(rows, facts, lacks), encoding="utf-8")
    figures = {**facts, "lacks": lacks, "rows": to_json(rows)}
    print_figures(as_json, figures, tabulate_attacks(rows), lines=list_notes(rows, lacks))
    raise typer.Exit(int(any(row.surprises for row in rows)))
