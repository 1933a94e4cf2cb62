"""What an export and a re-verification say on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from opsmith.export.library import Exported
from opsmith.export.reverify import Flip, Reverified
from opsmith.records import Outcome, Stage, printable
from opsmith.report.tables import table

SHOWN = 50  # flipped programs; --json has them all


def exported_lines(found: Exported) -> Iterator[str]:
    yield f"{found.folder}: package {found.name}, {len(found.operators)} operators"
    if found.missing:
        yield f"not solved by the run: {', '.join(task.id for task in found.missing)}"
    for operator in found.refused:
        yield f"left out, today's verifier does not pass it: {operator.task.id}"
        yield printable(operator.verdict.message, keep="\n")
    yield f"try: pip install {found.folder} && pytest {found.folder}"


def reverified_parts(found: Reverified) -> Iterator[Table | str]:
    """The tasks that changed, the programs that did, and the sum of it."""
    changed = [change for change in found.tasks if change.right[0] != change.right[1] or change.lost]
    if changed:
        numbers = ("judged", "right before", "right now", "rate before", "rate now")
        rows = table("task", *numbers, "kept solution", right=numbers)
        for change in changed:
            rates = [f"{rate:.3f}" for rate in change.success_rate]
            kept = "-" if change.kept is None else str(change.kept[1])
            rows.add_row(change.task, str(change.judged), *map(str, change.right), *rates, kept)
        yield rows
    yield from _flips(found.flips)
    yield from (f"{task}: could not be judged: {printable(why, keep=chr(10))}" for task, why in found.unjudged)
    before, now = found.verifier
    solved = [sum(change.solved[at] for change in found.tasks) for at in (0, 1)]
    yield (
        f"{found.run}: {found.candidates} candidates, judged by {before or 'an unknown verifier'} then and {now} now "
        f"({found.programs} different programs in this call): {len(found.flips)} flipped; "
        f"solved then {solved[0]}, now {solved[1]}, of {len(found.tasks)} tasks"
    )
    if found.lost:
        yield f"no longer right, though the run kept it: {', '.join(found.lost)}"


def _flips(flips: tuple[Flip, ...]) -> Iterator[str]:
    """One block for each different program, with the first of its samples."""
    groups: dict[tuple[str, str], list[Flip]] = {}
    for flip in flips:
        groups.setdefault((flip.task, flip.candidate), []).append(flip)
    for same in list(groups.values())[:SHOWN]:
        first = same[0]
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        kept = ", the kept solution" if any(flip.kept for flip in same) else ""
        yield f"{first.task}: sample {first.sample}{more}{kept}: {_seen(first.before)}, now {_seen(first.after)}"
        if first.after[1] is not Outcome.PASSED:
            yield printable(first.message, keep="\n")
    if len(groups) > SHOWN:
        yield f"... and {len(groups) - SHOWN} more programs; try: --json"


def _seen(seen: tuple[Stage, Outcome]) -> str:
    stage, outcome = seen
    return "passed" if outcome is Outcome.PASSED else f"{outcome} at {stage.name}"
