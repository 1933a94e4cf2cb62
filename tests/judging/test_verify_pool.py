"""The worker pool survives whatever its workers do, and says what the verifier says."""

import asyncio
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_target import TASK

from opsmith.errors import VerifierError
from opsmith.judging.pool import Pool, _Idle
from opsmith.judging.verifier import verify, verify_many
from opsmith.records import Boundary, Outcome
from opsmith.running.nursery import Worker
from opsmith.running.sandbox import Sandbox


@pytest.fixture(scope="module")
def pool():
    with Pool(2, deadline=30.0) as shared:
        yield shared


def survives(pool):
    return pool.verify(TASK, "right").passed


@pytest.mark.parametrize(
    "source",
    ["right", "wrong", "nan", "refuse TYPE", "fault", "right # \u00fc \ud800 \x00", "right # " + "x" * 300_000],
)
def test_a_worker_says_what_the_verifier_says(pool, source):
    assert pool.verify(TASK, source) == verify(TASK, source)


def test_a_worker_that_dies_is_replaced_and_its_candidate_is_unjudged(pool):
    verdict = pool.verify(TASK, "die")
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert "SIGKILL" in verdict.message
    assert survives(pool)


def test_a_candidate_whose_worker_died_once_is_tried_again(tmp_path):
    with Pool(1, trust_tasks=True, sandbox=Sandbox(isolate=False)) as pool:  # the task remembers its try in a file
        assert pool.verify(TASK, f"once {tmp_path / 'tried'}").passed


def test_a_candidate_that_never_ends_is_unjudged():
    with Pool(1, deadline=1.0) as pool:
        assert survives(pool)
        verdict = pool.verify(TASK, "sleep")
        assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
        assert "no answer within 1 s" in verdict.message
        assert "--candidate-seconds" in verdict.message
        assert survives(pool)


def test_a_verdict_that_nobody_waits_for_any_longer_frees_its_worker(pool):
    async def give_up() -> list[bool]:
        slow = [asyncio.create_task(pool.judge(TASK, source)) for source in ("sleep", "sleep # again")]
        await asyncio.sleep(0.3)
        for task in slow:
            task.cancel()
        return [verdict.passed for verdict in await asyncio.gather(*(pool.judge(TASK, "right") for _ in range(4)))]

    began = time.monotonic()
    assert asyncio.run(give_up()) == [True] * 4
    assert time.monotonic() - began < 25  # far from the 30 s of a candidate: both workers slept


@pytest.mark.parametrize("source", ["exit", "unprintable"])
def test_a_hostile_exception_is_the_targets_and_not_the_candidates(pool, source):
    verdict = pool.verify(TASK, source)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
    assert survives(pool)


def test_a_value_that_no_verdict_may_hold_is_the_target_s_mistake(pool):
    for verdict in (pool.verify(TASK, "odd"), pool.verify_all(TASK, ["right", "odd"])[1]):
        assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TARGET)
        assert "max_abs_error: given float32; expected float" in verdict.message
    assert survives(pool)


def test_a_worker_computes_in_one_thread(pool):
    assert pool.verify(TASK, "threads 1").passed


def test_what_a_worker_prints_is_lost_and_keys_are_kept_from_it(capfd, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-1")
    with Pool(1) as pool:
        assert pool.verify(TASK, "print").passed
        assert pool.verify(TASK, "environment SOME_API_KEY").passed
    assert capfd.readouterr().out == ""


def test_many_at_once_keep_their_order(pool):
    sources = ["right", "wrong", "die", "fault"] * 3
    verdicts = pool.verify_all(TASK, sources)
    assert [verdict.passed for verdict in verdicts] == [True, False, False, False] * 3
    assert verdicts[:2] == verify_many(TASK, sources[:2])


@pytest.mark.parametrize("breaker", ["die", "exit", "sleep 60", "fault", "unprintable"])
def test_a_program_that_costs_its_batch_a_worker_is_the_only_one_to_suffer(breaker):
    with Pool(1, deadline=1.0) as pool:
        verdicts = pool.verify_all(TASK, ["right", breaker, "wrong", "refuse TYPE"])
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.PASSED, Outcome.UNJUDGED, Outcome.REFUSED, Outcome.REFUSED,
    ]  # fmt: skip


def test_a_batch_is_judged_by_one_worker_at_once(pool):
    verdicts = pool.verify_all(TASK, [f"right # {number}" for number in range(200)])
    assert all(verdict.passed for verdict in verdicts)
    assert len({verdict.candidate for verdict in verdicts}) == 200


def test_judge_is_awaitable(pool):
    async def both():
        return await asyncio.gather(pool.judge(TASK, "right"), pool.judge(TASK, "wrong"))

    assert [verdict.passed for verdict in asyncio.run(both())] == [True, False]


def test_the_pool_survives_the_death_of_its_nursery(pool):
    assert survives(pool)
    pool._nursery._process.kill()
    assert survives(pool)
    assert pool.verify(TASK, "die").charged_to is Boundary.SANDBOX


def test_closing_does_not_wait_for_what_is_running():
    pool = Pool(1)
    running, waiting = pool.submit(TASK, "sleep"), pool.submit(TASK, "right")
    while not running.running() or pool._nursery._process is None:
        pass
    pool.close()
    assert isinstance(running.exception(5), VerifierError)
    assert waiting.cancelled()
    with pytest.raises(VerifierError, match="closed"):
        pool.submit(TASK, "right")


def test_few_idle_workers_are_kept_the_last_used_ones(pool, monkeypatch):
    monkeypatch.setattr("opsmith.judging.pool.WAITING", 2)
    tasks = [replace(TASK, text=f"a task {number}") for number in range(3)]
    assert all(pool.verify(task, "right").passed for task in tasks)
    assert [owner for owner, _ in pool._idle._workers] == [task.digest for task in tasks[1:]]
    assert pool.verify(tasks[0], "right").passed


def test_a_process_is_killed_once(pool):
    nursery = pool._nursery
    worker = nursery.fork_worker(Sandbox())
    assert nursery.kill(worker) == nursery.kill(worker) == "was killed by SIGKILL"


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python"])
def test_a_pool_that_cannot_start_says_why(monkeypatch, python):
    monkeypatch.setattr(sys, "executable", python)
    with Pool(1) as pool, pytest.raises(VerifierError, match="no worker process can be started"):
        pool.verify(TASK, "right")


def test_it_works_from_a_script_without_a_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
        "from scripted_target import TASK\n"
        "from opsmith.judging.pool import Pool\n"
        "pool = Pool(1)\n"
        "print(pool.verify(TASK, 'right').message)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("passed: 3 trials\n", "")


def test_a_worker_that_has_met_the_task_is_preferred_and_nobody_elses_is_taken():
    met, newer, foreign = (Worker(number, None, None) for number in range(3))
    met.known.add("digest")
    idle = _Idle()
    for owner, worker in (("", met), ("", newer), ("another", foreign)):
        idle.put_worker(owner, worker)
    assert [idle.take_worker("", "digest") for _ in range(3)] == [met, newer, None]
    assert idle.take_worker("another", "digest") is foreign


def test_a_pool_that_is_closed_before_its_workers_could_start_waits_for_no_import():
    pool = Pool(1)
    pool.start_early()
    process = pool._nursery._process
    pool.close()
    assert process.returncode == -signal.SIGKILL
