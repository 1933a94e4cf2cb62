"""Why samples did not pass, in a line each, for lists of samples."""

from __future__ import annotations

from collections.abc import Sequence

from opsmith.records import Outcome
from opsmith.results.refusals import describe_finding, name_failure
from opsmith.store.attempts import Attempt
from opsmith.store.pages import SampleLine, read_failures, read_findings
from opsmith.store.queries import Reader


def read_reasons(reader: Reader, lines: Sequence[SampleLine]) -> dict[str, str]:
    """By sample; one that passed, or was not asked for yet, has none."""
    findings = read_findings(reader, [line.id for line in lines if line.outcome is Outcome.REFUSED])
    failures = read_failures(reader, [line.id for line in lines if line.outcome is None])
    reasons = {sample: describe_finding(finding) for sample, finding in findings.items()}
    return reasons | {sample: name_failure(message) for sample, message in failures.items()}


def read_attempt_reasons(reader: Reader, attempts: Sequence[Attempt]) -> dict[str, str]:
    """By the first sample of each attempt; those that passed have none."""
    findings = read_findings(reader, [one.sample for one in attempts if one.outcome is Outcome.REFUSED])
    return {sample: describe_finding(finding) for sample, finding in findings.items()}
