"""The worker's part in verdicts on candidates that are executed: it checks, gives inputs and compares outputs.

Each step answers one request about one program. Bytes travel beside the JSON of requests and answers, in the worker's
arena: a list under `blobs`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from opsmith.judging.answers import HIDDEN_TRIAL, MOVED_ANSWER, check_findings
from opsmith.judging.lazy_answers import lazy_answers, mixed_inputs, moved_answer
from opsmith.judging.verifier import charge_error, check_program, leave_unjudged, trials_of
from opsmith.records import Boundary, Diagnostic, Stage, Task, to_json
from opsmith.running.arena import CAPACITY
from opsmith.targets import Executed, Target, TaskFault, Trial, TrialResult, get_target, is_lack_of_memory
from opsmith.targets.faults import of_kind
from opsmith.targets.hidden import HiddenTrials
from opsmith.targets.protocols import HidesSizes

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
        self._checked: tuple[str, str, Any] = ("", "", None)  # task, source and program of the last right check
        self._hidden: _HiddenRun | None = None
        self.answers: Mapping[str, Step] = {
            "examine": or_unjudged("check_program", self._examine_source),
            "encode_trials": or_unjudged("encode_inputs", self._encode_trials),
            "inputs": or_unjudged("encode_inputs", self._encode_inputs),
            "compare": or_unjudged("compare_outputs", self._compare_outputs),
            "hidden": or_unjudged("hidden_trials", self._next_hidden),
            "trials": or_unjudged("list_trials", _name_trials),
            "mislead": or_unjudged("compare_outputs", _try_lazy_answers),
            "mix": or_unjudged("encode_inputs", _mix_inputs),
        }

    def _examine_source(self, task: Task, request: Request) -> Answer:
        """What the static check found, and the trials where it found nothing."""
        target, source = get_executed(task), request["source"]
        checked = check_program(target, task, source)
        check_findings(checked.errors)
        self._checked, self._hidden = (task.digest, source, checked.program), None
        trials = trials_of(target, task) if checked.stage == Stage.RUN else []
        rows = [[trial.name, trial.draws] for trial in trials]
        answer = {"stage": checked.stage, "errors": checked.errors, "warnings": checked.warnings, "trials": rows}
        return dict(to_json(answer))

    def _encode_trials(self, task: Task, request: Request) -> Answer:
        """Make the inputs of all stated trials ready, while something else is waited for."""
        for number in range(len(get_executed(task).list_trials(task))):
            self._encode_inputs(task, {**request, "trial": number})
        return {}

    def _encode_inputs(self, task: Task, request: Request) -> Answer:
        """Those of a stated trial, or why nothing is tried there; or once more those of the hidden trial."""
        number = request["trial"]
        if number == HIDDEN_TRIAL:
            return {"blobs": [_encode_checked(get_executed(task), self._find_trial(task, number))]}
        trial = self._find_trial(task, number)
        if reason := trial.left_out():
            return {"left_out": reason}
        return {"blobs": [self._inputs.encode_trial(task, number, trial)]}

    def _compare_outputs(self, task: Task, request: Request) -> Answer:
        trial = self._find_trial(task, request["trial"])
        try:
            result = of_kind(get_executed(task).compare_outputs(trial, request["blobs"][0]), TrialResult)
        except Exception as error:
            if request["trial"] == HIDDEN_TRIAL and _is_nobodys_fault(error):
                return {"left_out": ""}
            raise
        check_findings(result.errors, result.max_abs_error)
        return dict(to_json(result))

    def _next_hidden(self, task: Task, request: Request) -> Answer:
        """The next hidden trial of the program that was examined last, with its inputs; or that there is none."""
        if self._hidden is None:
            self._hidden = _HiddenRun(self._find_hidden_trials(task, request["source"]))
        return self._hidden.give_trial(get_executed(task))

    def _find_hidden_trials(self, task: Task, source: str) -> HiddenTrials:
        target = get_executed(task)
        if not isinstance(target, HidesSizes):
            return HiddenTrials()
        digest, checked_source, program = self._checked
        if (digest, checked_source) != (task.digest, source):
            program = check_program(target, task, source).program
        return target.hidden_trials(task, program) or HiddenTrials()

    def _find_trial(self, task: Task, number: int | str) -> Trial:
        if number != HIDDEN_TRIAL:
            return get_executed(task).list_trials(task)[int(number)]
        if self._hidden is None or self._hidden.trial is None:
            raise LookupError("no hidden trial was given")
        return self._hidden.trial


@dataclass
class _HiddenRun:
    """The hidden trials of one program, as they are given one after another."""

    hidden: HiddenTrials
    trial: Trial | None = None  # the one given last
    notes: dict[str, None] = field(default_factory=dict)  # why some were left out

    def give_trial(self, target: ExecutedTarget) -> Answer:
        for trial in self.hidden.trials:
            try:
                if reason := trial.left_out():
                    self.notes[reason] = None
                    continue
                inputs = _encode_checked(target, trial)
            except Exception as error:
                if _is_nobodys_fault(error):
                    continue
                raise
            self.trial = trial
            return {"name": trial.name, "draws": trial.draws, "blobs": [inputs]}
        return {"warnings": [*self.notes, *self.hidden.warnings]}


class _EncodedInputs:
    """The inputs of stated trials, which are equal for all candidates; those used longest ago are forgotten first."""

    def __init__(self) -> None:
        self._blobs: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._total = 0

    def encode_trial(self, task: Task, number: int, trial: Trial) -> bytes:
        key = task.digest, number
        if key not in self._blobs:
            self._remember(key, _encode_checked(get_executed(task), trial))
        self._blobs.move_to_end(key)
        return self._blobs[key]

    def _remember(self, key: tuple[str, int], blob: bytes) -> None:
        """The newest is remembered even if it is too large for all others."""
        self._blobs[key] = blob
        self._total += len(blob)
        while self._total > _REMEMBERED and len(self._blobs) > 1:
            self._total -= len(self._blobs.popitem(last=False)[1])


def or_unjudged(method: str, step: Step) -> Step:
    """One step towards a verdict, or the verdict when the step fails. `method`: of the target, for its author."""

    def answer_request(task: Task, request: Request) -> Answer:
        source = request["source"]
        try:
            return step(task, request)
        except TaskFault as fault:
            return {"verdict": to_json(leave_unjudged(source, Boundary.TASK, fault.diagnostic))}
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
        given, expected = f"inputs of {len(inputs)} bytes", f"at most {CAPACITY} bytes"
        remedy = "smaller sizes in the task's shape sets"
        raise TaskFault(Diagnostic("TASK", f"trial {trial.name}", given, expected, remedy))
    return inputs


def _is_nobodys_fault(error: Exception) -> bool:
    """At sizes that nobody chose: the task's author cannot have foreseen them, and memory may not suffice."""
    return isinstance(error, TaskFault) or is_lack_of_memory(error) or is_lack_of_memory(error.__cause__)


# -- audits of task files


def _name_trials(task: Task, request: Request) -> Answer:
    return {"trials": [trial.name for trial in trials_of(get_executed(task), task)]}


def _try_lazy_answers(task: Task, request: Request) -> Answer:
    """Whether answers to a trial pass that are not computed; those that do not fit there do not."""
    target, trials = get_executed(task), trials_of(get_executed(task), task)
    trial = trials[request["trial"]]
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
    drawn = [target.encode_inputs(trial) for trial in trials_of(target, task)]
    mixed = mixed_inputs(drawn[request["trial"]], drawn)
    blobs = [data for data in mixed.values() if data is not None]
    return {"mixed": {name: data is not None for name, data in mixed.items()}, "blobs": blobs}
