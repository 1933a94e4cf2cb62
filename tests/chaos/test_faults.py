"""A provider that fails in every way: the run ends, counts every whole reply once, and blames no program for it."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from chaos.books import contents, replies, unjudged
from chaos.conftest import SAMPLES, Undisturbed
from chaos.faults import QUICK
from chaos.faulty_server import FaultyAnthropic, FaultyOpenAI, odd, plain
from chaos.plan import Constant, LogNormal, Plan
from chaos.processes import Commands, wait_until
from opsmith.records import Stage
from opsmith.store import Store

PROVIDER_FAILED = 3  # exit code of a ProviderError
FAILING = Plan(seed=5, share=0.3, kinds=QUICK, latency=LogNormal(0.02, 1.0, most=1.0))
TASK = ("--tasks", "index_0", "--temperature", "1.0", "--max-rounds", 1, "--samples", 120)


def test_a_run_through_every_fault_is_the_run_without_faults(
    tmp_path: Path, commands: Commands, where: Path | str
) -> None:
    with FaultyOpenAI(odd) as server:
        options = ("--model", "openai/served", "--base-url", server.url, *TASK)
        whole = commands.finish("whole", *options)
        server.reset(FAILING)
        result = commands.finish(where, *options)
        tell(server)
        sent = server.sent
    assert (result["run"], result["usage"]["requests"]) == (whole["run"], 120)
    assert set(sent.values()) == {1}, "no reply that was received is asked for again"
    assert len(server.faults) > 20
    assert contents(where, result["run"]) == contents(tmp_path / "whole", whole["run"])


def test_a_run_of_the_other_protocol_keeps_every_whole_reply_once(tmp_path: Path, commands: Commands) -> None:
    with FaultyAnthropic(plain, FAILING) as server:
        run = commands.finish("failing", "--model", "anthropic/served", "--base-url", server.url, *TASK)["run"]
        tell(server)
        sent = server.texts
    assert len(sent) == 120
    assert replies(tmp_path / "failing", run) == sent
    with Store.open(tmp_path / "failing") as store:
        assert store.read_failures(run, 0) == []
        for row in store.list_samples(run):
            sample = store.find_sample(run, row.id)
            (call,), verdict = sample.calls, sample.candidates[-1].verdict
            assert verdict.stage != Stage.FORMAT, "what is no program comes from a fault, not from the model"
            assert verdict.passed is ("fn_gate" in call.reply.texts[0])


def test_a_run_gives_up_answers_that_are_too_slow_and_asks_again(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    whole.server.reset(Plan(seed=7, share=0.1, kinds=("silence", "drip")))
    result = commands.finish("slow", *whole.options, "--request-timeout", 3)
    tell(whole.server)
    assert result["usage"]["requests"] == SAMPLES
    assert sum(whole.server.faults.values()) >= 4
    assert contents(tmp_path / "slow", whole.run) == whole.contents


class Mute(Plan):
    """Some requests are never answered."""

    def fault(self, key: str, attempt: int) -> str | None:
        return "silence" if int(key) % 10 == 0 else None


def test_a_request_that_is_never_answered_leaves_its_sample_unjudged(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    whole.server.reset(Mute())
    result = commands.finish("mute", *whole.options, "--request-timeout", 2, "--request-deadline", 4)
    tell(whole.server)
    reasons = unjudged(tmp_path / "mute", whole.run, whole.contents)
    assert (
        len(reasons) == SAMPLES - result["usage"]["requests"] == len([key for key in whole.keys if int(key) % 10 == 0])
    )
    assert all("no answer within" in reason for reason in reasons)


def test_a_run_waits_for_a_server_that_is_away_for_a_while(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    server = whole.server
    server.reset(Plan(latency=Constant(0.05)))
    server.hold_after = 30
    run = commands.run("waited", *whole.options)
    wait_until(lambda: len(server.sent) == 30)
    server.leave()
    server.hold_after = None
    time.sleep(3.0)
    assert run.alive, run.said
    assert len(server.sent) == 30
    server.come_back()
    assert run.result()["run"] == whole.run
    assert Counter(server.sent.values()) == {1: SAMPLES}
    assert contents(tmp_path / "waited", whole.run) == whole.contents


def test_a_run_whose_server_is_gone_ends_with_one_message_and_goes_on_when_it_is_back(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    server = whole.server
    server.hold_after = 30
    run = commands.run("ended", *whole.options)
    wait_until(lambda: len(server.sent) == 30)
    server.leave()
    gone = time.monotonic()
    assert run.code() == PROVIDER_FAILED
    print(f"it ended {time.monotonic() - gone:.0f} s after its server")
    assert "Traceback" not in run.said
    (message,) = [line for line in run.said.splitlines() if line.startswith("opsmith:")]
    assert "start the same command again" in message
    server.hold_after = None
    server.come_back()
    assert commands.finish("ended", *whole.options)["run"] == whole.run
    assert Counter(server.sent.values()) == {1: SAMPLES}
    ended = contents(tmp_path / "ended", whole.run)
    assert {row for row in ended if row[0] != "failure"} == whole.contents


def tell(server: FaultyOpenAI | FaultyAnthropic) -> None:
    print(f"{sum(server.sent.values())} replies, {sum(server.faults.values())} faults of {len(server.faults)} kinds")
