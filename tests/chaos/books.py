"""What does a store hold, against what was sent and what an undisturbed run holds?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opsmith.store import Store

Contents = frozenset[tuple[str, str]]
Where = Path | str

BLAMELESS = {"sandbox", "ours", "provider"}  # whom a sample without a verdict may be charged to
OF_SAMPLES = {"request", "reply", "candidate", "verdict"}  # tables


def contents(where: Where, run: str) -> Contents:
    with Store.open(where) as store:
        return store.read_contents(run)


def replies(where: Where, run: str) -> list[str]:
    """The texts of all replies that are stored."""
    with Store.open(where) as store:
        samples = [store.find_sample(run, row.id) for row in store.list_samples(run)]
    return sorted(call.reply.texts[0] for sample in samples for call in sample.calls)


def unjudged(where: Where, run: str, whole: Contents) -> list[str]:
    """The reasons why samples have no verdict, in a run of one round that has all others as the undisturbed run has."""
    with Store.open(where) as store:
        failures = store.read_failures(run, 0)
    assert {charged for _, charged, _ in failures} <= BLAMELESS
    found = contents(where, run)
    ours, theirs = _samples(found), _samples(whole)
    assert ours <= theirs, "no verdict is another one than it would have been"
    assert len(_judged(theirs - ours)) == len(failures), "who has no verdict has a reason"
    assert failures or found == whole
    return [message for _, _, message in failures]


def _samples(found: Contents) -> Contents:
    return frozenset(row for row in found if row[0] in OF_SAMPLES)


def _judged(found: Contents) -> set[str]:
    """The samples whose verdicts are among these rows."""
    rows: list[dict[str, Any]] = [json.loads(text) for table, text in found if table == "verdict"]
    return {row["sample"] for row in rows if row["final"]}
