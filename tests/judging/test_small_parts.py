"""Parts of judging on their own: limits, words of errors, work that is given up, and what a worker may answer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tiny_target import Tiny

from opsmith.errors import TargetError, TaskError, UsageError, VerifierError
from opsmith.judging import executed_steps
from opsmith.judging.abandonment import WorkUnderWay
from opsmith.judging.audited_files import Audit, audit_files, exit_code
from opsmith.judging.candidate import LONGEST_ERROR, _describe_error, _shorten_text
from opsmith.judging.commanded import CommandedProgram
from opsmith.judging.executed_audit import _check_tolerance, _find_ignored
from opsmith.judging.executed_steps import ExecutedSteps, _EncodedInputs, _TrialRun, or_unjudged
from opsmith.judging.execution import NotRunError, NotStartedError
from opsmith.judging.files import _split_message
from opsmith.judging.files import exit_code as files_exit_code
from opsmith.judging.installation import read_installation_secret, read_scrutiny_here
from opsmith.judging.judge import Solution, import_experiences
from opsmith.judging.limits import Limits, limits_of_run
from opsmith.judging.plans import read_plans
from opsmith.judging.verifier import TrialTally, canonical_source, charge_error, describe_error, larger_error, verify
from opsmith.judging.worker import _or_problem, _read_by_target
from opsmith.records import Boundary, Diagnostic, Level, Outcome, Scrutiny, Stage, Task, Verdict
from opsmith.targets import TaskFault, Trial, TrialResult
from opsmith.targets.audit import Finding, State
from opsmith.targets.hidden import HiddenTrials

TASK = Task("sum", "tiny_target:TINY", "inputs: {x: [1], y: [4]}\nwant: [5]\n")
SCRUTINY = Scrutiny("7")
PASSED = Verdict("0" * 64, Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE)
FINDING = Diagnostic("DATA", "S0", "2", "1")


# -- limits


def test_a_limit_is_above_nothing_and_at_most_a_day() -> None:
    assert Limits(86_400.0, 86_400.0).of_task == 86_400.0
    assert (Limits(1.0).of_task, Limits(1.0).of_figures, Limits(99.0).of_figures) == (10.0, 60.0, 99.0)
    for wrong in ({"candidate": 0.0}, {"candidate": 86_401.0}, {"trial": -1.0}):
        with pytest.raises(UsageError, match="expected seconds"):
            Limits(**wrong)


def test_a_run_has_the_limits_that_it_stored_unless_others_are_asked_for() -> None:
    stored = {"candidate_seconds": 5.0, "trial_seconds": 2.0}
    assert limits_of_run(stored) == Limits(5.0, 2.0)
    assert limits_of_run(stored, 7.0, 3.0) == Limits(7.0, 3.0)
    assert limits_of_run({}) == Limits(60.0, 10.0)


def test_who_is_late_is_told_which_limit_it_was() -> None:
    late = [str(Limits(5.0, 2.0).refuse_late("base", of_all)) for of_all in (True, False)]
    assert "within 5 s for all trials" in late[0]
    assert "--candidate-seconds" in late[0]
    assert "within 2 s for this trial" in late[1]
    assert "--trial-seconds" in late[1]


# -- words of errors


def raise_deep(depth: int) -> None:
    if depth == 0:
        raise RuntimeError("deep")
    [raise_one, raise_two][depth % 2](depth - 1)


def raise_one(depth: int) -> None:
    raise_deep(depth)


def raise_two(depth: int) -> None:
    raise_deep(depth)


def test_a_failure_of_ours_is_said_with_the_four_innermost_places_first() -> None:
    with pytest.raises(RuntimeError) as caught:
        raise_deep(4)
    words = describe_error(caught.value)
    assert (words.kind, words.expected) == ("OURS", "a verdict")
    places = [place.rpartition(" ")[2] for place in words.given.partition(" at ")[2].split(" < ")]
    assert places == ["raise_deep", "raise_two", "raise_deep", "raise_one"]


def test_lack_of_memory_is_charged_to_the_limits_and_other_errors_to_whose_code_it_is() -> None:
    boundary, finding = charge_error("step", MemoryError())
    assert (boundary, finding.kind) == (Boundary.SANDBOX, "SANDBOX")
    assert "smaller sizes" in finding.remedy
    caused = RuntimeError("x")
    caused.__cause__ = MemoryError()
    assert charge_error("step", caused)[0] is Boundary.SANDBOX
    assert charge_error("step", RuntimeError("x"))[0] is Boundary.OURS
    boundary, finding = charge_error("tiny_target:TINY", RuntimeError("x"), "list_trials")
    assert boundary is Boundary.TARGET
    assert (finding.kind, finding.where) == ("TARGET", "target tiny_target:TINY")


def test_equal_programs_have_one_canonical_text_and_what_is_none_has_its_own() -> None:
    assert canonical_source(TASK, "x  y\n+ \\ words") == canonical_source(TASK, "x y +") == "x y +"
    assert canonical_source(TASK, "%") == "%"


def test_a_message_is_read_back_into_its_parts() -> None:
    finding = _split_message("file.yaml: given a; expected b; try: c")
    assert (finding.where, finding.given, finding.expected, finding.remedy) == ("file.yaml", "a", "b", "c")
    assert _split_message("file.yaml: given a; expected b").remedy == ""
    assert _split_message("no file").given == "no file"


def test_an_exception_without_a_text_has_its_name_and_a_long_one_is_cut() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit

    assert _describe_error(Mute()) == "Mute"
    assert _describe_error(KeyError("x")) == "KeyError: 'x'"
    assert _shorten_text("é" * 3000) == "é".encode() * LONGEST_ERROR
    assert _shorten_text("\ud800") == b"?"


def test_who_could_not_be_started_is_said_with_whose_failure_it_is() -> None:
    ours, theirs = NotStartedError("step", "exited"), NotStartedError("own", "", "no module")
    assert (ours.charged_to, ours.finding.kind, theirs.charged_to) == (Boundary.SANDBOX, "SANDBOX", Boundary.TARGET)
    assert "one that exited" in str(ours.finding)
    assert "target own: given no module" in str(theirs.finding)
    commands = NotRunError("own", "no folder")
    assert (commands.charged_to, commands.finding.kind) == (Boundary.SANDBOX, "SANDBOX")
    assert "commands of target own: given no folder" in str(commands.finding)


def test_a_tally_adds_up_what_trials_showed() -> None:
    tally = TrialTally()
    tally.count_result(5, TrialResult(Stage.MATCH, (), 0.5, ("a note",), 3))
    tally.count_result(1, TrialResult(Stage.MATCH, (), 0.25, ("a note", "another"), 4))
    tally.count_result(2, TrialResult(Stage.RUN))
    verdict = tally.fill_verdict(replace(PASSED, warnings=("first",)))
    assert (verdict.trials, verdict.max_abs_error, verdict.undecided) == (8, 0.5, 7)
    assert verdict.warnings == ("first", "a note", "another")
    assert larger_error(None, float("nan")) == larger_error(1.0, float("nan")) == float("inf")
    assert (larger_error(None, None), larger_error(2.0, None), larger_error(None, 0.0)) == (None, 2.0, 0.0)


def test_the_exit_code_of_verdicts_is_the_worst() -> None:
    refused = replace(PASSED, outcome=Outcome.REFUSED, errors=(FINDING,))
    unjudged = replace(PASSED, outcome=Outcome.UNJUDGED, charged_to=Boundary.SANDBOX, errors=(FINDING,))
    codes = [files_exit_code(verdicts) for verdicts in ([], [PASSED], [PASSED, refused], [refused, unjudged])]
    assert codes == [0, 0, 1, 2]


# -- work that is given up


def test_a_batch_ends_when_nobody_waits_for_any_of_it() -> None:
    work, ended = WorkUnderWay(), list[str]()
    first, second = Future[Verdict](), Future[Verdict]()
    work.refuse_abandoned()
    with work.hold_futures([first, second]):
        with work.hold_worker(lambda: ended.append("worker")):
            work.add_process(lambda: ended.append("process"))
            assert work.abandon_future(first) == ()
            work.refuse_abandoned()
            ends = work.abandon_future(second)
            assert isinstance(ends, tuple), "a copy, which no other thread changes"
            for end in ends:
                end()
            assert ended == ["worker", "process"]
            with pytest.raises(VerifierError, match="nobody waits"):
                work.refuse_abandoned()
        assert work.abandon_future(second) == (), "its worker serves others now"
        with pytest.raises(VerifierError, match="nobody waits"), work.hold_worker(lambda: None):
            raise AssertionError("no worker is lent for it")
    assert work.abandon_future(first) == ()
    with work.hold_worker(lambda: None):
        work.add_process(lambda: None)


# -- answers of workers


def make_split(name: str = "a") -> dict[str, Any]:
    return {"nodes": [], "outputs": [name]}


def test_findings_on_a_split_are_checked_and_cut() -> None:
    finding = {"kind": "TYPE", "where": "node a", "given": "\x1b" + "x" * 400, "expected": "y"}
    answer = read_plans({"splits": [], "findings": [finding] * 60, "reason": "r" * 3000})
    assert len(answer.findings) == 50
    assert len(answer.findings[0].given) <= 310
    assert "\x1b" not in answer.findings[0].given
    assert answer.reason == "r" * 2000
    with pytest.raises(TypeError, match="of a finding"):
        read_plans({"splits": [], "findings": [{**finding, "expected": 1}], "reason": ""})


def test_where_a_target_is_imported_from_is_read_from_the_first_request() -> None:
    folders = _read_by_target({"task": {"target": "tiny_target:TINY"}})
    assert folders, "its worker may read that"
    assert all(isinstance(folder, Path) for folder in folders)
    assert _read_by_target({"task": {"target": "no_such:TARGET"}}) == []


@pytest.mark.parametrize(
    ("error", "method", "problem", "is_fault"),
    [
        (UsageError("so not"), "m", "so not", False),
        (TaskFault(FINDING), "m", "S0", False),
        (TargetError("broken"), "", "broken", False),
        (RuntimeError("odd"), "list_splits", "target tiny_target:TINY: RuntimeError: odd", True),
        (RuntimeError("odd"), "", "odd", False),
    ],
)
def test_figures_or_why_there_are_none(error: Exception, method: str, problem: str, is_fault: bool) -> None:
    def fail(task: Task, request: dict[str, Any]) -> dict[str, Any]:
        raise error

    answer = _or_problem(method, fail)(TASK, {})
    assert problem in answer["problem"]
    assert answer.get("fault", False) is is_fault
    assert _or_problem(method, lambda task, request: {"a": 1})(TASK, {}) == {"figures": {"a": 1}}
    assert "problem" in _or_problem(method, lambda task, request: {"a": object()})(TASK, {})


# -- executed candidates, the worker's side


class Hiding:
    """A target of executed candidates, whose hidden trials and findings are given."""

    name, verifier, stages, comment = "hiding", "hiding-1", ("PARSE",), "#"

    def __init__(self, hidden: HiddenTrials | None, fail: Exception | None = None) -> None:
        self.hidden, self.fail = hidden, fail

    def hidden_trials(self, task: Task, program: Any, scrutiny: Scrutiny) -> HiddenTrials | None:
        return self.hidden

    def encode_inputs(self, trial: Trial) -> bytes:
        return f"inputs of {trial.name}".encode()

    def compare_outputs(self, trial: Trial, outputs: bytes) -> TrialResult:
        if self.fail is not None:
            raise self.fail
        return TrialResult(Stage.MATCH)


class LeftOut(Trial):
    def left_out(self) -> str:
        return "it is too large"


def make_run(target: Hiding, trials: list[Trial], monkeypatch: pytest.MonkeyPatch) -> _TrialRun:
    monkeypatch.setattr(executed_steps, "get_executed", lambda task: target)
    return _TrialRun(cast(Any, target), TASK, "program", Scrutiny("7"), trials, _EncodedInputs())


def test_stated_trials_come_first_and_those_left_out_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = HiddenTrials(iter([LeftOut("h0", 0), Trial("h1", 1)]), ["one was not drawn"])
    run = make_run(Hiding(hidden), [Trial("a", 0), LeftOut("b", 1), Trial("c", 2)], monkeypatch)
    answers = [run.give_next() for _ in range(4)]
    assert [answer.get("trial", {}).get("name") for answer in answers] == ["a", "c", "h1", None]
    assert [answer.get("trial", {}).get("is_hidden") for answer in answers] == [False, False, True, None]
    assert [answer["warnings"] for answer in answers] == [
        [],
        ["it is too large"],
        ["it is too large"],
        ["it is too large", "one was not drawn"],
    ]
    assert answers[2]["blobs"] == [b"inputs of h1"]


def test_a_target_may_have_no_hidden_trials_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_run(Hiding(None), [], monkeypatch).give_next() == {"warnings": []}


@pytest.mark.parametrize("fail", [TaskFault(FINDING), MemoryError()])
def test_at_hidden_sizes_a_faulty_reference_is_nobodys_fault(fail: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(Hiding(HiddenTrials(iter([Trial("h", 0)])), fail), [Trial("a", 0)], monkeypatch)
    run.give_next()
    with pytest.raises(Exception, match=r"compare_outputs|S0"):
        run.compare_outputs(b"")
    run.give_next()
    assert run.compare_outputs(b"") is None


def test_at_hidden_sizes_a_mistake_of_the_target_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(Hiding(HiddenTrials(iter([Trial("h", 0)])), RuntimeError("x")), [], monkeypatch)
    run.give_next()
    with pytest.raises(Exception, match="compare_outputs"):
        run.compare_outputs(b"")


def test_inputs_used_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = list[str]()

    class Counting(Hiding):
        def encode_inputs(self, trial: Trial) -> bytes:
            encoded.append(trial.name)
            return bytes(40)

    monkeypatch.setattr(executed_steps, "get_executed", lambda task: Counting(None))
    monkeypatch.setattr(executed_steps, "_REMEMBERED", 100)
    inputs = _EncodedInputs()
    for number in (0, 1, 0, 2, 0, 2, 1, 2):
        assert inputs.encode_trial(TASK, number, Trial(str(number), number), SCRUTINY) == bytes(40)
    assert encoded == ["0", "1", "2", "1"], "the one used before the last two was forgotten"
    monkeypatch.setattr(executed_steps, "_REMEMBERED", 10)
    inputs.encode_trial(TASK, 3, Trial("3", 3), SCRUTINY)
    inputs.encode_trial(TASK, 3, Trial("3", 3), SCRUTINY)
    assert encoded[4:] == ["3"], "the newest is remembered however large it is"


def test_a_step_that_fails_is_a_verdict_that_names_the_method() -> None:
    def fail(error: BaseException) -> Callable[[Task, Any], dict[str, Any]]:
        def step(task: Task, request: Any) -> dict[str, Any]:
            raise error

        return step

    def judge(error: BaseException) -> dict[str, Any]:
        verdict: dict[str, Any] = or_unjudged("encode_inputs", fail(error))(TASK, {"source": "x"})["verdict"]
        return verdict

    assert judge(TaskFault(FINDING))["charged_to"] == "task"
    assert judge(SystemExit())["charged_to"] == "target"
    assert judge(KeyError("x"))["errors"][0]["where"] == "target tiny_target:TINY"
    assert "no program was examined" in str(ExecutedSteps().answers["begin"](TASK, {"source": "x"}))


# -- verdicts without findings, and unjudged ones


def judge_with(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Verdict:
    monkeypatch.setattr(Tiny, "run_programs", lambda self, programs, trial: [run() for _ in programs])
    return verify(TASK, "x y +", SCRUTINY)


def test_a_trial_that_did_not_reach_the_comparison_is_refused_even_without_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdict = judge_with(lambda: TrialResult(Stage.RUN), monkeypatch)
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, Stage.RUN, 1)
    verdict = judge_with(lambda: TrialResult(Stage.MATCH, (FINDING,)), monkeypatch)
    assert (verdict.outcome, verdict.stage, verdict.errors) == (Outcome.REFUSED, Stage.MATCH, (FINDING,))
    assert judge_with(lambda: TrialResult(Stage.MATCH), monkeypatch).passed


def test_an_unjudged_program_took_its_time_and_says_who_judged_it(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judge_with(lambda: "no result", monkeypatch)
    assert (verdict.outcome, verdict.charged_to, verdict.verifier) == (Outcome.UNJUDGED, Boundary.TARGET, Tiny.verifier)
    assert 0 < verdict.judging_seconds < 60
    verdict = judge_with(lambda: TaskFault(FINDING), monkeypatch)
    assert (verdict.outcome, verdict.charged_to, verdict.errors) == (Outcome.UNJUDGED, Boundary.TASK, (FINDING,))


@pytest.mark.parametrize(
    ("result", "is_followed"),
    [
        (TrialResult(Stage.MATCH), True),
        (TrialResult(Stage.RUN), False),
        (TrialResult(Stage.MATCH, (FINDING,)), False),
        (None, True),  # nobody's fault
    ],
)
def test_after_a_wrong_trial_no_other_is_given(
    result: TrialResult | None, is_followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ExecutedSteps()
    steps._run = run = make_run(Hiding(None), [Trial("a", 0), Trial("b", 1)], monkeypatch)
    run.give_next()
    monkeypatch.setattr(_TrialRun, "compare_outputs", lambda self, outputs: result)
    answer = steps.answers["proceed"](TASK, {"source": "x", "blobs": [b""]})
    assert (answer.get("trial", {}).get("name") == "b") is is_followed
    assert (answer["result"] is None) is (result is None)


# -- audits


def test_a_tolerance_is_too_wide_where_moved_numbers_pass_everywhere() -> None:
    states = [_check_tolerance(moved).state for moved in ([True, None, False], [True, None], [None, None], [False])]
    assert states == [State.FINE, State.FAULTY, State.UNCHECKED, State.FINE]


def test_an_input_matters_once_it_changed_an_answer() -> None:
    assert _find_ignored("x", [False, True], 3) is None
    ignored, failed, alike = (
        _find_ignored(name, row, 3) for name, row in (("x", [False, None]), ("", [None]), ("", []))
    )
    assert ignored is not None
    assert failed is not None
    assert alike is not None
    assert (ignored.state, failed.state, alike.state) == (State.FAULTY, State.UNCHECKED, State.UNCHECKED)
    assert "stays right at 1 trials" in str(ignored)
    assert "fails on inputs" in str(failed)
    assert "no two trials differ" in str(alike)


class Auditing:
    """A pool that answers by the task's id."""

    def audit(self, task: Task) -> Future[dict[str, Any]]:
        future: Future[dict[str, Any]] = Future()
        if task.id == "lost":
            future.set_exception(VerifierError("it died"))
        elif task.id == "odd":
            future.set_exception(TargetError("broken"))
        else:
            future.set_result(
                {"findings": [{"check": "data", "state": "fine", "tried": "x", "found": "", "remedy": ""}]}
            )
        return future


def test_every_file_has_an_audit_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    for name in ("fine", "lost", "odd"):
        (tmp_path / f"{name}.yaml").write_text(f"target: tiny_target:TINY\n{TASK.text}", "utf-8")
    (tmp_path / "bad.yaml").write_text("[", "utf-8")
    (tmp_path / "foreign.yaml").write_text("target: no_such:TARGET\n", "utf-8")
    paths = [tmp_path / f"{name}.yaml" for name in ("fine", "lost", "odd", "bad", "foreign")]
    audits = {audit.task: audit for audit in audit_files(paths, cast(Any, Auditing()))}
    assert {name: str(audit.state) for name, audit in audits.items()} == {
        "fine": "fine",
        "lost": "not checked",
        "odd": "not checked",
        "bad": "faulty",
        "foreign": "not checked",
    }
    assert "it died" in str(audits["lost"].findings[0])
    assert "never ends" in str(audits["lost"].findings[0])
    assert "check brackets" in str(audits["bad"].findings[0])
    assert "no_such" in str(audits["foreign"].findings[0])
    assert [exit_code([audits[name] for name in names]) for names in (["fine"], ["fine", "lost"], ["lost", "bad"])] == [
        0,
        2,
        1,
    ]
    both = Audit("t", (Finding("a", State.UNCHECKED, "", ""), Finding("b", State.FAULTY, "", "")))
    assert both.state is State.FAULTY
    assert [finding.check for finding in both.findings_of(State.FAULTY)] == ["b"]


# -- secrets and hand-written programs


def test_the_installations_secret_lies_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    secret = read_installation_secret()
    assert len(secret) >= 16
    assert read_installation_secret() == secret
    (path,) = (tmp_path / "state").rglob("*secret*")
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "empty" / path.relative_to(tmp_path / "state")).parent.mkdir(parents=True)
    (tmp_path / "empty" / path.relative_to(tmp_path / "state")).write_text("\n", "utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="expected the secret of this installation"):
        read_installation_secret()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    other = read_installation_secret()
    assert other != secret
    assert (tmp_path / ".local/state" / path.relative_to(tmp_path / "state")).read_text("utf-8").strip() == other


def test_without_a_run_the_level_is_the_one_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("opsmith.judging.installation._stated", ["5"])
    assert read_scrutiny_here(Level.FULL) == Scrutiny("5", Level.FULL)
    monkeypatch.setattr("opsmith.judging.installation._stated", [])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert read_scrutiny_here() == Scrutiny(read_installation_secret(), Level.CHEAP)


def import_judged(verdict: Verdict) -> Any:
    async def judge(*_: object, **__: object) -> Verdict:
        return verdict

    (experience,) = asyncio.run(import_experiences([Solution(TASK, "x y +")], cast(Any, SimpleNamespace(judge=judge))))
    return experience


def test_a_hand_written_program_is_an_experience_once_it_passed() -> None:
    experience = import_judged(PASSED)
    assert (experience.task, experience.source, experience.round) == (TASK, "x y +", -1)
    assert experience.success_rate == 1.0
    refused = replace(PASSED, stage=Stage.RUN, outcome=Outcome.REFUSED, errors=(FINDING,))
    with pytest.raises(TaskError, match="is not a solution") as caught:
        import_judged(refused)
    assert caught.value.diagnostics == (FINDING,)
    with pytest.raises(TaskError, match="could not be judged"):
        import_judged(replace(refused, outcome=Outcome.UNJUDGED, charged_to=Boundary.SANDBOX))


# -- programs that commands run


def test_a_commanded_program_runs_first_what_comes_first_and_is_late_behind_its_end() -> None:
    runs = list[str]()

    class Listing:
        def plan_runs(self, task: Task, artefacts: Any, inputs: Any) -> list[Any]:
            if inputs == b"bad":
                raise KeyError("bad")
            return ["first", "second"]

    class Program(CommandedProgram):
        def _run_once(self, trial: str, run: Any, end: float) -> Any:
            runs.append(run)
            return SimpleNamespace(data=run.encode())

    program = Program(cast(Any, Listing()), TASK, {}, Limits(), 9e9)
    assert program.ask_outputs("base", b"") == b"firstsecond"
    program.run_first("base", b"")
    assert runs == ["first", "second", "first"]
    with pytest.raises(ValueError, match="inputs that are none: 'bad'"):
        program.ask_outputs("base", b"bad")
    for end, limits, words in ((0.0, Limits(), "all trials"), (9e9, Limits(60.0, 1e-9), "this trial")):
        late = CommandedProgram(cast(Any, Listing()), TASK, {}, limits, end).ask_outputs("base", b"")
        assert words in str(late)
