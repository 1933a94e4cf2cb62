"""Ctrl-C and SIGTERM in the midst of a run: what was received is stored, and the same command goes on from there."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from chaos.books import contents, replies
from chaos.conftest import SAMPLES, Undisturbed
from chaos.processes import Command, Commands, wait_until

INTERRUPTED = 130
AT = 30  # replies
IN_FLIGHT = 4


def stopped_after(commands: Commands, whole: Undisturbed, replies: int) -> Command:
    """A run that has had so many replies, and waits for the next ones."""
    whole.server.hold_after = replies
    run = commands.run("stopped", *whole.options)
    wait_until(lambda: len(whole.server.sent) == replies, why=lambda: run.said)
    time.sleep(0.5)
    return run


def ends_as_the_other(commands: Commands, whole: Undisturbed, tmp_path: Path) -> None:
    whole.server.hold_after = None
    commands.finish("stopped", *whole.options)
    assert set(whole.server.sent.values()) == {1}, "no reply that was received is asked for again"
    assert len(whole.server.sent) == SAMPLES
    assert contents(tmp_path / "stopped", whole.run) == whole.contents


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_finishes_what_is_in_flight(
    tmp_path: Path, commands: Commands, whole: Undisturbed, sent: signal.Signals
) -> None:
    run = stopped_after(commands, whole, AT)
    run.process.send_signal(sent)
    time.sleep(0.5)
    whole.server.hold_after = None
    assert run.code(30) == INTERRUPTED
    assert "the same command goes on from here" in run.said
    assert "Traceback" not in run.said
    received = whole.server.texts
    assert AT < len(received) <= AT + IN_FLIGHT
    assert replies(tmp_path / "stopped", whole.run) == received
    ends_as_the_other(commands, whole, tmp_path)


def test_a_second_ctrl_c_exits_at_once(tmp_path: Path, commands: Commands, whole: Undisturbed) -> None:
    run = stopped_after(commands, whole, AT)
    run.interrupt()
    time.sleep(1.0)
    assert run.alive, "the first one waits for the requests in flight"
    run.interrupt()
    assert run.code(seconds=5) == INTERRUPTED
    assert "Traceback" not in run.said
    assert replies(tmp_path / "stopped", whole.run) == whole.server.texts
    assert len(whole.server.texts) == AT
    ends_as_the_other(commands, whole, tmp_path)
