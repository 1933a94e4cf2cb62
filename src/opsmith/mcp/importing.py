"""A program that came from outside and was judged right, as a run of a store: imported, not earned.

Such a run has no rounds and no samples. It holds the task, the program with our verdict, and an experience of round -1;
its model is `import:CLIENT`, as the client calls itself. It is listed, shown and used (`--from`) as other runs are. A
client has one run for each language, and a further one where it solves a task another time.
"""

from __future__ import annotations

import asyncio
import re
from importlib import metadata
from itertools import count

from opsmith.learn.identity import plain_settings
from opsmith.learn.known import find_submitted, submit_program
from opsmith.records import Experience, Task, Verdict, content_hash
from opsmith.results.problems import digest_problems
from opsmith.settings import Settings
from opsmith.store import Row, Store
from opsmith.store.rows import Judged, RunInfo, SampleKey, experience_rows, judged_rows, run_end_row, run_rows
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier

__all__ = ["clean_name", "find_submitted", "import_program", "submit_program"]

PREFIX = "import:"
IMPORTED = -1  # the round of what nobody sampled
_LONGEST = 40  # characters of a client's name
_END = "imported: nothing was asked"


async def import_program(store: Store, client: str, task: Task, source: str, verdict: Verdict) -> str:
    """The run that holds the program now; the same program twice is there once. Raises StoreError."""
    assert verdict.passed
    for number in count():
        info = describe_import(clean_name(client), task.target, number)
        await asyncio.wrap_future(store.put(_write_rows(info, task, source, verdict)))
        stored = [entry.experience for entry in store.read_experiences(info.id)]
        if any(entry.task.digest == task.digest and entry.source == source for entry in stored):
            return info.id
    raise AssertionError("unreachable")


def describe_import(client: str, target: str, number: int) -> RunInfo:
    """The run of a client's programs in a language; `number`: of those that hold another program for a task."""
    model = PREFIX + client
    identity = content_hash(model, target, str(number))
    versions = {
        "opsmith": metadata.version("opsmith"),
        "target": get_target(target).name,
        "verifier": name_verifier(get_target(target)),
    }
    name = f"import-{client.replace(' ', '-')}-{identity[:10]}"
    settings = plain_settings(Settings(model=model))
    return RunInfo(name, identity, model, True, get_target(target).name, 0, settings, versions)


def clean_name(client: str) -> str:
    """A client's name as part of a run's.

    >>> clean_name("Claude Code/2.1"), clean_name("../")
    ('Claude Code 2.1', 'unnamed')
    """
    return re.sub(r"[^A-Za-z0-9._-]+", " ", client)[:_LONGEST].strip(" ._-") or "unnamed"


def _write_rows(info: RunInfo, task: Task, source: str, verdict: Verdict) -> list[Row]:
    experience = Experience(task, source, 1.0, IMPORTED, info.id)
    rows = run_rows(info, [task], digest_problems([task]))
    rows += judged_rows(SampleKey(info.id, IMPORTED, task.id, 0.0, 0), [Judged(source, verdict, agent="import")])
    rows += experience_rows(info.id, experience, None, False)
    return [*rows, run_end_row(info.id, _END)]
