"""What a runtime of ours says in the candidate's process about a program that fails there, as a finding with its line.

    line 12: race on shared memory: thread 5 writes tile[5], ...; try: __syncthreads() between them
    PlanFault: line 2: launch add: given a block of 1536 threads; expected at most 1024; try: more blocks

The text comes from the program's process, so that it is words and nothing else: whatever it is, a finding stays one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from opsmith.records import Diagnostic, printable

_FAULT = re.compile(r"(?:\w+: )?line (?P<line>[1-9]\d{0,5}): (?P<words>.+)", re.DOTALL)
_WHERE = re.compile(r"(?P<where>[^;]{1,80}?): given (?P<words>.+)", re.DOTALL)


def locate_fault(source: str, finding: Diagnostic) -> Diagnostic:
    """The finding with what its words say of line, place, expectation and remedy; as it is, where they say no line."""
    match = _FAULT.fullmatch(finding.given)
    lines = source.split("\n")
    if match is None or int(match["line"]) > len(lines):
        return finding
    words, _, remedy = match["words"].partition("; try: ")
    words, _, expected = words.partition("; expected ")
    place = _WHERE.fullmatch(words)
    return replace(
        finding,
        where=f"{finding.where}, {place['where']}" if place else finding.where,
        given=place["words"] if place else words,
        expected=expected or finding.expected,
        remedy=remedy or finding.remedy,
        line=int(match["line"]),
        text=printable(lines[int(match["line"]) - 1].strip()[:300]),
    )
