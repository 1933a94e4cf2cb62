"""The audit of a problem file: every check that needs no language, on data in the declared types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opsmith.problems.audit.answers import check_answers
from opsmith.problems.audit.data import note_distributions, prepare_material
from opsmith.problems.audit.findings import SIZES, Finding, State
from opsmith.problems.audit.reference import check_inputs, check_reference, check_tolerance, note_narrowing
from opsmith.problems.audit.ties import note_ties
from opsmith.problems.native import NativeData
from opsmith.problems.problem import Problem
from opsmith.problems.shape_sets import explain_shape_sets
from opsmith.problems.size_coverage import find_unreached, write_unreached

_AFTER_DATA = ("reference", "answers", "tolerance", "inputs")
_WORDS = {  # what task files call it -> what problem files do
    "a data_transform": "the reference",
    "data_transform": "the reference",
    "`data_gen: torch.rand`, or `min: 0` of randint": "`data: uniform(0, 1)`",
    "`data_gen`": "`data`",
    "task file": "problem file",
}


def audit_problem(problem: Problem) -> Iterator[Finding]:
    """All findings on a problem with a `reference`; a check that needs another one's success says so.

    It runs code of the author. It shows weak data, not that the reference means what its author had in mind.
    """
    for finding in _find_all(problem):
        text = explain_shape_sets(problem, _use_own_words(finding.found))
        yield replace(finding, found=text, remedy=_use_own_words(finding.remedy))


def _find_all(problem: Problem) -> Iterator[Finding]:
    drawn = NativeData(problem)
    material, data = prepare_material(lambda: drawn)
    yield data
    if material is None or data.state is State.FAULTY:
        reason = "the data of some trials cannot be made"
        yield from (Finding(name, State.UNCHECKED, "nothing", reason) for name in _AFTER_DATA)
        return
    yield check_reference(material)
    yield from check_answers(material)
    yield from note_ties(material)
    yield check_tolerance(material)
    yield from note_narrowing(f"the reference of {name}" for name in material.narrowed_outputs)
    yield from check_inputs(material)
    yield from note_distributions(drawn.explain_distributions())
    yield _check_sizes(problem)


def _check_sizes(problem: Problem) -> Finding:
    """Which share of each dim's sizes, up to twice the largest stated one, no hidden draw can reach."""
    shares = find_unreached(problem)
    figures = {level.value: dict(row) for level, row in shares.items()}
    largest = ", ".join(f"{level} {100 * max(row.values(), default=0.0):.3g} %" for level, row in shares.items())
    is_whole = not any(any(row.values()) for row in shares.values())
    state, found = (State.FINE, "") if is_whole else (State.NOTE, write_unreached(shares))
    return Finding(SIZES, state, f"out of reach: {largest}", found, figures=figures)


def _use_own_words(text: str) -> str:
    for word, own in _WORDS.items():
        text = text.replace(word, own)
    return text
