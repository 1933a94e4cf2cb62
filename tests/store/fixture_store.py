"""The store that `tests/fixtures/stores` holds, one of each version: a run that was interrupted, and a finished one that
has rows of every kind.

    PYTHONPATH=tests python -m store.fixture_store opsmith.sqlite        # then: xz -9e, under the version's name

The runs are made as ever, with the embedded model; what such runs do not leave (calls of tools, batches, measurements,
later verdicts, remarks) is added to the finished one by the functions that write such rows.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

import opsmith
from opsmith.learn.events import Event, SampleJudged
from opsmith.measuring.claims import Claim
from opsmith.measuring.intervals import Interval
from opsmith.measuring.record import MeasuringGrade, SpeedMeasurement, SpeedRatio, SpeedReport
from opsmith.records import TIME, Boundary, Candidate, Suggestion
from opsmith.store import Store, rows, schema
from opsmith.store.batches import StoreLedger
from opsmith.store.measurements import Profile, StoredSpeed, profile_rows, speed_rows
from opsmith.store.notes import change_tags, write_note
from opsmith.store.rows import PROPOSER, SampleKey, ToolCallEntry
from opsmith.store.verdicts import list_judgements, reverdict_rows

UNFINISHED = opsmith.Settings(
    samples=12, temperatures=(1.0,), seed=2, max_rounds=1, tasks=("attn_1", "gemm_2", "rope_1")
)
FINISHED = opsmith.Settings(
    samples=2, temperatures=(1.0,), seed=3, max_rounds=3, plan="static", plan_after=1, depth=1, splits=1,
    tasks=("attn_1", "attn_2", "gemm_2"),
)  # fmt: skip
FEW = 12  # verdicts after which the first run is interrupted


def write_store(path: Path) -> None:
    """Raises AssertionError where a table stays empty."""
    with Store.open(path) as store:
        interrupted = opsmith.improve(
            UNFINISHED.tasks, "embedded", UNFINISHED.replace(concurrency=2), store, on_event=InterruptingListener()
        )
        assert not interrupted.finished
        finished = opsmith.improve(FINISHED.tasks, "embedded", FINISHED, store)
        assert finished.finished
        add_rows(store, finished.run)
        tables = schema.metadata.tables.values()
        empty = [table.name for table in tables if not store.fetch_rows(select(func.count()).select_from(table))[0][0]]
        assert not empty, empty


def add_rows(store: Store, run: str) -> None:
    """One of each kind that the run has not left, beside one of its samples."""
    row = next(store.list_samples(run))
    key = SampleKey(run, row.round, row.task, row.temperature, row.number)
    judgement = next(entry for entry in list_judgements(store, run, "") if entry.sample == key.id)
    later = replace(store.read_details([key.id])[key.id].candidates[-1].verdict, verifier="later/1")
    speed = StoredSpeed(key.task, key.id, SpeedReport(_measure(judgement.candidate), None), 1.5)
    profile = Profile(key.id, judgement.candidate, "cpu", "cost", "text/plain", "cycles: 7\n", key.task)
    store.put(rows.tool_call_rows(key, ToolCallEntry(0, PROPOSER, "check", "{}", "Refused.", "refused", 0.25)))
    store.put([rows.failure_row(key, Boundary.PROVIDER, "model 'embedded': no answer")])
    store.put(rows.suggestion_rows(key, Suggestion("fuse both maps", "the last line", "fewer steps", "1.2 times")))
    store.put([*speed_rows(run, speed), *profile_rows(run, profile), *reverdict_rows(run, key.id, later)])
    store.put([rows.control_row(run, "pause"), rows.control_row(run, "resume")])
    write_note(store, run, "Kept as it is.", 0)
    change_tags(store, run, ["kept"])
    ledger = StoreLedger(store)
    asyncio.run(ledger.note_submitted("embedded", "batch-1", ["a", "b"]))
    asyncio.run(ledger.note_failed("batch-1", ["b"]))


def _measure(program: str) -> SpeedMeasurement:
    own = SpeedRatio("plain", Interval(1.31, 1.30, 1.33), Interval(1.3, 1.2, 1.4), Claim.FASTER)
    return SpeedMeasurement(
        program=program, problem="p" * 64, shape_set="odd", sizes={"N": 64}, device=Candidate("cpu").id,
        protocol="pairs/1", flags="-O3", grade=MeasuringGrade.FULL, objective=TIME,
        time=Interval(812.5, 810.0, 815.25), ratio=own, pairs=100, processes=5,
    )  # fmt: skip


class InterruptingListener:
    """Ctrl-C after a few verdicts."""

    def __init__(self) -> None:
        self.verdicts = 0

    def __call__(self, event: Event) -> None:
        self.verdicts += isinstance(event, SampleJudged)
        if isinstance(event, SampleJudged) and self.verdicts == FEW:
            os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    write_store(Path(sys.argv[1]))
