"""How is the audit of a task file shown? A row per file, then every finding that is not fine; or JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from opsmith.records import to_json
from opsmith.report.tables import table
from opsmith.targets.audited import CHECKS, Finding, State
from opsmith.verification.audited_files import Audit


def audit_json(audit: Audit) -> dict[str, Any]:
    """The fields of `opsmith check --json`."""
    return {"task": audit.task, "state": audit.state.value, "findings": to_json(audit.findings)}


def audits_table(audits: Sequence[Audit]) -> Table:
    made = table("task", "state", *CHECKS)
    for audit in audits:
        made.add_row(audit.task, audit.state.value, *(_cell(audit, check) for check in CHECKS))
    counts = Counter(audit.state.value for audit in audits)
    files = "task file" if len(audits) == 1 else "task files"
    made.caption = f"{len(audits)} {files}: " + ", ".join(f"{count} {state}" for state, count in counts.items())
    made.caption_justify = "left"
    return made


def _cell(audit: Audit, check: str) -> str:
    """What the check did, or that it went wrong."""
    findings = [finding for finding in audit.findings if finding.check == check]
    faulty = sum(finding.state is State.FAULTY for finding in findings)
    if faulty:
        return f"FAULTY ({faulty})"
    fine = [finding.tried for finding in findings if finding.state is State.FINE]
    return fine[0] if fine else State.UNCHECKED.value


def findings_text(audits: Sequence[Audit]) -> Iterator[str]:
    """Every finding that is not fine, faults last: they stand where the reader is."""
    for state in (State.NOTE, State.UNCHECKED, State.FAULTY):
        for audit in audits:
            yield from (_block(audit.task, finding) for finding in audit.of(state))


def _block(task: str, finding: Finding) -> str:
    rows = [f"{task}: {finding.check}: {finding.state}"]
    for label, text in (("tried", finding.tried), ("found", finding.found), ("try", finding.remedy)):
        if text:
            first, *rest = text.strip().split("\n")
            rows += [f"  {label + ':':<7}{first}", *(textwrap.indent(line, " " * 9) for line in rest)]
    return "\n".join(rows)
