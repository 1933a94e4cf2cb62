"""How the audit of a task file is shown. A row per file, then every finding that is not fine; or JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table

from opsmith.judging.audited_files import Audit
from opsmith.records import printable, to_json
from opsmith.report.tables import make_table
from opsmith.targets.audit import CHECKS, SIZES, Finding, State
from opsmith.targets.problem import NO_PROGRAM

COLUMNS = (
    "answers: wrong ones, all refused; tolerance: how far a right one may be off; inputs: how many change the answer; "
    "sizes: up to twice the largest, the share that no hidden trial can reach"
)


def audit_json(audit: Audit) -> dict[str, Any]:
    """The fields of `opsmith check --json`."""
    findings = [{key: value for key, value in row.items() if value != {}} for row in to_json(audit.findings)]
    return {"task": audit.task, "state": audit.state.value, "findings": findings}


def audits_table(audits: Sequence[Audit]) -> Table:
    tried = {finding.check for audit in audits for finding in audit.findings}
    checks = [check for check in (*CHECKS, SIZES) if check in tried or check not in ("functions", SIZES)]
    rows = make_table("task", "state", *checks)
    for audit in audits:
        rows.add_row(audit.task, audit.state.value, *(_describe_state(audit, check) for check in checks))
    counts = Counter(audit.state.value for audit in audits)
    files = "task file" if len(audits) == 1 else "task files"
    rows.caption = f"{COLUMNS}\n{len(audits)} {files}: " + ", ".join(
        f"{count} {state}" for state, count in counts.items()
    )
    return rows


def _describe_state(audit: Audit, check: str) -> str:
    """What the check did, or that it went wrong."""
    findings = [finding for finding in audit.findings if finding.check == check]
    faulty = sum(finding.state is State.FAULTY for finding in findings)
    if faulty:
        return f"FAULTY ({faulty})"
    fine = [finding.tried for finding in findings if finding.state is State.FINE or check == SIZES]
    return fine[0] if fine else State.UNCHECKED.value


def findings_text(audits: Sequence[Audit]) -> Iterator[str]:
    """Which programs are missing, and every finding that is not fine, by task: its faults first, then what could not be
    checked, then notes."""
    for audit in audits:
        if audit.state is State.FINE and not any(finding.check == "program" for finding in audit.findings):
            task = printable(audit.task)
            yield f"{task}: {NO_PROGRAM.format(task=task)}"
        for state in (State.FAULTY, State.UNCHECKED, State.NOTE):
            yield from _finding_blocks(audit.task, audit.findings_of(state))


def _finding_blocks(task: str, findings: Sequence[Finding]) -> Iterator[str]:
    """One block for findings that say the same of several checks."""
    together: dict[Finding, list[str]] = {}
    for finding in findings:
        together.setdefault(replace(finding, check=""), []).append(finding.check)
    yield from (_indent_block(task, ", ".join(dict.fromkeys(checks)), finding) for finding, checks in together.items())


def _indent_block(task: str, checks: str, finding: Finding) -> str:
    rows = [f"{printable(task)}: {checks}: {finding.state}"]
    for label, text in (("tried", finding.tried), ("found", finding.found), ("try", finding.remedy)):
        if text:
            first, *following = text.strip().split("\n")
            rows += [f"  {label + ':':<7}{first}", *(textwrap.indent(line, " " * 9) for line in following)]
    return "\n".join(rows)
