"""What a run's progress looks like, on a terminal and in a log."""

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from opsmith.learn.events import RoundEnded, RoundStarted, RunStarted, SampleJudged, Stopping, TaskSolved, Warned
from opsmith.records import Boundary, Experience, Outcome, Stage, Task, Usage, Verdict
from opsmith.report import live
from opsmith.report.live import RunProgress, render_board, watch_run
from opsmith.store.rows import RoundInfo, SampleKey

TASKS = ("bmm_0", "bmm_1", "norm_0")
ROUND = RoundInfo(0, 0, "none", (), ("bmm_0", "bmm_1"), 4)
PASSED = Verdict("c", Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE)
REFUSED = replace(PASSED, outcome=Outcome.REFUSED)
SPENT = Usage(2, 1000, 234, 0, None)


def sample(task, verdict, problem=""):
    return SampleJudged(SampleKey("run-1", 0, task, 1.0, 0), verdict, problem, SPENT)


EVENTS = [
    RunStarted("run-1", "embedded", TASKS, ("norm_0",), False),
    RoundStarted(ROUND, 0),
    sample("bmm_0", PASSED),
    sample("bmm_0", REFUSED),
    sample("bmm_1", None, "no reply"),
    TaskSolved(Experience(Task("bmm_0", "step", ""), "return E0", 0.5, 0), contaminated=True),
    Warned("a [bracketed] warning"),
]
END = RoundEnded(ROUND, ("bmm_0",), 1, SPENT)


def shown(board: RunProgress) -> str:
    text = io.StringIO()
    Console(file=text, width=100).print(render_board(board))
    return text.getvalue()


def test_the_board_counts_what_it_is_told():
    board = RunProgress()
    for event in EVENTS[:5]:
        board.show_event(event)
    text = shown(board)
    assert "run-1  embedded  1,234 tokens  unknown" in text
    assert "1/3" in text  # norm_0 was solved before
    assert "3/4" in text
    assert "bmm_0 1/2   bmm_1 0/0" in text
    board.show_event(EVENTS[5])
    assert "bmm_0 r0 0.50" in shown(board)


def test_a_log_has_a_line_for_each_step_but_not_for_each_sample():
    text = io.StringIO()
    with watch_run(Console(file=text, width=100)) as on_event:
        for event in [*EVENTS, END]:
            on_event(event)
    assert text.getvalue().splitlines()[:-1] == [
        "run run-1 starts: 3 tasks, model embedded",
        "round 0: no demonstrations; 2 tasks, 4 samples",
        "  solved bmm_0: rate 0.500 (equals an example of its prompt)",
        "warning: a [bracketed] warning",
    ]
    assert text.getvalue().splitlines()[-1].startswith("round 0: 1 new, 2 of 3 solved, 1 sample unjudged")


def test_a_terminal_shows_the_board_and_keeps_warnings():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with watch_run(console) as on_event:
        for event in EVENTS:
            on_event(event)
    assert "warning: a [bracketed] warning" in text.getvalue()


@pytest.mark.parametrize(
    ("stopping", "said"),
    [
        (Stopping(1, 0, 20.0, False), "waiting for 1 request in flight and 0 verdicts, 20 s at most; Ctrl-C"),
        (Stopping(2000, 5, 20.0, True), "2,000 requests that lie in batches (the same command finds them again) and 5"),
        (Stopping(0, 0, 20.0, False), "stopping: nothing is under way"),
    ],
)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_that_is_told_to_stop_says_what_it_waits_for(stopping, said, terminal):
    text = io.StringIO()
    with watch_run(Console(file=text, force_terminal=terminal, width=200)) as on_event:
        on_event(stopping)
    assert said in text.getvalue()


def test_the_clock_is_that_of_the_run_and_not_of_the_command() -> None:
    board = RunProgress(began=-1e6)
    board.show_event(EVENTS[0])
    assert board.began >= 0


def test_a_log_says_once_a_minute_how_far_the_round_is_also_where_nothing_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.05)
    text = io.StringIO()
    with watch_run(Console(file=text, width=100)) as on_event:
        on_event(EVENTS[0])
        on_event(EVENTS[1])
        time.sleep(0.12)
        on_event(EVENTS[2])
        time.sleep(0.12)
        on_event(END)
        ended = text.getvalue()
        time.sleep(0.12)
        assert text.getvalue() == ended
    lines = [line for line in ended.splitlines() if line.startswith("  round 0: ")]
    assert lines[0].startswith("  round 0: 0 of 4 samples, 0.")
    assert lines[0].endswith(" s")
    assert lines[-1].startswith("  round 0: 1 of 4 samples, 0.")
    assert lines[-1].endswith(" left")


def test_time_left_counts_the_samples_of_this_session_alone() -> None:
    board = RunProgress()
    for event in (EVENTS[0], RoundStarted(replace(ROUND, planned=10), 6), EVENTS[2]):
        board.show_event(event)
    board.round_began = time.monotonic() - 20.0
    assert board.describe_pace() == "about 1:00 left"
    assert "7/10" in shown(board)
    assert "about 1:00 left" in shown(board)
