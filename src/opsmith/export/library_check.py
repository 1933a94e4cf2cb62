"""A library judged again, after a compiler, a simulator or a driver changed: what broke, and what became slower."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from opsmith.export.living import LibraryTools, Told, find_objective, restore_verdict
from opsmith.measuring.baseline import SpeedChange, compare_baseline, read_baseline, write_baseline
from opsmith.measuring.record import SpeedMeasurement
from opsmith.records import Candidate, Level, Outcome, Verdict, printable, to_json
from opsmith.report.speeds import write_count
from opsmith.results.problems import digest_problems
from opsmith.suites.library import LibraryOperator, StoredLibrary
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier


@dataclass(frozen=True)
class OperatorCheck:
    """An operator by today's verifier, and its figures beside those of the baseline."""

    operator: LibraryOperator
    verdict: Verdict
    measured: Sequence[SpeedMeasurement]
    changes: Sequence[SpeedChange]

    @property
    def state(self) -> str:
        """broken, unjudged, slower, or right."""
        if self.verdict.outcome is not Outcome.PASSED:
            return "broken" if self.verdict.outcome is Outcome.REFUSED else "unjudged"
        return "slower" if any(change.is_regression for change in self.changes) else "right"

    def list_lines(self) -> Iterator[str]:
        """Why it is in that state: the verdict's message, and each figure that became worse, with what it was."""
        if not self.verdict.passed:
            yield self.verdict.message
        for change in self.changes:
            if change.is_regression and change.before is not None and change.before.time and change.now.time:
                unit = change.now.objective.unit
                figures = f"{write_count(change.now.time.value)} {unit}, was {write_count(change.before.time.value)}"
                tools = " -> ".join(change.toolchains or ())
                assert change.ratio is not None
                by = f"slower by a factor of {change.ratio.invert()}"
                yield f"{change.now.shape_set}: {figures}: {by}{f' ({tools})' if tools else ''}"


@dataclass(frozen=True)
class LibraryCheck:
    """What judging a library again showed."""

    folder: Path
    objective: str  # "": nothing is measured
    checks: Sequence[OperatorCheck]
    has_baseline: bool

    @property
    def exit_code(self) -> int:
        """0: all are right, and none slower; 1: one is not; 2: something could not be judged."""
        states = {check.state for check in self.checks}
        return 1 if states & {"broken", "slower"} else 2 if "unjudged" in states else 0

    def as_json(self) -> dict[str, Any]:
        rows = [
            {
                "function": check.operator.name,
                "task": check.operator.task.id,
                "state": check.state,
                "why": list(check.list_lines()),
                "verifier": check.verdict.verifier,
                "build": check.verdict.build,
                "figures": [
                    {
                        "shape_set": row.shape_set,
                        "value": to_json(row.time),
                        "unit": row.objective.unit,
                        "toolchain": row.flags,
                        "reason": row.reason,
                    }
                    for row in check.measured
                ],
                "changes": [
                    {"shape_set": change.now.shape_set, "ratio": to_json(change.ratio), "reason": change.reason}
                    for change in check.changes
                ],
            }
            for check in self.checks
        ]
        return {
            "folder": str(self.folder),
            "objective": self.objective,
            "has_baseline": self.has_baseline,
            "operators": rows,
            "exit_code": self.exit_code,
        }

    def list_lines(self) -> Iterator[str]:
        """What is said of it to people."""
        for check in self.checks:
            if check.state != "right":
                yield printable(f"{check.state}: {check.operator.name} ({check.operator.task.id})")
                yield from (printable(f"  {line}", keep="\n") for line in check.list_lines())
        counts = dict.fromkeys(("right", "broken", "slower", "unjudged"), 0)
        for check in self.checks:
            counts[check.state] += 1
        yield ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no operators"

    def _explain_skipped(self, check: OperatorCheck) -> str:
        """Why an operator's figures are beside none."""
        if check.state == "broken":
            return "it is not right, so that nothing was measured"
        if not self.objective:
            return "nothing is measured in this language"
        return next(
            (row.reason for row in check.measured if row.time is None),
            "no baseline was there yet: from the next time on figures are compared with those of now",
        )

    def write_junit(self, path: Path) -> None:
        """The file that continuous integration shows: two cases for each operator. Raises OSError."""
        suite = ElementTree.Element("testsuite", name=str(self.folder), tests=str(2 * len(self.checks)))
        for check in self.checks:
            why = printable("\n".join(check.list_lines()), keep="\n")
            for case, state in (("is right", "broken"), ("is as fast as the baseline", "slower")):
                entry = ElementTree.SubElement(suite, "testcase", classname=check.operator.name, name=case)
                if check.state == state:
                    ElementTree.SubElement(entry, "failure", message=state).text = why
                elif check.state == "unjudged":
                    ElementTree.SubElement(entry, "error", message="unjudged").text = why
                elif state == "slower" and (check.state == "broken" or not check.changes):
                    ElementTree.SubElement(entry, "skipped", message=self._explain_skipped(check))
        for kind in ("failure", "error", "skipped"):
            suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(len(suite.findall(f".//{kind}"))))
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def check_library(
    library: StoredLibrary,
    tools: LibraryTools,
    baseline: Path,
    is_accepted: bool,
    tell: Told,
    reused: Collection[str] = (),
) -> LibraryCheck:
    """Judge and measure all its programs. Figures are compared with the baseline, or written there where there is none,
    or where they are accepted: then those of before are forgotten. reused: functions that are as right, and of counted
    costs as good, as the manifest and the baseline say. Raises UsageError, RecordError, OSError."""
    has_baseline = baseline.is_file()
    before = read_baseline(baseline) if has_baseline else []
    objective, checks, count = find_objective(library), [], len(library.operators)
    waiting = [
        None if each.name in reused else tools.pool.submit(each.task, each.source, Level.FULL)
        for each in library.operators
    ]
    for number, (operator, future) in enumerate(zip(library.operators, waiting, strict=True), 1):
        tell(f"{operator.task.id}: judged and measured, {number} of {count}")
        verdict = restore_verdict(operator.record) if future is None else future.result()
        is_counted = future is None and _has_counted(operator, objective, before)
        measured = tools.measure(operator.task, operator.source, objective) if verdict.passed and not is_counted else []
        changes = compare_baseline(measured, before) if has_baseline else []
        checks.append(OperatorCheck(operator, verdict, measured, changes))
    rows = [row for check in checks for row in check.measured if row.time is not None]
    if rows and (is_accepted or not has_baseline):
        fresh = {row.problem for row in rows}
        write_baseline(baseline, [*(row for row in before if row.problem not in fresh), *rows])
    return LibraryCheck(library.folder, objective, checks, has_baseline)


def list_reusable(library: StoredLibrary) -> list[str]:
    """The functions whose verdict would be the manifest's again: of today's verifier with today's tools, on the same
    problem (a library with another text is not read), of the same program."""
    return [
        each.name
        for each in library.operators
        if each.record["verdict_now"]["verifier"] == name_verifier(get_target(each.task.target))
        and each.record["verdict_now"]["outcome"] == Outcome.PASSED
        and each.record["program"] == Candidate(each.source).id
        and each.problem == digest_problems([each.task]).get(each.task.id)
    ]


def _has_counted(operator: LibraryOperator, objective: str, before: Sequence[SpeedMeasurement]) -> bool:
    """Whether the baseline has the program's costs as these tools count them: counting again gives the same."""
    rows = [row for row in before if row.problem == operator.problem and row.objective.name == objective]
    build, program = operator.record["verdict_now"].get("build"), operator.record["program"]
    return bool(rows and build) and all(
        row.objective.is_counted and row.flags == build and row.program == program for row in rows
    )
