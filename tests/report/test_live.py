"""What a run's progress looks like, on a terminal and in a log."""

import io
from dataclasses import replace

from rich.console import Console

from opsmith.learn.events import RoundEnded, RoundStarted, RunStarted, SampleJudged, TaskSolved, Warned
from opsmith.records import Boundary, Experience, Outcome, Stage, Task, Usage, Verdict
from opsmith.report.live import Board, render, watch
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


def shown(board: Board) -> str:
    text = io.StringIO()
    Console(file=text, width=100).print(render(board))
    return text.getvalue()


def test_the_board_counts_what_it_is_told():
    board = Board()
    for event in EVENTS[:5]:
        board.tell(event)
    text = shown(board)
    assert "run-1  embedded  1,234 tokens  unknown" in text
    assert "1/3" in text  # norm_0 was solved before
    assert "3/4" in text
    assert "bmm_0 1/2   bmm_1 0/0" in text
    board.tell(EVENTS[5])
    assert "bmm_0 r0 0.50" in shown(board)


def test_a_log_has_a_line_for_each_step_but_not_for_each_sample():
    text = io.StringIO()
    with watch(Console(file=text, width=100)) as on_event:
        for event in [*EVENTS, END]:
            on_event(event)
    assert text.getvalue().splitlines()[:-1] == [
        "run run-1 starts: 3 tasks, model embedded",
        "round 0: no demonstrations; 2 tasks, 4 samples",
        "  solved bmm_0: rate 0.500 (equals an example of its prompt)",
        "warning: a [bracketed] warning",
    ]
    assert text.getvalue().splitlines()[-1].startswith("round 0: 1 new, 2 of 3 solved, 1 samples unjudged")


def test_a_terminal_shows_the_board_and_keeps_warnings():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=100)
    with watch(console) as on_event:
        for event in EVENTS:
            on_event(event)
    assert "warning: a [bracketed] warning" in text.getvalue()


def test_the_clock_is_that_of_the_run_and_not_of_the_command() -> None:
    board = Board(began=-1e6)
    board.tell(EVENTS[0])
    assert board.began >= 0
