"""A library that lives: operators are added to it, or replaced where a new one is right, of one problem and better.

What is replaced is the whole folder, at once: whoever reads it, or is killed while writing it, has the old library or
the new one. The manifests of before stay in `history`, and `baseline.json` has the figures of what is in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from opsmith.errors import UsageError
from opsmith.export import folder as folders
from opsmith.export.front_files import FRONTS
from opsmith.export.library import write_library
from opsmith.export.manifest import list_counted_figures
from opsmith.export.solved import SolutionOrigin, SolvedOperator, name_functions
from opsmith.judging.pool import Pool
from opsmith.measuring.baseline import read_baseline, write_baseline
from opsmith.measuring.claims import LEAST_GAIN
from opsmith.measuring.costs import choose_counted_sets
from opsmith.measuring.intervals import Interval, average_ratios
from opsmith.measuring.objectives import list_figures, list_objectives, require_figures
from opsmith.measuring.orders import SpeedOrder
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedReport
from opsmith.outside import read_text
from opsmith.records import TIME, Boundary, Level, Outcome, Stage, Task, Usage, Verdict, content_hash, to_json
from opsmith.results.problems import digest_problems
from opsmith.store.rows import RunInfo
from opsmith.suites.library import FILE, FORMAT, LibraryOperator, StoredLibrary, read_library
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.programs import TOOLCHAIN

Fill = Callable[[SpeedOrder], Iterable[SpeedReport]]  # figures of a right program
Told = Callable[[str], None]


@dataclass(frozen=True)
class LibraryTools:
    """What judges and measures a library's programs."""

    pool: Pool
    fill: Fill

    def judge(self, task: Task, source: str) -> Verdict:
        return self.pool.verify(task, source, Level.FULL)

    def measure(self, task: Task, source: str, objective: str, partner: str | None = None) -> list[SpeedMeasurement]:
        """At all sizes of the bench; nothing where the objective is none of what the language says."""
        if objective not in list_figures(task):
            return []
        sets = () if objective == TIME.name else choose_counted_sets(task)
        alone = replace(task, impl=None)
        order = SpeedOrder(alone, source, MeasuringGrade.FULL, partner=partner, shape_sets=sets, figures=(objective,))
        return [report.measurement for report in self.fill(order)]


@dataclass(frozen=True)
class OperatorUpdate:
    """What became of one operator that an update offered."""

    function: str
    task: str
    what: str  # added, replaced, stays, refused
    why: str
    ratio: Interval | None = None  # speed of the new program by that of the library's; None: not measured


@dataclass(frozen=True)
class UpdatedLibrary:
    """What an update did."""

    folder: Path
    objective: str
    updates: Sequence[OperatorUpdate]
    outdated: Sequence[str] = ()  # functions in it that were judged by an earlier verifier, or with earlier tools
    changed: Sequence[str] = ()  # files of the toolchain in it that are others now

    @property
    def is_changed(self) -> bool:
        return any(update.what in ("added", "replaced") for update in self.updates)

    def as_json(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = [to_json(update) for update in self.updates]
        about = {"outdated": list(self.outdated), "changed": list(self.changed)}
        return {"folder": str(self.folder), "objective": self.objective, "operators": rows, **about}

    def explain_outdated(self) -> str:
        """What of it was judged otherwise than by what it holds now; "": nothing."""
        if not self.outdated:
            return ""
        what = f"judged with earlier tools than today's: {', '.join(self.outdated)}"
        files = f" (changed: {', '.join(self.changed)})" if self.changed else ""
        return f"{what}{files}; opsmith library {self.folder} verify judges them again"


def read_living(folder: Path, target: str | None = None) -> StoredLibrary:
    """The library of a folder; target: what its language is called on this machine, if not what it was. Raises
    UsageError."""
    library = read_library(folder)
    if target is None:
        return library
    operators = [replace(each, task=replace(each.task, target=target)) for each in library.operators]
    return replace(library, target=target, operators=operators)


def find_objective(library: StoredLibrary) -> str:
    """By which figure its programs are better than others: what its manifest says, or its fronts, or else the usual one
    of its language; "": there is none."""
    said = library.manifest.get("objective")
    if said is None and FRONTS in library.manifest["files"]:
        fronts = json.loads(read_text(library.folder / FRONTS))["operators"].values()
        if any(front["by_size"] for front in fronts):
            what = f"{library.folder}: has operators of several programs, each for its sizes"
            raise UsageError(
                f"{what}; expected one of each; try: opsmith export RUN --library, without --objective time"
            )
        said = next((front["objective"] for front in fronts), None)
    usual = [offer.name for operator in library.operators[:1] for offer in list_objectives(operator.task)]
    if said:
        require_figures(library.operators[0].task, (said,))
    return said or next(iter(usual), "")


def restore_operators(library: StoredLibrary) -> list[SolvedOperator]:
    """Its operators as they were exported, with the verdicts of then."""
    return [_restore_operator(operator) for operator in library.operators]


def _restore_operator(operator: LibraryOperator) -> SolvedOperator:
    record = operator.record
    said = record["origin"]
    origin = SolutionOrigin(
        run=said["run"],
        model=said["model"],
        is_language_model=said["is_language_model"],
        round=said["round"],
        success_rate=said["success_rate"],
        gain=said.get("gain"),
        sample=said["sample"],
        temperature=said["temperature"],
        contaminated=said["equals_an_example_of_its_prompt"],
        sample_usage=None if said["usage"] is None else Usage(**said["usage"]),
        samples=said["samples"],
        right=said["right"],
        verdict=restore_verdict(record, "verdict_then") if record["verdict_then"] else None,
    )
    figures = tuple(figure for figure in record["figures"] if figure["objective"] != "gain")
    verdict = restore_verdict(record)
    secret = content_hash("the proof of a library", record["program"], operator.name)[:32]
    return SolvedOperator(
        operator.name, operator.task, operator.source, origin, verdict, secret=secret, figures=figures
    )


def restore_verdict(record: Mapping[str, Any], which: str = "verdict_now") -> Verdict:
    """A verdict as the manifest says it of an operator."""
    said = record[which]
    place = (record["program"], Stage(said["stage"]), Outcome(said["outcome"]), Boundary.CANDIDATE)
    return Verdict(*place, trials=said["trials"], verifier=said["verifier"], build=said.get("build", ""))


def update_library(
    folder: Path,
    offered: Sequence[SolvedOperator],
    tools: LibraryTools,
    tell: Told,
    target: str | None = None,
    waits: bool = True,
) -> UpdatedLibrary:
    """Add what is new and right, and replace what it beats. offered: judged by today's verifier. Raises UsageError for
    a folder that is no library or was changed by hand, and where somebody else writes it and `waits` is not set."""
    with folders.hold_folder(folder, tell if waits else None):
        library = read_living(folder, target)
        folders.check_free(folder, FILE, FORMAT)
        objective = find_objective(library)
        own = {operator.task.id: operator for operator in restore_operators(library)}
        problems = {operator.task.id: operator.problem for operator in library.operators}
        figures: dict[str, list[SpeedMeasurement]] = {}
        updates = []
        for operator in offered:
            tell(f"{operator.task.id}: judged and measured")
            old = own.get(operator.task.id)
            update, measured = _consider_operator(operator, old, problems, tools, objective)
            updates.append(update)
            if update.what in ("added", "replaced"):
                name = old.name if old else _name_added(operator.task.id, own.values())
                known = tuple(list_counted_figures(measured))
                own[operator.task.id] = replace(operator, name=name, figures=known, choice=None, sized_verdicts=())
                figures[operator.task.id] = measured
            elif old is not None and old.source == operator.source and operator.verdict.passed:
                own[operator.task.id] = replace(old, verdict=operator.verdict)
        result = UpdatedLibrary(folder, objective, updates)
        if result.is_changed:
            operators = sorted(own.values(), key=lambda each: each.task.id)
            run = library.manifest["run"]
            own_run = (run["model"], run["is_language_model"], run["target"], run["seed"], run["settings"])
            info = RunInfo(run["id"], "", *own_run, run["versions"])
            written = write_library(library.name, info, operators, objective, tools.pool)
            folders.write_folder(folder, partial(_fill_folder, written, library, figures))
            result = replace(result, changed=_list_changed_tools(written, library))
        else:
            operators = restore_operators(library)
        now = {each.name: name_verifier(get_target(each.task.target)) for each in operators}
        return replace(result, outdated=[each.name for each in operators if each.verdict.verifier != now[each.name]])


def _list_changed_tools(written: Mapping[str, str | bytes], library: StoredLibrary) -> list[str]:
    """The files of the toolchain that the library holds otherwise than before."""
    before, now = library.manifest["files"], json.loads(written[FILE])["files"]
    place = f"{library.name}/{TOOLCHAIN}/"
    return sorted(path for path in {*before, *now} if path.startswith(place) and before.get(path) != now.get(path))


def _consider_operator(
    operator: SolvedOperator,
    old: SolvedOperator | None,
    problems: Mapping[str, str | None],
    tools: LibraryTools,
    objective: str,
) -> tuple[OperatorUpdate, list[SpeedMeasurement]]:
    """What becomes of an operator that is offered, and what was measured of it."""
    task = operator.task
    say = partial(OperatorUpdate, old.name if old else operator.name, task.id)
    problem = digest_problems([task]).get(task.id)
    if old is not None and problem != problems[task.id]:
        why = f"another problem under that name: given {problem}; the library has {problems[task.id]}"
        return say("refused", why), []
    if not operator.verdict.passed:
        return say("refused", f"not right today: {operator.verdict.message}"), []
    if old is not None and old.source == operator.source:
        return say("stays", "the same program"), []
    if old is None:
        return say("added", ""), tools.measure(task, operator.source, objective)
    return _compare_operators(operator, old, tools, objective)


def _compare_operators(
    operator: SolvedOperator, old: SolvedOperator, tools: LibraryTools, objective: str
) -> tuple[OperatorUpdate, list[SpeedMeasurement]]:
    """Whether a right operator replaces the library's, and what was measured of it."""
    task, say = operator.task, partial(OperatorUpdate, old.name, operator.task.id)
    verdict = tools.judge(task, old.source)
    if verdict.outcome is Outcome.UNJUDGED:
        return say("stays", f"the library's program could not be judged: {verdict.message}"), []
    if not verdict.passed:
        what = f"the library's program is not right any more: {verdict.message}"
        return say("replaced", what), tools.measure(task, operator.source, objective)
    measured = tools.measure(task, operator.source, objective, old.source)
    lack = next(
        (each.reason for each in measured if each.ratio is None), "" if measured else "nothing measures it here"
    )
    if lack:
        return say("stays", f"cannot be compared: {lack}"), []
    ratio = average_ratios([each.ratio.precise for each in measured if each.ratio is not None])
    assert ratio is not None
    if ratio.low > (LEAST_GAIN if objective == TIME.name else 1.0):
        return say("replaced", f"better by a factor of {ratio} in {objective}", ratio), measured
    return say("stays", f"not better: a factor of {ratio} in {objective}", ratio), []


def _name_added(task: str, own: Iterable[SolvedOperator]) -> str:
    taken = {operator.name for operator in own}
    number, [stem] = 1, name_functions([task])
    while (name := stem if number == 1 else f"{stem}_{number}") in taken:
        number += 1
    return name


def _fill_folder(
    written: Mapping[str, str | bytes],
    library: StoredLibrary,
    figures: Mapping[str, Sequence[SpeedMeasurement]],
    draft: Path,
) -> None:
    folders.write_texts(draft, written)
    path, replaced = library.folder / folders.BASELINE, {row.problem for rows in figures.values() for row in rows}
    before = read_baseline(path) if path.is_file() else []
    rows = [row for row in before if row.problem not in replaced]
    rows += [replace(row, ratio=None) for measured in figures.values() for row in measured if row.time is not None]
    if rows:
        write_baseline(draft / folders.BASELINE, rows)


def list_offered(library: StoredLibrary, tools: LibraryTools) -> Iterator[SolvedOperator]:
    """The operators of another library, judged by today's verifier."""
    operators = restore_operators(library)
    waiting = [tools.pool.submit(operator.task, operator.source, Level.FULL) for operator in operators]
    for operator, future in zip(operators, waiting, strict=True):
        yield replace(operator, verdict=future.result())
