"""`opsmith bench mutation`: does the verdict accept wrong programs, or refuse right ones?"""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.options import AsJson, TrustTasks

if TYPE_CHECKING:
    from rich.table import Table

    from opsmith.records import Task, Verdict
    from opsmith.targets.step.mutation.score import Score
    from opsmith.verification.pool import Pool

STAGES = ("PARSE", "TYPE", "AFFINE", "RUN", "MATCH", "rounding", "unjudged")
ENDS = ("equivalent", "explained", "false accept", "false refusal")


def mutation(
    tasks: Annotated[list[str] | None, typer.Argument(metavar="[TASK...]", help="Default: the 26 tasks.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Programs of each kind at most; default: all.")] = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Judge every small change of the tasks' own programs.

    Exit code 1 when a wrong program is accepted, a right one is refused, or the table of accepted changes is stale.
    """
    from opsmith.benchmarks import load_tasks
    from opsmith.report.tables import output
    from opsmith.verification.pool import Pool
    from opsmith.verification.trust import is_bundled

    chosen = load_tasks(tuple(tasks or ()))
    with Pool(trust_tasks=trust_tasks or all(map(is_bundled, chosen))) as pool:  # changed functions are our own text
        scores = []
        for task in chosen:
            scores.append(_score(pool, task, sample))
            print(_complaints(scores[-1]), end="", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps([asdict(found) for found in scores]))
    else:
        output().print(_table(scores))
    raise typer.Exit(0 if all(found.is_clean for found in scores) else 1)


def _score(pool: Pool, task: Task, sample: int | None) -> Score:
    from opsmith.targets.step.mutation.accepted import explained
    from opsmith.targets.step.mutation.populations import Populations
    from opsmith.targets.step.mutation.score import score

    def judge_all(programs: Sequence[tuple[Task, str]]) -> list[Verdict]:
        """Programs of one task together, those of changed tasks beside each other."""
        own = [source for given, source in programs if given.text == task.text]
        others = {program: pool.submit(*program) for program in programs if program[0].text != task.text}
        found = dict(zip(own, pool.verify_all(task, own), strict=True))
        return [
            found[source] if given.text == task.text else others[given, source].result() for given, source in programs
        ]

    return score(Populations(task, sample), judge_all, explained(task.id))


def _table(scores: Sequence[Score]) -> Table:
    """A row per task and one for all: programs by population, then by what became of them."""
    from opsmith.report.tables import table
    from opsmith.targets.step.mutation.populations import POPULATIONS

    columns = (*POPULATIONS, *STAGES, *ENDS)
    made = table("task", *columns, right=columns)
    rows = [
        [*(sum(found.tallies[name].values()) for name in POPULATIONS), *map(found.total, (*STAGES, *ENDS))]
        for found in scores
    ]
    for found, row in zip(scores, rows, strict=True):
        made.add_row(found.task, *map(str, row))
    made.add_section()
    made.add_row("all", *(str(sum(column)) for column in zip(*rows, strict=True)))
    return made


def _complaints(found: Score) -> str:
    """Every false verdict with the change that shows it, and what the table says in vain."""
    lines = [
        f"{found.task}: {finding.what} ({finding.population})\n{finding.change}{finding.message}\n\n"
        for finding in found.findings
    ]
    return "".join([*lines, *(f"{found.task}: stale, not accepted any more:\n{change}\n" for change in found.stale)])
