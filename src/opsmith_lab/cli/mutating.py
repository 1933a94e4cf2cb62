"""`opsmith bench mutation`: whether the verdict accepts wrong programs, or refuses right ones."""

# ruff: noqa: PLC0415  (imports are inside: `opsmith --help` must not pay for them)
from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from opsmith.cli.options import AsJson, TrustTasks
from opsmith.cli.progress import show_progress
from opsmith_lab.cli.printing import StepTasks, print_figures

if TYPE_CHECKING:
    from rich.table import Table

    from opsmith.judging.pool import Pool
    from opsmith.records import Task, Verdict
    from opsmith_lab.step.mutation.score import MutationScore

STAGES = ("PARSE", "TYPE", "AFFINE", "RUN", "MATCH", "rounding", "unjudged")
ENDS = ("equivalent", "explained", "false accept", "false refusal")


def bench_mutation(
    tasks: StepTasks = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Programs of each kind at most; default: all.")] = None,
    trust_tasks: TrustTasks = False,
    as_json: AsJson = False,
) -> None:
    """Judge every small change of the tasks' own programs.

    Exit code 1 when a wrong program is accepted, a right one is refused, or the table of accepted changes is stale.
    """
    from opsmith.judging.pool import Pool
    from opsmith.judging.trust import is_bundled
    from opsmith.suites import load_tasks

    chosen = load_tasks(tuple(tasks or ()))
    trusted = trust_tasks or all(map(is_bundled, chosen))  # changed functions are our own text
    scores: list[MutationScore] = []
    with Pool(trust_tasks=trusted) as pool, show_progress("changes are made") as tell:
        for task in chosen:
            tell(f"{task.id}: its changed programs are judged, {len(scores) + 1} of {len(chosen)}")
            scores.append(_score_tasks(pool, task, sample))
            tell("")
            print(_list_complaints(scores[-1]), end="", file=sys.stderr, flush=True)
    print_figures(as_json, [asdict(score) for score in scores], _scores_table(scores))
    raise typer.Exit(0 if all(score.is_clean for score in scores) else 1)


def _score_tasks(pool: Pool, task: Task, sample: int | None) -> MutationScore:
    from opsmith_lab.step.mutation.populations import Populations
    from opsmith_lab.step.mutation.score import read_explanations, score_populations

    def judge_all(programs: Sequence[tuple[Task, str]]) -> list[Verdict]:
        """Programs of one task together, those of changed tasks beside each other."""
        own = [source for named, source in programs if named.text == task.text]
        elsewhere = {program: pool.submit(*program) for program in programs if program[0].text != task.text}
        verdicts = dict(zip(own, pool.verify_all(task, own), strict=True))
        return [
            verdicts[source] if named.text == task.text else elsewhere[named, source].result()
            for named, source in programs
        ]

    return score_populations(Populations(task, sample), judge_all, read_explanations(task.id))


def _scores_table(scores: Sequence[MutationScore]) -> Table:
    """A row per task and one for all: programs by population, then by what became of them."""
    from opsmith.report.tables import make_table
    from opsmith_lab.step.mutation.populations import POPULATIONS

    columns = (*POPULATIONS, *STAGES, *ENDS)
    grid = make_table("task", *columns, right=columns, least=(*STAGES, *POPULATIONS))
    rows = [
        [*(sum(score.tallies[name].values()) for name in POPULATIONS), *map(score.count_programs, (*STAGES, *ENDS))]
        for score in scores
    ]
    for score, row in zip(scores, rows, strict=True):
        grid.add_row(score.task, *map(str, row))
    grid.add_section()
    grid.add_row("all", *(str(sum(column)) for column in zip(*rows, strict=True)))
    return grid


def _list_complaints(score: MutationScore) -> str:
    """Every false verdict with the change that shows it, and what the table says in vain."""
    lines = [
        f"{score.task}: {finding.what} ({finding.population})\n{finding.change}{finding.message}\n\n"
        for finding in score.findings
    ]
    return "".join([*lines, *(f"{score.task}: stale, not accepted any more:\n{change}\n" for change in score.stale)])
