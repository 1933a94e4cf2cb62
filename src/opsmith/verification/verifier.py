"""Are these candidates right? `(task, sources) -> verdicts`, in the process that calls it.

`verify` and `verify_many` never raise: a mistake of the candidate is a refusal, one of the task's author leaves it
unjudged and is charged to TASK, and whatever else breaks leaves it unjudged and is charged to OURS. They execute code
of the task's author, so that everything but tests calls them through `opsmith.verification.pool`, in worker processes.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opsmith.agents.reply import ReadReply, read_reply
from opsmith.records import Boundary, Candidate, Diagnostic, Outcome, Stage, Task, Verdict
from opsmith.targets import Checked, Target, TaskFault, Trial, TrialResult, get_target

_MORE_MEMORY = "smaller sizes in the task's shape sets, or fewer workers at once"

Judge = Callable[[Task, str], Verdict]


def verify(task: Task, source: str) -> Verdict:
    """Check `source`, then run it on the task's trials until one fails. A refusal by `check` needs no trial."""
    return verify_many(task, [source])[0]


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


def verify_many(task: Task, sources: Sequence[str]) -> list[Verdict]:
    """One verdict per source, in order. Programs are run together: what they share, a target may compute once."""
    found: dict[str, Verdict] = {}
    open_: list[_Open] = []
    for source in dict.fromkeys(sources):
        checked = _checked(task, source)
        if isinstance(checked, Verdict):
            found[source] = checked
        else:
            open_.append(checked)
    found.update({program.source: verdict for program, verdict in _tried(task, open_)})
    return [found[source] for source in sources]


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


@dataclass(eq=False)
class _Open:
    """A program that nothing has refused yet."""

    target: Target
    source: str
    checked: Checked
    seconds: float
    trials: int = 0
    largest: float | None = None

    def verdict(self, stage: Stage, outcome: Outcome, errors: tuple[Diagnostic, ...] = ()) -> Verdict:
        name, warnings, version = Candidate(self.source).id, self.checked.warnings, self.target.verifier
        figures = (self.largest, self.trials, version, self.seconds)
        return Verdict(name, stage, outcome, Boundary.CANDIDATE, errors, warnings, *figures)

    def unjudged(self, charged_to: Boundary, finding: Diagnostic) -> Verdict:
        return replace(unjudged(self.source, charged_to, finding, self.target.verifier), seconds=self.seconds)


def _checked(task: Task, source: str) -> Verdict | _Open:
    """The refusal by the static check, or a program to run."""
    start, version = time.perf_counter(), ""
    try:
        target = get_target(task.target)
        version = target.verifier
        checked = target.check(task, source)
    except TaskFault as fault:
        return unjudged(source, Boundary.TASK, fault.diagnostic, version)
    except Exception as error:
        return unjudged(source, Boundary.OURS, describe(error), version)
    program = _Open(target, source, checked, time.perf_counter() - start)
    if checked.stage is Stage.RUN:
        return program
    return program.verdict(checked.stage, Outcome.REFUSED, checked.errors)


def _tried(task: Task, programs: list[_Open]) -> Iterator[tuple[_Open, Verdict]]:
    """Run programs on the task's trials, cheapest first, each until one trial fails."""
    try:
        trials = programs[0].target.trials(task) if programs else ()
        if programs and not trials:
            raise RuntimeError(f"target {task.target}: no trials for task {task.id}")
    except Exception as error:
        yield from ((program, _broken(program, error)) for program in programs)
        return
    for trial in trials:
        judged = _on(trial, programs)
        yield from ((program, verdict) for program, verdict in judged if verdict is not None)
        programs = [program for program, verdict in judged if verdict is None]
    yield from ((program, program.verdict(Stage.MATCH, Outcome.PASSED)) for program in programs)


def _on(trial: Trial, programs: Sequence[_Open]) -> list[tuple[_Open, Verdict | None]]:
    """The verdicts that a trial brings; None: it was passed."""
    if not programs:
        return []
    start = time.perf_counter()
    try:
        results = list(programs[0].target.run([program.checked.program for program in programs], trial))
    except Exception as error:
        if len(programs) > 1 and not isinstance(error, TaskFault):  # one of them broke it for all
            return [pair for program in programs for pair in _on(trial, [program])]
        return [(program, _broken(program, error)) for program in programs]
    seconds = (time.perf_counter() - start) / len(programs)
    return [
        (program, _after(program, trial, result, seconds)) for program, result in zip(programs, results, strict=True)
    ]


def _after(program: _Open, trial: Trial, result: TrialResult | TaskFault, seconds: float) -> Verdict | None:
    program.seconds += seconds
    if isinstance(result, TaskFault):
        return _broken(program, result)
    program.trials += trial.draws
    program.largest = larger(program.largest, result.max_abs_error)
    if result.errors or result.stage is not Stage.MATCH:
        return program.verdict(result.stage, Outcome.REFUSED, result.errors)
    return None


def _broken(program: _Open, error: Exception) -> Verdict:
    """The verdict when not the program failed: a fault of the task's author, the limits of the process, or ours."""
    if _is_lack_of_memory(error) or _is_lack_of_memory(error.__cause__):
        return program.unjudged(Boundary.SANDBOX, replace(describe(error), kind="SANDBOX", remedy=_MORE_MEMORY))
    if isinstance(error, TaskFault):
        return program.unjudged(Boundary.TASK, error.diagnostic)
    return program.unjudged(Boundary.OURS, describe(error))


def _is_lack_of_memory(error: BaseException | None) -> bool:
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't allocate memory" in str(error))


def larger(largest: float | None, seen: float | None) -> float | None:
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
