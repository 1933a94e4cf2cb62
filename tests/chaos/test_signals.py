"""Ctrl-C, SIGTERM and a closed terminal in the midst of a run: what was received is stored, and the same command goes
on from there.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from terminals import Terminal, hears_hangup

from chaos.books import contents, replies
from chaos.conftest import SAMPLES, Undisturbed
from chaos.processes import Command, Commands, wait_until
from opsmith.store import Store

INTERRUPTED = 130
AT = 30  # replies
IN_FLIGHT = 4
WAITED_FOR = "stopping: waiting for 4 requests in flight and 0 verdicts, 20 s at most; Ctrl-C again ends at once"


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
    run.wait_for(WAITED_FOR + "\n")
    whole.server.hold_after = None
    assert run.code(30) == INTERRUPTED
    assert "the same command goes on from here" in run.said
    assert "Traceback" not in run.said
    received = whole.server.texts
    assert AT < len(received) <= AT + IN_FLIGHT
    assert replies(tmp_path / "stopped", whole.run) == received
    ends_as_the_other(commands, whole, tmp_path)


@hears_hangup
def test_a_terminal_that_is_closed_is_told_of_three_times_and_loses_nothing(
    tmp_path: Path, commands: Commands, whole: Undisturbed
) -> None:
    run = stopped_after(commands, whole, AT)
    for _ in range(3):
        run.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    whole.server.hold_after = None
    assert run.code(30) == INTERRUPTED
    assert replies(tmp_path / "stopped", whole.run) == whole.server.texts
    assert len(whole.server.texts) == AT + IN_FLIGHT


def in_a_terminal(folder: Path, whole: Undisturbed, nohup: bool = False) -> Terminal:
    """The same run as `stopped_after` has, in a terminal of its own."""
    whole.server.hold_after = AT
    options = ("--out", folder / "stopped", "--no-report", *whole.options)
    terminal = Terminal(folder, "-m", "opsmith", "run", *options, nohup=nohup, OPENAI_API_KEY="sk-none")
    terminal.wait_for(lambda: len(whole.server.sent) == AT)
    time.sleep(0.5)
    return terminal


def test_ctrl_c_in_a_terminal_says_at_once_what_is_waited_for(tmp_path: Path, whole: Undisturbed) -> None:
    terminal = in_a_terminal(tmp_path, whole)
    terminal.press_ctrl_c()
    terminal.wait_for(WAITED_FOR)
    whole.server.hold_after = None
    assert terminal.code() == INTERRUPTED
    assert "the same command goes on from here" in terminal.shown


def test_a_closed_terminal_ends_a_run_in_good_order(tmp_path: Path, commands: Commands, whole: Undisturbed) -> None:
    """The kernel tells the whole session, and nothing can be written any more."""
    terminal = in_a_terminal(tmp_path, whole)
    terminal.close()
    time.sleep(1.0)
    whole.server.hold_after = None
    assert terminal.code() == INTERRUPTED
    assert replies(tmp_path / "stopped", whole.run) == whole.server.texts
    assert len(whole.server.texts) == AT + IN_FLIGHT
    with Store.open(tmp_path / "stopped") as store:
        assert len(store.judged_ids(whole.run, 0)) == AT + IN_FLIGHT, "the workers have outlived the terminal"
    ends_as_the_other(commands, whole, tmp_path)


def test_under_nohup_a_run_outlives_its_terminal(tmp_path: Path, whole: Undisturbed) -> None:
    terminal = in_a_terminal(tmp_path, whole, nohup=True)
    terminal.close()
    whole.server.hold_after = None
    assert terminal.code() == 0
    assert contents(tmp_path / "stopped", whole.run) == whole.contents


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
