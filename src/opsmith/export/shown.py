"""What an export and a re-verification say on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from opsmith.export.exported import ExportedFiles
from opsmith.export.flashinfer import ExportedTraces
from opsmith.export.library import ExportedLibrary
from opsmith.export.reverify import Flip, Reverified
from opsmith.export.solved import SolvedOperator
from opsmith.export.torch_modules import ExportedModules
from opsmith.records import Outcome, Stage, printable
from opsmith.report.tables import count_noun, make_table
from opsmith.results.optimisation import NOT_GRADED

SHOWN = 50  # flipped programs; --json has them all


def exported_lines(exported: ExportedLibrary) -> Iterator[str]:
    yield f"{exported.folder}: package {exported.name}, {count_noun(len(exported.operators), 'operator')}"
    yield from _list_gains(exported.operators)
    yield from _list_left_out(exported)
    folder = exported.folder if exported.folder.is_absolute() else f"./{exported.folder}"  # else a name of an index
    yield f"try: pip install {folder} && pytest {folder}"


def list_module_lines(exported: ExportedModules) -> Iterator[str]:
    yield f"{exported.folder}: {count_noun(len(exported.modules), 'module')}: {', '.join(exported.modules)}"
    yield from _list_gains(exported.modules.values())
    yield from _list_left_out(exported)
    yield f"try: python {exported.folder}/harness.py" + (f" --device {exported.device}" * (exported.device != "cpu"))


def list_trace_lines(exported: ExportedTraces) -> Iterator[str]:
    figures = exported.as_json()
    traces = f"{count_noun(figures['traces'], 'trace')}, {figures['measured']} of them with a speed"
    yield f"{exported.folder}: {count_noun(len(exported.entries), 'solution')}, {traces}"
    yield from _list_gains(entry.operator for entry in exported.entries)
    yield from _list_left_out(exported)


def _list_gains(operators: Iterable[SolvedOperator]) -> Iterator[str]:
    """What optimisation rounds made better, by which factor, and what they did not."""
    for operator in operators:
        if operator.lack:
            hint = "; try: opsmith measure RUN" if operator.lack == NOT_GRADED else ""
            yield printable(f"{operator.task.id}: the program that the run began with: {operator.lack}{hint}")
        elif operator.origin.gain:
            yield printable(
                f"{operator.task.id}: better than at the run's start by a factor of {operator.origin.gain:.3f}"
            )


def _list_left_out(exported: ExportedFiles) -> Iterator[str]:
    if exported.missing:
        yield printable(f"not solved by the run: {', '.join(task.id for task in exported.missing)}")
    for operator in exported.refused:
        yield printable(f"left out, today's verifier does not pass it: {operator.task.id}")
        yield printable(operator.verdict.message, keep="\n")
    yield from (printable(f"left out, {reason}") for reason in exported.without_form.values())


def reverified_parts(result: Reverified) -> Iterator[Table | str]:
    """The tasks that changed, the programs that did, and the sum of it."""
    changed = [change for change in result.tasks if change.right[0] != change.right[1] or change.lost]
    if changed:
        numbers = ("judged", "right before", "right now", "rate before", "rate now")
        rows = make_table("task", *numbers, "kept solution", right=numbers)
        for change in changed:
            rates = [f"{rate:.3f}" for rate in change.success_rate]
            solution = "-" if change.kept is None else str(change.kept[1])
            rows.add_row(change.task, str(change.judged), *map(str, change.right), *rates, solution)
        yield rows
    yield from _flip_lines(result.flips)
    for task, why in result.unjudged:
        yield f"{printable(task)}: could not be judged: {printable(why, keep=chr(10))}"
    before, now = result.verifier
    solved = [sum(change.solved[index] for change in result.tasks) for index in (0, 1)]
    yield (
        f"{result.run}: {result.candidates} candidates, judged by {before or 'an unknown verifier'} then and {now} now "
        f"({result.programs} different programs in this call): {len(result.flips)} flipped; "
        f"solved then {solved[0]}, now {solved[1]}, of {len(result.tasks)} tasks"
    )
    if result.lost:
        yield printable(f"no longer right, though the run kept it: {', '.join(result.lost)}")


def _flip_lines(flips: tuple[Flip, ...]) -> Iterator[str]:
    """One block for each different program, with the first of its samples."""
    groups: dict[tuple[str, str], list[Flip]] = {}
    for flip in flips:
        groups.setdefault((flip.task, flip.candidate), []).append(flip)
    for same in list(groups.values())[:SHOWN]:
        first = same[0]
        also = f" and {len(same) - 1} more" if len(same) > 1 else ""
        mark = ", the kept solution" if any(flip.kept for flip in same) else ""
        change = f"{_name_outcome(first.before)}, now {_name_outcome(first.after)}"
        yield printable(f"{first.task}: sample {first.sample}{also}{mark}: {change}")
        if first.after[1] is not Outcome.PASSED:
            yield printable(first.message, keep="\n")
    if len(groups) > SHOWN:
        yield f"... and {len(groups) - SHOWN} more programs; try: --json"


def _name_outcome(ending: tuple[Stage, Outcome]) -> str:
    stage, outcome = ending
    return "passed" if outcome is Outcome.PASSED else f"{outcome} at {stage.name}"
