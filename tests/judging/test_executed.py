"""Candidates that are executed: whatever they do, the verdict is the judging side's, and the next one is right."""

import asyncio
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from clocks import lasts_at_most
from failing_target import PLACE
from harmful import SMALL, needs_isolation, saying, tiny_python
from tiny_target import TINY_PYTHON

from opsmith.judging import execution
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome, Stage
from opsmith.running import cgroups
from opsmith.running.arena import CAPACITY
from opsmith.running.cgroups import GroupLimits

pytestmark = needs_isolation

WANT = 918_273_645
TASK = tiny_python(WANT)
RIGHT = f"def solve(x):\n    return {WANT}\n"
TELLING = """\
import os, struct
def solve(x):
    passed = {passed!r}
    for fd in range(64):
        try:
            os.write(fd, {message})
        except OSError:
            pass
    return 0
"""
PASSED = json.dumps({"outcome": "passed", "stage": "MATCH", "charged_to": "candidate", "errors": []}).encode()
SEARCH = """\
import gc, sys
def solve(x):
    frame, seen = sys._getframe(), []
    while frame:
        seen += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    for thing in [*seen, *gc.get_objects()]:
        if type(thing) is dict and thing.get("inputs") == {"x": [7, 7]}:
            return thing["want"][0]
        if type(thing).__name__ == "Task" and "x: [7, 7]" in getattr(thing, "text", ""):
            return int(thing.text.split("want: [")[1].split(",")[0])
    return 0
"""


@pytest.fixture(scope="module")
def pool():
    with Pool(2, sandbox=SMALL) as shared:
        assert shared.verify(TASK, RIGHT).passed
        yield shared


def refused(verdict):
    return (verdict.outcome, verdict.stage, verdict.charged_to) == (Outcome.REFUSED, Stage.RUN, Boundary.CANDIDATE)


def doing(lines: str) -> str:
    return "import os, sys, time, socket, threading, mmap, ctypes, signal\ndef solve(x):\n    " + lines


def test_a_right_program_passes_and_a_wrong_one_does_not(pool):
    assert pool.verify(TASK, RIGHT).message == "passed: 2 trials"
    verdict = pool.verify(TASK, "def solve(x):\n    return x\n")
    assert (verdict.stage, verdict.outcome, verdict.trials) == (Stage.MATCH, Outcome.REFUSED, 1)
    assert verdict.max_abs_error == WANT - 7
    assert verdict.verifier == TINY_PYTHON.verifier
    assert 0 < verdict.judging_seconds < 60


@pytest.mark.parametrize(
    ("source", "stage"), [("def solve(x) return x", Stage("PARSE")), ("def other(x):\n    return x", Stage("TYPE"))]
)
def test_a_static_refusal_starts_no_process(pool, source, stage):
    verdict = pool.verify(TASK, source)
    assert (verdict.outcome, verdict.stage, verdict.trials) == (Outcome.REFUSED, stage, 0)


def test_expected_values_are_not_in_the_process(pool):
    assert "x: [7, 7]" in TASK.text  # the same search finds them where they are
    assert json.loads(TINY_PYTHON.execute_program(SEARCH, b'{"x": 7}')) == WANT
    verdict = pool.verify(TASK, SEARCH)
    assert (verdict.stage, verdict.outcome) == (Stage.MATCH, Outcome.REFUSED)
    assert "given 0;" in str(verdict.errors[0])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("passed", "a message of"),
        ("struct.pack('!I', len(passed)) + passed", "neither outputs nor an error"),
        ("struct.pack('!I', len(passed) + 1) + b'=' + passed", "neither outputs nor an error"),
        ("struct.pack('!IcQ', 9, b'=', 3)", "expected: an integer"),
        ("struct.pack('!IcQ', 9, b'=', 1 << 40)", "sizes (1099511627776,); expected numbers of bytes"),
    ],
)
def test_a_forged_verdict_is_only_an_answer(pool, message, words):
    verdict = pool.verify(TASK, TELLING.format(passed=PASSED, message=message))
    assert refused(verdict)
    assert words in verdict.message
    assert pool.verify(TASK, RIGHT).passed


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (doing("os._exit(0)"), "ended with status 0"),
        (doing("sys.exit(0)"), "SystemExit"),
        (doing("os.kill(os.getpid(), 9)"), "SIGKILL"),
        (doing("os.kill(os.getppid(), 9)"), "PermissionError"),
        (doing("os.kill(-1, 9)"), "PermissionError"),
        (doing("os.kill(0, 9)"), "PermissionError"),
        (doing("signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)"), "PermissionError"),
        (doing("os.fork()"), "PermissionError"),
        (doing("os.execv('/bin/true', ['true'])"), "PermissionError"),
        (doing("threading.Thread(target=print).start()"), "RuntimeError"),
        (doing("bytearray(100 << 30)"), "MemoryError"),
        (doing("held = [bytearray(1 << 24) for _ in range(100)]"), "MemoryError"),
        (doing("mmap.mmap(-1, 100 << 30)"), "Cannot allocate memory"),
        (doing("socket.socket()"), "PermissionError"),
        (doing("socket.socketpair()"), "PermissionError"),
        (doing("os.chmod('/', 0o777)"), "PermissionError"),
        (doing("open('/proc/self/environ').read()"), "PermissionError"),
        (doing("open('/etc/passwd').read()"), "PermissionError"),
        (doing("open(sys.modules['tiny_target'].__file__).read()"), "PermissionError"),
        (doing("os.listdir(os.path.dirname(sys.modules['opsmith'].__file__))"), "PermissionError"),
        (doing("import antigravity"), "PermissionError"),
        (doing("return 'junk'"), "expected: an integer"),
        (doing("return [[]] * 10**6"), "expected: an integer"),
        (doing("return solve(x)"), "RecursionError"),
        (doing("ctypes.string_at(0)"), "SIGSEGV"),
        (doing(r"raise ValueError('\x1b[2J' * 10**6)"), "ValueError: \ufffd[2J"),
        ("1 / 0\ndef solve(x):\n    return 1\n", "ZeroDivisionError"),
    ],
)
def test_what_a_candidate_tries_is_refused_at_run(pool, source, words):
    nursery = pool._nursery._process.pid
    verdict = pool.verify(TASK, source)
    assert refused(verdict)
    assert words in verdict.message
    assert pool.verify(TASK, RIGHT).passed
    assert pool._nursery._process.pid == nursery


def test_files_stay_unread_and_unwritten(pool, tmp_path):
    canary, made = tmp_path / "canary", tmp_path / "made"
    canary.write_text(str(WANT))
    assert refused(pool.verify(TASK, doing(f"return int(open({str(canary)!r}).read())")))
    assert refused(pool.verify(TASK, doing(f"open({str(made)!r}, 'w').write('x')")))
    assert canary.read_text() == str(WANT)
    assert not made.exists()


def test_what_a_candidate_prints_is_lost(pool, capfd):
    assert pool.verify(TASK, doing(f"print('junk'); os.write(2, b'junk'); return {WANT}")).passed
    assert capfd.readouterr() == ("", "")


def test_what_never_ends_is_refused_at_its_deadline():
    endless = [
        doing("time.sleep(1000)"),
        doing("\n    while True:\n        try: os.fork()\n        except OSError: pass"),
        doing("\n    for fd in range(3, 64):\n        try: os.write(fd, bytes([0, 0, 0, 9]) + b'=12')\n"
              "        except OSError: pass\n    time.sleep(1000)"),
    ]  # fmt: skip
    with Pool(3, deadline=2.0, sandbox=SMALL) as pool:
        assert all(verdict.passed for verdict in pool.verify_all(TASK, [RIGHT] * 3))
        with lasts_at_most(20.0, time.monotonic):
            verdicts = pool.verify_all(TASK, endless)
        assert all(refused(verdict) and "within 2 s" in verdict.message for verdict in verdicts)
        assert pool.verify(TASK, RIGHT).passed


def test_each_trial_has_a_limit_of_its_own():
    slow = "import time\ndef solve(x):\n    time.sleep({})\n    return " + str(WANT) + "\n"
    with Pool(1, deadline=20.0, trial_deadline=1.5, sandbox=SMALL) as pool:
        assert pool.verify(TASK, RIGHT).passed
        verdict = pool.verify(TASK, slow.format(1000))
        assert refused(verdict)
        assert "no outputs within 1.5 s for this trial" in verdict.message
        assert "--trial-seconds" in verdict.message
        assert pool.verify(TASK, slow.format(0.8)).passed  # twice: no trial is too slow
    with Pool(1, deadline=1.5, sandbox=SMALL) as pool:
        verdict = pool.verify(TASK, slow.format(0.8))
        assert "no outputs within 1.5 s for all trials" in verdict.message
        assert "--candidate-seconds" in verdict.message


def test_one_whose_verdict_nobody_waits_for_any_longer_is_ended():
    async def give_up(pool: Pool) -> bool:
        slow = asyncio.create_task(pool.judge(TASK, doing("time.sleep(1000)")))
        await asyncio.sleep(2.0)
        slow.cancel()
        async with asyncio.timeout(60):
            return (await pool.judge(TASK, RIGHT)).passed

    with Pool(1, trial_deadline=600.0, deadline=600.0, sandbox=SMALL) as pool:
        assert pool.verify(TASK, RIGHT).passed
        assert asyncio.run(give_up(pool))


def test_no_process_is_left_behind(pool):
    pool.verify(TASK, RIGHT)
    nursery = pool._nursery._process.pid
    left = Path(f"/proc/{nursery}/task/{nursery}/children").read_text().split()
    seats = {seat.pid for seat in pool._nursery._seats}
    assert {int(pid) for pid in left} == {worker.pid for _, worker in pool._idle._workers} | seats
    assert not any(Path(f"/proc/{seat}/task/{seat}/children").read_text() for seat in seats)


class Unstartable(type(TINY_PYTHON)):
    def runtime_paths(self):
        os._exit(3)


UNSTARTABLE = Unstartable()


def test_a_process_that_could_not_be_started_leaves_the_candidate_unjudged(pool):
    verdict = pool.verify(replace(TASK, target="test_executed:UNSTARTABLE"), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert "could not be confined" in verdict.message


@pytest.mark.parametrize(
    "method", ["runtime_paths", "list_trials", "encode_inputs", "compare_outputs", "returns_compare_outputs"]
)
def test_a_mistake_of_the_target_leaves_the_candidate_unjudged_and_is_charged_to_it(pool, method):
    verdict = pool.verify(replace(TASK, target=f"failing_target:python_{method}"), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
    assert ("given NoneType; expected TrialResult" if "returns" in method else PLACE) in verdict.message


def test_a_task_at_fault_leaves_the_candidate_unjudged(pool):
    verdict = pool.verify(replace(TASK, text="inputs: {x: [8, 8]}\nwant: [1]\n"), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)


class Large(type(TINY_PYTHON)):
    """More bytes than processes share."""

    is_of_inputs = True

    def encode_inputs(self, trial):
        return bytes(CAPACITY + 1) if self.is_of_inputs else super().encode_inputs(trial)

    def execute_program(self, source, inputs):
        return bytes(CAPACITY + 1)


class LargeOutputs(Large):
    is_of_inputs = False


LARGE, LARGE_OUTPUTS = Large(), LargeOutputs()


def test_inputs_that_are_too_large_are_the_tasks_fault(pool):
    verdict = pool.verify(replace(TASK, target="test_executed:LARGE"), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)
    assert f"inputs of {CAPACITY + 1} bytes" in verdict.message


def test_outputs_that_are_too_large_are_the_candidates_fault(pool):
    verdict = pool.verify(replace(TASK, target="test_executed:LARGE_OUTPUTS"), RIGHT)
    assert refused(verdict)
    assert f"{CAPACITY + 1} bytes; expected at most {CAPACITY}" in verdict.message


def test_a_worker_has_loaded_no_language_but_its_tasks(pool):
    code = "import sys\nfound = {n.split('.')[2] for n in sys.modules if n.startswith('opsmith.targets.')} & {'step', 'c', 'command'}"
    assert "found {'step'}" in pool.verify(saying(code), "return E0").message


@pytest.fixture
def small_group(monkeypatch):
    """Processes of candidates share 96 MiB, less than each may map."""
    if not cgroups.find_hierarchies():
        pytest.skip("no groups of processes can be made here")
    monkeypatch.setattr(execution, "_limit_together", lambda launcher, threads: GroupLimits(memory=96 << 20))


HUNGRY = "def solve(x):\n    return len(bytearray(256 << 20))\n"


def test_a_candidate_that_takes_more_than_its_group_may_is_refused_with_that_limit(pool, small_group):
    for _ in range(2):
        verdict = pool.verify(TASK, HUNGRY)
        assert refused(verdict)
        assert "more than 100663296 bytes of memory in all its processes together" in verdict.message
        assert pool.verify(TASK, RIGHT).passed


def test_a_candidate_killed_for_memory_that_others_took_is_left_unjudged(pool, small_group, monkeypatch):
    count = cgroups.Group._count_events
    monkeypatch.setattr(cgroups.Group, "_count_events", lambda group: {**count(group), "memory met": 0})
    verdict = pool.verify(TASK, HUNGRY)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert "its own memory was within its limit" in verdict.message


def test_without_groups_candidates_are_judged_as_with_them(pool, monkeypatch):
    monkeypatch.setattr(pool._nursery, "_take_seat", lambda language, limits: None)
    assert pool.verify(TASK, RIGHT).passed
    assert refused(pool.verify(TASK, "import os\ndef solve(x):\n    os.kill(os.getpid(), 9)\n"))
