"""What happened. The questions to a store, one module for each thing that is asked about, and the records that answer.

`runs`, `requests`, `rounds`, `samples` and `measurements` hold what learning and reports ask about every run; what only
some reports ask lies beside them (`attempts`, `spending`, `pages`, `verdicts`).
"""

from __future__ import annotations

from opsmith.store.measurements import SpeedQueries, StoredSpeed
from opsmith.store.notes import NoteQueries
from opsmith.store.plans import PlanQueries, StoredPlan
from opsmith.store.rounds import Answer, RoundQueries, Tally
from opsmith.store.runs import KeptExperience, RunQueries, RunSummary, StoredKnown
from opsmith.store.samples import Call, CandidateRow, SampleDetail, SampleQueries, SampleRow
from opsmith.store.steps import StepQueries, StepRow
from opsmith.store.tool_calls import ToolCallQueries

__all__ = [
    "Answer",
    "Call",
    "CandidateRow",
    "KeptExperience",
    "Reader",
    "RunSummary",
    "SampleDetail",
    "SampleRow",
    "StepRow",
    "StoredKnown",
    "StoredPlan",
    "StoredSpeed",
    "Tally",
]


class Reader(
    RunQueries, RoundQueries, SampleQueries, SpeedQueries, StepQueries, PlanQueries, ToolCallQueries, NoteQueries
):
    """All of them, answered from what is committed.

    Raises UsageError for a run or sample that does not exist, StoreError when the store cannot be read.
    """
