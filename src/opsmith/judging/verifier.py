"""Are these candidates right? `(task, sources) -> verdicts`, in the process that calls it.

`verify` and `verify_many` never raise: a mistake of the candidate is a refusal, one of the task's author leaves it
unjudged and is charged to TASK, one of a target that is not built in is charged to TARGET, and whatever else breaks
leaves it unjudged and is charged to OURS. They execute code of the task's author, so that everything but tests calls
them through `opsmith.judging.pool`, in worker processes.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from opsmith.agents.reply import ReadReply, read_reply
from opsmith.judging.installation import read_scrutiny_here
from opsmith.records import FOR_PEOPLE, Boundary, Candidate, Diagnostic, Outcome, Scrutiny, Stage, Task, Verdict
from opsmith.targets import Checked, Target, TaskFault, Trial, TrialResult, get_target, is_lack_of_memory, is_own
from opsmith.targets.capabilities import canonical_form
from opsmith.targets.faults import fault_of, of_kind, words_of
from opsmith.targets.hidden import veil_findings
from opsmith.targets.protocols import HidesSizes

_MORE_MEMORY = "smaller sizes in the task's shape sets, or fewer workers at once"

Judge = Callable[[Task, str], Verdict]


def verify(task: Task, source: str, scrutiny: Scrutiny | None = None) -> Verdict:
    """Check `source`, then run it on the task's trials until one fails. A refusal by `check` needs no trial."""
    return verify_many(task, [source], scrutiny)[0]


def verify_reply(task: Task, reply: str, judge: Judge = verify) -> Verdict:
    """Judge the program in a model's whole reply; a reply without one is a FORMAT refusal."""
    target = get_target(task.target)
    answer = read_reply(target, task, reply)
    if answer.source is None:
        return answer.make_refusal(target.verifier)
    return with_dropped(judge(task, answer.source), answer)


def with_dropped(verdict: Verdict, reply: ReadReply) -> Verdict:
    """The verdict with a warning for each key that the reply tried to set beside the program."""
    dropped = tuple(f"reply: key {key!r} was dropped: only a program may come from a reply" for key in reply.dropped)
    return replace(verdict, warnings=dropped + verdict.warnings)


def verify_many(task: Task, sources: Sequence[str], scrutiny: Scrutiny | None = None) -> list[Verdict]:
    """One verdict per source, in order. Programs are run together: what they share, a target may compute once.

    `scrutiny` None: the cheap level with the installation's secret.
    """
    scrutiny = scrutiny or read_scrutiny_here()
    verdict_by_source: dict[str, Verdict] = {}
    open_: list[_Open] = []
    for source in dict.fromkeys(sources):
        checked = _check_source(task, source)
        if isinstance(checked, Verdict):
            verdict_by_source[source] = checked
        else:
            open_.append(checked)
    verdict_by_source.update({program.source: verdict for program, verdict in _run_trials(task, open_, scrutiny)})
    return [verdict_by_source[source] for source in sources]


def canonical_source(task: Task, source: str) -> str:
    """The target's canonical text of `source`; `source` itself where the target cannot give one."""
    try:
        return canonical_form(get_target(task.target), source)
    except Exception:  # a text that is no program: the check will say so
        return source


def leave_unjudged(source: str, charged_to: Boundary, finding: Diagnostic, verifier: str = "") -> Verdict:
    """The verdict when something other than the candidate failed."""
    name = Candidate(source).id
    return Verdict(name, Stage.FORMAT, Outcome.UNJUDGED, charged_to, (finding,), verifier=verifier)


@dataclass(eq=False)
class TrialTally:
    """What the trials of one program have shown."""

    trials: int = 0
    largest: float | None = None  # error
    undecided: int = 0
    notes: dict[str, None] = field(default_factory=dict)  # that a person should know of the verdict, each once

    def count_result(self, draws: int, result: TrialResult) -> None:
        self.trials += draws
        self.largest = larger_error(self.largest, result.max_abs_error)
        self.undecided += result.undecided
        self.add_notes(*result.notes)

    def add_notes(self, *notes: str) -> None:
        self.notes.update(dict.fromkeys(notes))

    def fill_verdict(self, verdict: Verdict) -> Verdict:
        return replace(
            verdict,
            warnings=(*verdict.warnings, *self.notes),
            max_abs_error=self.largest,
            trials=self.trials,
            undecided=self.undecided,
        )


@dataclass(eq=False)
class _Open:
    """A program that nothing has refused yet."""

    named: str  # the target, as the task says it
    target: Target
    source: str
    checked: Checked
    seconds: float
    tally: TrialTally = field(default_factory=TrialTally)

    def make_verdict(self, stage: Stage, outcome: Outcome, errors: tuple[Diagnostic, ...] = ()) -> Verdict:
        known = (Candidate(self.source).id, stage, outcome, Boundary.CANDIDATE, errors, self.checked.warnings)
        return self.tally.fill_verdict(Verdict(*known, verifier=self.target.verifier, judging_seconds=self.seconds))

    def leave_unjudged(self, charged_to: Boundary, finding: Diagnostic) -> Verdict:
        return replace(
            leave_unjudged(self.source, charged_to, finding, self.target.verifier), judging_seconds=self.seconds
        )


def _check_source(task: Task, source: str) -> Verdict | _Open:
    """The refusal by the static check, or a program to run."""
    start, version = time.perf_counter(), ""
    try:
        target = get_target(task.target)
        version = target.verifier
        checked = check_program(target, task, source)
    except TaskFault as fault:
        return leave_unjudged(source, Boundary.TASK, fault.diagnostic, version)
    except Exception as error:
        return leave_unjudged(source, *charge_error(task.target, error, "check_program"), version)
    program = _Open(task.target, target, source, checked, time.perf_counter() - start)
    if checked.stage == Stage.RUN:
        return program
    return program.make_verdict(checked.stage, Outcome.REFUSED, checked.errors)


def _run_trials(task: Task, programs: list[_Open], scrutiny: Scrutiny) -> Iterator[tuple[_Open, Verdict]]:
    """Run programs on the task's trials, cheapest first, each until one trial fails."""
    try:
        trials = trials_of(programs[0].target, task) if programs else ()
    except Exception as error:
        yield from ((program, _blame_error(program, error, "list_trials")) for program in programs)
        return
    for trial in trials:
        verdicts = _run_trial(trial, programs)
        yield from ((program, verdict) for program, verdict in verdicts if verdict is not None)
        programs = [program for program, verdict in verdicts if verdict is None]
    yield from ((program, _run_hidden_trials(task, program, scrutiny)) for program in programs)


def _run_hidden_trials(task: Task, program: _Open, scrutiny: Scrutiny) -> Verdict:
    """The verdict on a program that passed all trials of its task, after those at hidden sizes."""
    try:
        target, checked = program.target, program.checked.program
        hidden = target.hidden_trials(task, checked, scrutiny) if isinstance(target, HidesSizes) else None
        for trial in hidden.trials if hidden is not None else ():
            ((_, refusal),) = _run_trial(trial, [program])
            verdict = None if refusal is None else veil_verdict(refusal, trial.name)
            if verdict is not None:
                return verdict
    except Exception as error:
        return _blame_error(program, error, "hidden_trials")
    passed = program.make_verdict(Stage.MATCH, Outcome.PASSED)
    return passed if hidden is None else replace(passed, warnings=(*passed.warnings, *hidden.warnings))


def veil_verdict(verdict: Verdict, trial: str) -> Verdict | None:
    """The verdict of a hidden trial, as it is stored, without what would give its sizes or data away; people find it
    among the warnings. None: it counts as nobody's fault."""
    if verdict.charged_to in (Boundary.TASK, Boundary.SANDBOX):  # nobody chose these sizes
        return None
    if verdict.outcome is not Outcome.REFUSED:
        return verdict
    notes = (f"{FOR_PEOPLE}at {trial}: {error}" for error in verdict.errors)
    return replace(verdict, errors=veil_findings(verdict.errors, trial), warnings=(*verdict.warnings, *notes))


def check_program(target: Target, task: Task, source: str) -> Checked:
    """What the target says of a program before it runs. Raises TypeError or ValueError for what it does not promise."""
    checked = of_kind(target.check_program(task, source), Checked)
    if checked.stage != Stage.RUN and checked.stage.name not in target.stages:
        raise ValueError(f"given stage {checked.stage.name}; expected RUN or one of its stages: {target.stages}")
    return checked


def trials_of(target: Target, task: Task) -> list[Trial]:
    """All trials of a task. Raises TaskFault, and RuntimeError where there are none, which would pass everything."""
    trials = [of_kind(trial, Trial) for trial in target.list_trials(task)]
    if not trials:
        raise RuntimeError(f"target {task.target}: no trials for task {task.id}")
    return trials


def _run_trial(trial: Trial, programs: Sequence[_Open]) -> list[tuple[_Open, Verdict | None]]:
    """The verdicts that a trial brings; None: it was passed, or left out."""
    if not programs:
        return []
    start = time.perf_counter()
    try:
        if reason := trial.left_out():
            for program in programs:
                program.tally.add_notes(reason)
            return [(program, None) for program in programs]
        results = _ask_results(programs, trial)
    except Exception as error:
        if len(programs) > 1 and not isinstance(error, TaskFault):  # one of them broke it for all
            return [pair for program in programs for pair in _run_trial(trial, [program])]
        return [(program, _blame_error(program, error, "run_programs")) for program in programs]
    seconds = (time.perf_counter() - start) / len(programs)
    return [
        (program, _weigh_result(program, trial, result, seconds))
        for program, result in zip(programs, results, strict=True)
    ]


def _ask_results(programs: Sequence[_Open], trial: Trial) -> list[TrialResult | TaskFault]:
    """One for each program. Raises what the target raises, and TypeError or ValueError for anything else."""
    answers = programs[0].target.run_programs([program.checked.program for program in programs], trial)
    results = [of_kind(result, TrialResult, TaskFault) for result in answers]
    if len(results) != len(programs):
        raise ValueError(f"given {len(results)} results; expected one for each of {len(programs)} programs")
    return results


def _weigh_result(program: _Open, trial: Trial, result: TrialResult | TaskFault, seconds: float) -> Verdict | None:
    program.seconds += seconds
    if isinstance(result, TaskFault):
        return _blame_error(program, result, "run_programs")
    program.tally.count_result(trial.draws, result)
    if result.errors or result.stage != Stage.MATCH:
        return program.make_verdict(result.stage, Outcome.REFUSED, result.errors)
    return None


def _blame_error(program: _Open, error: Exception, method: str) -> Verdict:
    """The verdict when not the program failed but what its target's `method` did."""
    if isinstance(error, TaskFault) and not is_lack_of_memory(error.__cause__):
        return program.leave_unjudged(Boundary.TASK, error.diagnostic)
    return program.leave_unjudged(*charge_error(program.named, error, method))


def charge_error(target: str, error: BaseException, method: str = "") -> tuple[Boundary, Diagnostic]:
    """Whose failure an exception is, other than a task's author's: that of the process's limits, the target or us."""
    if is_lack_of_memory(error) or is_lack_of_memory(error.__cause__):
        return Boundary.SANDBOX, replace(describe_error(error), kind="SANDBOX", remedy=_MORE_MEMORY)
    if is_own(target):
        return Boundary.TARGET, fault_of(target, error, method)
    return Boundary.OURS, describe_error(error)


def larger_error(largest: float | None, error: float | None) -> float | None:
    """The larger of two errors; one that is not a number counts as infinite."""
    if error is None:
        return largest
    error = math.inf if math.isnan(error) else error
    return error if largest is None else max(largest, error)


def describe_error(error: BaseException) -> Diagnostic:
    """A failure of ours as a finding: the error, and the innermost places it came through."""
    frames = reversed(traceback.extract_tb(error.__traceback__, limit=-4))
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return Diagnostic(
        kind="OURS",
        where="the verifier",
        given=f"{words_of(error)} at {places}",
        expected="a verdict",
        remedy="report this as a bug; the candidate is not counted as wrong",
    )
