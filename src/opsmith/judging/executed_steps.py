"""The worker's part in verdicts on candidates that are executed: it checks, gives inputs and compares outputs.

Each step answers one request about one program. Bytes travel beside the JSON of requests and answers, in the worker's
arena: a list under `blobs`.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from opsmith.judging.answers import MOVED_ANSWER, check_findings
from opsmith.judging.lazy_answers import lazy_answers, mixed_inputs, moved_answer
from opsmith.judging.verifier import charge_error, check_program, leave_unjudged, trials_of
from opsmith.records import Boundary, Diagnostic, Level, Scrutiny, Stage, Task, to_json
from opsmith.running.arena import CAPACITY
from opsmith.targets import (
    Executed,
    Target,
    TaskFault,
    Trial,
    TrialResult,
    get_target,
    is_lack_of_memory,
    list_runnable,
)
from opsmith.targets.faults import of_kind
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.protocols import Deployed, HidesSizes

_REMEMBERED = 128 << 20  # bytes of encoded inputs in one worker

Request = Mapping[str, Any]
Answer = dict[str, Any]
Step = Callable[[Task, Request], Answer]


class ExecutedTarget(Target, Executed, Protocol):
    """A target whose candidates are executed."""


class ExecutedSteps:
    """What one worker remembers between requests, and its answers by what is asked."""

    def __init__(self) -> None:
        self._inputs = _EncodedInputs()
        self._run: _TrialRun | None = None  # of the program that was examined last
        self.answers: Mapping[str, Step] = {
            "examine": or_unjudged("check_program", self._examine_source),
            "begin": or_unjudged("encode_inputs", self._begin_trials),
            "proceed": or_unjudged("encode_inputs", self._proceed),
            "calls": or_unjudged("compare_calls", self._compare_calls),
            "repeat": or_unjudged("encode_inputs", self._repeat_inputs),
            "trials": or_unjudged("list_trials", _name_trials),
            "inputs": or_unjudged("encode_inputs", _encode_inputs),
            "compare": or_unjudged("compare_outputs", _compare_outputs),
            "mislead": or_unjudged("compare_outputs", _try_lazy_answers),
            "mix": or_unjudged("encode_inputs", _mix_inputs),
        }

    def _examine_source(self, task: Task, request: Request) -> Answer:
        """What the static check found."""
        target, source = get_executed(task), request["source"]
        checked = check_program(target, task, source)
        check_findings(checked.errors)
        trials = trials_of(target, task) if checked.stage == Stage.RUN else []
        self._run = _TrialRun(target, task, checked.program, request["scrutiny"], trials, self._inputs)
        return dict(to_json({"stage": checked.stage, "errors": checked.errors, "warnings": checked.warnings}))

    def _begin_trials(self, task: Task, request: Request) -> Answer:
        """The first trial of the program that was examined. The inputs of the others are made ready on the way."""
        run = self._find_run()
        with contextlib.suppress(Exception):  # said where they are needed, if they are
            for number in range(len(run.stated)):
                run.encode_stated(number)
        return run.give_next()

    def _proceed(self, task: Task, request: Request) -> Answer:
        """What the outputs of the trial that was given last show; and the next trial, unless they are wrong."""
        run = self._find_run()
        result = run.compare_outputs(request["blobs"][0])
        is_wrong = result is not None and (result.stage != Stage.MATCH or bool(result.errors))
        return {"result": to_json(result), **({} if is_wrong else run.give_next())}

    def _compare_calls(self, task: Task, request: Request) -> Answer:
        """What calls in a process of the program's own show, of a trial by its number among those given."""
        run = self._find_run()
        assert isinstance(run.target, Deployed)
        return dict(to_json(run.target.compare_calls(run.given[request["number"]], request["blobs"][0])))

    def _repeat_inputs(self, task: Task, request: Request) -> Answer:
        """Those of the trial that was given last."""
        return {"blobs": [self._find_run().encode_last()]}

    def _find_run(self) -> _TrialRun:
        if self._run is None:
            raise LookupError("no program was examined")
        return self._run


@dataclass
class _TrialRun:
    """The trials of one program, given one after another: the stated ones, then those at hidden sizes."""

    target: ExecutedTarget
    task: Task
    program: Any
    scrutiny: Scrutiny
    stated: Sequence[Trial]
    inputs: _EncodedInputs
    following: int = 0  # the stated trial that is next
    hidden: HiddenTrials | None = None  # None: the stated ones come first
    trial: Trial | None = None  # the one given last
    given: list[Trial] = field(default_factory=list)  # all of them, of a program that is to be kept
    notes: dict[str, None] = field(default_factory=dict)  # why some were left out

    def give_next(self) -> Answer:
        """The next trial with its inputs, unless all were given; and what a person should know of those left out."""
        while self.following < len(self.stated):
            number, self.following = self.following, self.following + 1
            self.trial = self.stated[number].scrutinise(self.scrutiny)
            if not self._is_left_out(self.trial):
                return self._describe_trial(self.trial, self.encode_stated(number))
        if self.hidden is None:
            self.hidden = self._find_hidden()
        for trial in self.hidden.trials:
            self.trial = trial.scrutinise(self.scrutiny)
            inputs = self._encode_hidden(self.trial)
            if inputs is not None:
                return self._describe_trial(self.trial, inputs)
        return {"warnings": [*self.notes, *self.hidden.warnings]}  # the latter are whole now

    def compare_outputs(self, outputs: bytes) -> TrialResult | None:
        """None: the trial counts as nobody's fault."""
        assert self.trial is not None
        with calling("compare_outputs"):
            try:
                return compare_checked(self.target, self.trial, outputs)
            except Exception as error:
                if self.hidden is not None and _is_nobodys_fault(error):
                    return None
                raise

    def encode_stated(self, number: int) -> bytes:
        trial = self.stated[number].scrutinise(self.scrutiny)
        return self.inputs.encode_trial(self.task, number, trial, self.scrutiny)

    def encode_last(self) -> bytes:
        assert self.trial is not None
        return _encode_checked(self.target, self.trial)

    def _find_hidden(self) -> HiddenTrials:
        if not isinstance(self.target, HidesSizes):
            return HiddenTrials()
        with calling("hidden_trials"):
            return self.target.hidden_trials(self.task, self.program, self.scrutiny) or HiddenTrials()

    def _encode_hidden(self, trial: Trial) -> bytes | None:
        """None: it is left out."""
        try:
            return None if self._is_left_out(trial) else _encode_checked(self.target, trial)
        except Exception as error:
            if _is_nobodys_fault(error):
                return None
            raise

    def _is_left_out(self, trial: Trial) -> bool:
        reason = trial.left_out()
        if reason:
            self.notes[reason] = None
        return bool(reason)

    def _describe_trial(self, trial: Trial, inputs: bytes) -> Answer:
        if self.scrutiny.level is Level.FULL:
            self.given.append(trial)
        description = {"name": trial.name, "draws": trial.draws, "is_hidden": self.hidden is not None}
        return {"trial": description, "warnings": list(self.notes), "blobs": [inputs]}


class _EncodedInputs:
    """The inputs of stated trials, which are equal for all candidates; those used longest ago are forgotten first."""

    def __init__(self) -> None:
        self._blobs: OrderedDict[tuple[str, int, Scrutiny], bytes] = OrderedDict()
        self._total = 0

    def encode_trial(self, task: Task, number: int, trial: Trial, scrutiny: Scrutiny) -> bytes:
        key = task.digest, number, scrutiny
        if key not in self._blobs:
            self._remember(key, _encode_checked(get_executed(task), trial))
        self._blobs.move_to_end(key)
        return self._blobs[key]

    def _remember(self, key: tuple[str, int, Scrutiny], blob: bytes) -> None:
        """The newest is remembered even if it is too large for all others."""
        self._blobs[key] = blob
        self._total += len(blob)
        while self._total > _REMEMBERED and len(self._blobs) > 1:
            self._total -= len(self._blobs.popitem(last=False)[1])


class _CallError(Exception):
    """Around what a method of the target raised that is not the one a step is named for."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__(method)
        self.method, self.error = method, error


@contextlib.contextmanager
def calling(method: str) -> Iterator[None]:
    """Around a call of another method of the target than the step's own, so that its author is told which."""
    try:
        yield
    except TaskFault:
        raise
    except Exception as error:
        raise _CallError(method, error) from error


def or_unjudged(method: str, step: Step) -> Step:
    """One step towards a verdict, or the verdict when the step fails. `method`: of the target, for its author."""

    def answer_request(task: Task, request: Request) -> Answer:
        source = request["source"]
        try:
            return step(task, request)
        except TaskFault as fault:
            return {"verdict": to_json(leave_unjudged(source, Boundary.TASK, fault.diagnostic))}
        except _CallError as call:
            return {"verdict": to_json(leave_unjudged(source, *charge_error(task.target, call.error, call.method)))}
        except BaseException as error:
            return {"verdict": to_json(leave_unjudged(source, *charge_error(task.target, error, method)))}

    return answer_request


def get_executed(task: Task) -> ExecutedTarget:
    target = get_target(task.target)
    if not isinstance(target, Executed):
        raise TypeError(f"target {target.name}: its candidates are not executed")
    return cast(ExecutedTarget, target)


def _encode_checked(target: ExecutedTarget, trial: Trial) -> bytes:
    """A trial's inputs. Raises TaskFault for more than an arena holds."""
    inputs = of_kind(target.encode_inputs(trial), bytes)
    if len(inputs) > CAPACITY:
        actual, expected = f"inputs of {len(inputs)} bytes", f"at most {CAPACITY} bytes"
        remedy = "smaller sizes in the task's shape sets"
        raise TaskFault(Diagnostic("TASK", f"trial {trial.name}", actual, expected, remedy))
    return inputs


def compare_checked(target: ExecutedTarget, trial: Trial, outputs: bytes) -> TrialResult:
    """Raises TypeError for what is no result, and what the target raises."""
    result = of_kind(target.compare_outputs(trial, outputs), TrialResult)
    check_findings(result.errors, result.max_abs_error)
    return result


def _is_nobodys_fault(error: Exception) -> bool:
    """At sizes that nobody chose: the task's author cannot have foreseen them, and memory may not suffice."""
    return isinstance(error, TaskFault) or is_lack_of_memory(error) or is_lack_of_memory(error.__cause__)


# -- audits of task files


def _list_audited(task: Task) -> list[Trial]:
    """The trials that candidates are tried at. Raises TaskFault, and RuntimeError where there are none."""
    return list_runnable(trials_of(get_executed(task), task))


def _name_trials(task: Task, request: Request) -> Answer:
    return {"trials": [trial.name for trial in _list_audited(task)]}


def _encode_inputs(task: Task, request: Request) -> Answer:
    return {"blobs": [_encode_checked(get_executed(task), _list_audited(task)[request["trial"]])]}


def _compare_outputs(task: Task, request: Request) -> Answer:
    trial = _list_audited(task)[request["trial"]]
    return dict(to_json(compare_checked(get_executed(task), trial, request["blobs"][0])))


def _try_lazy_answers(task: Task, request: Request) -> Answer:
    """Whether answers to a trial pass that are not computed; those that do not fit there do not."""
    target, trial = get_executed(task), _list_audited(task)[request["trial"]]
    right, first, neighbour = request["blobs"]
    answers = dict(lazy_answers(right, first, neighbour, target.encode_inputs(trial)))
    passes: dict[str, bool | None] = {name: _accepts_outputs(target, trial, answer) for name, answer in answers.items()}
    moved = moved_answer(right)
    return {"passes": {**passes, MOVED_ANSWER: None if moved is None else _accepts_outputs(target, trial, moved)}}


def _accepts_outputs(target: Executed, trial: Trial, outputs: bytes | None) -> bool:
    if outputs is None:
        return False
    result = target.compare_outputs(trial, outputs)
    return result.stage == Stage.MATCH and not result.errors


def _mix_inputs(task: Task, request: Request) -> Answer:
    """By name of an input the mixture, or that there is none: blobs lie in the order of the names that have one."""
    target = get_executed(task)
    drawn = [target.encode_inputs(trial) for trial in _list_audited(task)]
    mixed = mixed_inputs(drawn[request["trial"]], drawn)
    blobs = [data for data in mixed.values() if data is not None]
    return {"mixed": {name: data is not None for name, data in mixed.items()}, "blobs": blobs}
