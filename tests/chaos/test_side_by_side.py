"""Several processes on one store: runs go on as if alone, no run has two masters, and readers are served meanwhile."""

from __future__ import annotations

from pathlib import Path

from chaos.books import contents
from chaos.conftest import SAMPLES, Undisturbed
from chaos.plan import Constant, Plan
from chaos.processes import Commands, wait_until

HELD = 4  # exit code of a StoreError


def test_two_runs_share_a_store_and_end_as_if_alone(tmp_path: Path, commands: Commands, whole: Undisturbed) -> None:
    server = whole.server
    other = commands.finish("alone", *whole.options, "--seed", 1)["run"]
    server.reset(Plan(latency=Constant(0.05)))
    server.hold_after = SAMPLES  # of both together: neither can end before somebody looked
    both = [commands.run("shared", *whole.options, "--seed", seed) for seed in (0, 1)]
    wait_until(lambda: len(server.sent) == SAMPLES)
    for reader in (commands.start("runs", "--out", "shared"), commands.start("show", whole.run, "--out", "shared")):
        assert reader.code() == 0, reader.said
        assert whole.run in reader.printed
    server.hold_after = None
    assert [run.result()["run"] for run in both] == [whole.run, other]
    assert set(server.sent.values()) == {1}
    assert len(server.sent) == 2 * SAMPLES
    assert contents(tmp_path / "shared", whole.run) == whole.contents
    assert contents(tmp_path / "shared", other) == contents(tmp_path / "alone", other)


def test_a_run_that_goes_on_elsewhere_is_left_alone(tmp_path: Path, commands: Commands, whole: Undisturbed) -> None:
    whole.server.hold_after = 20
    first = commands.run("shared", *whole.options)
    wait_until(lambda: len(whole.server.sent) == 20)
    second = commands.run("shared", *whole.options)
    assert second.code() == HELD
    (message,) = second.said.strip().splitlines()
    assert "being worked on by another process" in message
    whole.server.hold_after = None
    assert first.result()["run"] == whole.run
    assert set(whole.server.sent.values()) == {1}
    assert contents(tmp_path / "shared", whole.run) == whole.contents
