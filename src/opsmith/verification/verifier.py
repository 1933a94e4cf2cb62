"""Is this candidate right? `(task, source) -> Verdict`, in the process that calls it.

`verify` never raises: a mistake of the candidate is a refusal, a mistake of the task's author leaves it unjudged and
is charged to TASK, and whatever else breaks leaves it unjudged and is charged to OURS. It executes code of the task's
author, so everything but tests calls it through `opsmith.verification.pool`, which keeps that code in worker processes.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from opsmith.agents.reply import ReadReply, read_reply
from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Task, Verdict
from opsmith.targets import Checked, Target, TaskFault, get_target

Judge = Callable[[Task, str], Verdict]
JudgeAll = Callable[[Task, Sequence[str]], Iterable[Verdict]]


def verify(task: Task, source: str) -> Verdict:
    """Check `source`, then run it on the task's trials until one fails. A refusal by `check` needs no trial."""
    start = time.perf_counter()
    verdict = _guarded(task, source)
    return replace(verdict, seconds=time.perf_counter() - start)


def verify_reply(task: Task, reply: str, judge: Judge = verify) -> Verdict:
    """Judge the program in a model's whole reply; a reply without one is a FORMAT refusal."""
    target = get_target(task.target)
    found = read_reply(target, task, reply)
    if found.source is None:
        return found.refusal(target.verifier)
    return with_dropped(judge(task, found.source), found)


def with_dropped(verdict: Verdict, found: ReadReply) -> Verdict:
    """The verdict with a warning for each key that the reply tried to set beside the program."""
    dropped = tuple(f"reply: key {key!r} was dropped: only a program may come from a reply" for key in found.dropped)
    return replace(verdict, warnings=dropped + verdict.warnings)


def verify_many(task: Task, sources: Sequence[str], judge_all: JudgeAll | None = None) -> list[Verdict]:
    """One verdict per source, in order. Isomorphic sources are run once.

    A refusal before RUN quotes the names and lines of its own text and is cheap, so it is made anew for each source.
    """
    judge_all = judge_all or _verify_each
    names = {source: canonical(task, source) for source in sources}
    firsts: dict[str, str] = {}
    for source, name in names.items():
        firsts.setdefault(name, source)
    shared = dict(zip(firsts, judge_all(task, list(firsts.values())), strict=True))
    own = [source for source, name in names.items() if source != firsts[name] and _refused_early(shared[name])]
    anew = dict(zip(own, judge_all(task, own), strict=True))
    return [anew.get(text) or replace(shared[names[text]], candidate=Candidate(text).id) for text in sources]


def canonical(task: Task, source: str) -> str:
    """The target's canonical text of `source`; `source` itself where the target cannot give one."""
    try:
        return get_target(task.target).canonical(source)
    except Exception:  # a text that is no program: the check will say so
        return source


def unjudged(source: str, charged_to: Boundary, finding: Diagnostic, verifier: str = "") -> Verdict:
    """The verdict when something other than the candidate failed."""
    name = Candidate(source).id
    return Verdict(name, Stage.FORMAT, Outcome.UNJUDGED, charged_to, (finding,), verifier=verifier)


def _verify_each(task: Task, sources: Sequence[str]) -> list[Verdict]:
    return [verify(task, source) for source in sources]


def _refused_early(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.REFUSED and verdict.stage.value < Stage.RUN.value


def _guarded(task: Task, source: str) -> Verdict:
    version = ""
    try:
        target = get_target(task.target)
        version = target.verifier
        return _judged(target, task, source)
    except TaskFault as fault:
        return unjudged(source, Boundary.TASK, fault.diagnostic, version)
    except Exception as error:
        return unjudged(source, Boundary.OURS, describe(error), version)


def _judged(target: Target, task: Task, source: str) -> Verdict:
    checked = target.check(task, source)
    if checked.stage is not Stage.RUN:
        return _verdict(target, source, checked, checked.stage, Outcome.REFUSED, checked.errors)
    largest: float | None = None
    trials = target.trials(task)
    for count, trial in enumerate(trials, 1):
        result = target.run(checked.program, trial)
        largest = _larger(largest, result.max_abs_error)
        if result.errors or result.stage is not Stage.MATCH:
            found = _verdict(target, source, checked, result.stage, Outcome.REFUSED, result.errors)
            return replace(found, max_abs_error=largest, trials=count)
    if not trials:
        raise RuntimeError(f"target {target.name}: no trials for task {task.id}")
    passed = _verdict(target, source, checked, Stage.MATCH, Outcome.PASSED, ())
    return replace(passed, max_abs_error=largest, trials=len(trials))


def _verdict(
    target: Target, source: str, checked: Checked, stage: Stage, outcome: Outcome, errors: tuple[Diagnostic, ...]
) -> Verdict:
    name = Candidate(source).id
    return Verdict(name, stage, outcome, Boundary.CANDIDATE, errors, checked.warnings, verifier=target.verifier)


def _larger(largest: float | None, seen: float | None) -> float | None:
    """The larger of two errors; one that is not a number counts as infinite."""
    if seen is None:
        return largest
    seen = math.inf if math.isnan(seen) else seen
    return seen if largest is None else max(largest, seen)


def describe(error: BaseException) -> Diagnostic:
    """A failure of ours as a finding: the error, and the innermost places it came through."""
    what = "".join(traceback.TracebackException.from_exception(error).format_exception_only()).strip()
    frames = reversed(traceback.extract_tb(error.__traceback__, limit=-4))
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return Diagnostic(
        kind="OURS",
        where="the verifier",
        given=f"{what[:1000]} at {places}",
        expected="a verdict",
        remedy="report this as a bug; the candidate is not counted as wrong",
    )
