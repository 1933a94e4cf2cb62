"""Runs written down without a model: each task's own program as the reply of one sample, wrong ones as those of others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Diagnostic, Experience, Outcome, Stage, Task, Usage, Verdict
from opsmith.store import Store
from opsmith.store.rows import (
    PROPOSER,
    Judged,
    RoundInfo,
    RunInfo,
    SampleKey,
    experience_rows,
    judged_rows,
    prompt_rows,
    reply_rows,
    round_row,
    run_rows,
)

RUN = "model-s0-0123456789"
OLD = "old-1"  # a verifier that is no longer there


@dataclass(frozen=True)
class Said:
    """One sample: what was replied, the program in it, and the verdict of then."""

    program: str | None
    right: bool
    round: int = 0
    reply: str = ""  # "": the program in a fence


def info(target: str = "step", **told: object) -> RunInfo:
    settings = {"agents": "single", "guardian": "static", "samples": 4, "tasks": ["/home/somebody/tasks"]}
    versions = {"opsmith": "0.1.0", "target": target, "verifier": OLD}
    values = {"model": "some-model", "is_language_model": True, "seed": 0, **told}
    return RunInfo(id=RUN, identity="0" * 64, target=target, settings=settings, versions=versions, **values)


def write_run(
    folder: Path,
    said: Mapping[str, Sequence[Said]],
    tasks: Sequence[Task],
    run: RunInfo | None = None,
    demonstrations: Mapping[int, Sequence[tuple[str, str]]] = {},
) -> Store:
    """A store with one run: the samples of each task; the first right one of a task is kept."""
    run = run or info()
    store = Store.open(folder)
    rows = run_rows(run, tasks)
    for number in {one.round for every in said.values() for one in every}:
        shown = tuple((task, Candidate(source).id) for task, source in demonstrations.get(number, ()))
        names = tuple(task.id for task in tasks)
        rows.append(round_row(run.id, RoundInfo(number, 0, "none", shown, names, 4)))
    for task in tasks:
        kept = False
        for number, one in enumerate(said.get(task.id, ())):
            key = SampleKey(run.id, one.round, task.id, 0.5, number)
            rows += _sample_rows(key, one)
            if one.right and not kept:
                kept = True
                assert one.program is not None
                found = Experience(task, one.program, 0.25, one.round, run.id)
                rows += experience_rows(run.id, found, key.id, False)
    store.put(rows).result()
    return store


def _sample_rows(key: SampleKey, one: Said):
    messages = (Message("system", "write programs"), Message("user", f"task: {key.task}, round {key.round}"))
    reply = one.reply or f"```\n{one.program}\n```"
    request = Request(messages, 1, key.temperature, 100, 7)
    prompt, rows = prompt_rows(messages)
    rows = [
        *rows,
        *reply_rows(key, PROPOSER, prompt, request, Reply((reply,), Usage(1, 100, 20, 0, 0.01), "m", ("stop",)), 0.1),
    ]
    return [*rows, *judged_rows(key, [Judged(one.program, verdict_of_then(one))])]


def verdict_of_then(one: Said) -> Verdict:
    name = "" if one.program is None else Candidate(one.program).id
    if one.right:
        return Verdict(name, Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE, trials=3, verifier=OLD)
    stage = Stage.FORMAT if one.program is None else Stage.MATCH
    finding = Diagnostic("DATA", "output", "wrong values", "right ones")
    return Verdict(name, stage, Outcome.REFUSED, Boundary.CANDIDATE, (finding,), trials=1, verifier=OLD)


def oracles(tasks: Sequence[Task]) -> dict[str, list[Said]]:
    """Each task's own program, as the only sample."""
    return {task.id: [Said(task.impl, True)] for task in tasks}
