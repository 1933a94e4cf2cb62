"""A library judged again, after a compiler, a simulator or a driver changed: what broke, and what became slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from opsmith.export.living import LibraryTools, Told, find_objective
from opsmith.measuring.baseline import SpeedChange, compare_baseline, read_baseline, write_baseline
from opsmith.measuring.record import SpeedMeasurement
from opsmith.records import Level, Outcome, Verdict, printable, to_json
from opsmith.suites.library import LibraryOperator, StoredLibrary


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
                figures = f"{change.now.time.value:,.6g} {unit}, was {change.before.time.value:,.6g}"
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
                    ElementTree.SubElement(entry, "skipped", message="no figures to compare")
        for kind in ("failure", "error", "skipped"):
            suite.set({"failure": "failures", "error": "errors"}.get(kind, kind), str(len(suite.findall(f".//{kind}"))))
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def check_library(
    library: StoredLibrary, tools: LibraryTools, baseline: Path, is_accepted: bool, tell: Told
) -> LibraryCheck:
    """Judge and measure all its programs. Figures are compared with the baseline, or written there where there is none,
    or where they are accepted: then those of before are forgotten. Raises UsageError, RecordError, OSError."""
    has_baseline = baseline.is_file()
    before = read_baseline(baseline) if has_baseline else []
    objective, checks = find_objective(library), []
    waiting = [tools.pool.submit(each.task, each.source, Level.FULL) for each in library.operators]
    for operator, future in zip(library.operators, waiting, strict=True):
        tell(f"{operator.task.id}: judged and measured")
        verdict = future.result()
        measured = tools.measure(operator.task, operator.source, objective) if verdict.passed else []
        changes = compare_baseline(measured, before) if has_baseline else []
        checks.append(OperatorCheck(operator, verdict, measured, changes))
    rows = [row for check in checks for row in check.measured if row.time is not None]
    if rows and (is_accepted or not has_baseline):
        fresh = {row.problem for row in rows}
        write_baseline(baseline, [*(row for row in before if row.problem not in fresh), *rows])
    return LibraryCheck(library.folder, objective, checks, has_baseline)
