"""What is happening? A run's progress on a terminal while it runs, or as plain lines where there is no terminal.

with watch(console) as on_event:
    improve(tasks, model, settings, on_event=on_event)
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from opsmith.learn import events
from opsmith.records import Usage
from opsmith.report.tables import cost, duration, table


@dataclass
class TaskState:
    """One task in the current round."""

    right: int = 0
    judged: int = 0
    solved_in: int | None = None  # None: not solved yet; -1: before the run began
    rate: float = 0.0


@dataclass
class Board:
    """All that the display shows, told by events."""

    run: str = ""
    model: str = ""
    tasks: dict[str, TaskState] = field(default_factory=dict)
    round: int = -1
    shown: str = ""  # the demonstrations of the round, in words
    planned: int = 0  # samples of the round
    done: int = 0
    spent: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)

    @property
    def solved(self) -> int:
        return sum(state.solved_in is not None for state in self.tasks.values())

    def tell(self, event: events.Event) -> None:
        match event:
            case events.RunStarted():
                self.run, self.model, self.began = event.run, event.model, time.monotonic()
                self.tasks = {task: TaskState() for task in event.tasks}
                for task in event.given:
                    if task in self.tasks:
                        self.tasks[task].solved_in = -1
            case events.RoundStarted():
                self._start_round(event)
            case events.SampleJudged():
                self._judged(event)
            case events.TaskSolved():
                state = self.tasks[event.experience.task.id]
                state.solved_in, state.rate = event.experience.round, event.experience.success_rate
            case events.RoundEnded():
                self.spent = event.spent

    def _start_round(self, event: events.RoundStarted) -> None:
        info = event.round
        self.round, self.planned, self.done = info.number, info.planned, event.done
        self.shown = demonstrations(info.level, len(info.demonstrations))
        for task in info.attempted:
            self.tasks[task].right = self.tasks[task].judged = 0

    def _judged(self, event: events.SampleJudged) -> None:
        self.done += 1
        self.spent = event.spent
        if event.verdict is not None:
            state = self.tasks[event.key.task]
            state.judged += 1
            state.right += event.verdict.passed


@contextlib.contextmanager
def watch(console: Console) -> Iterator[events.OnEvent]:
    """A function to be told of events. The display lives as long as the context."""
    board = Board()
    if not console.is_terminal:
        yield lambda event: _print_line(console, board, event)
        return
    with Live(console=console, refresh_per_second=4, get_renderable=lambda: render(board), transient=True) as live:

        def tell(event: events.Event) -> None:
            board.tell(event)
            if isinstance(event, (events.RoundEnded, events.Warned)):  # these stay above the display
                live.console.print(line(board, event), markup=False, highlight=False)

        yield tell


def _print_line(console: Console, board: Board, event: events.Event) -> None:
    board.tell(event)
    text = line(board, event)
    if text is not None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def line(board: Board, event: events.Event) -> str | None:
    """The event as one line of a log; None for those that happen too often."""
    match event:
        case events.RunStarted():
            verb = "goes on" if event.resumed else "starts"
            return f"run {event.run} {verb}: {len(event.tasks)} tasks, model {event.model}"
        case events.RoundStarted(round=info):
            return f"round {info.number}: {board.shown}; {len(info.attempted)} tasks, {info.planned} samples"
        case events.TaskSolved(experience=found):
            flag = " (equals an example of its prompt)" if event.contaminated else ""
            return f"  solved {found.task.id}: rate {found.success_rate:.3f}{flag}"
        case events.RoundEnded(round=info):
            left = f", {event.unjudged} samples unjudged" if event.unjudged else ""
            clock = duration(time.monotonic() - board.began)
            new = f"{len(event.solved)} new, {board.solved} of {len(board.tasks)} solved"
            return f"round {info.number}: {new}{left}, {clock}"
        case events.Warned():
            return f"warning: {event.message}"
    return None


def demonstrations(level: str, count: int) -> str:
    return "no demonstrations" if count == 0 else f"{count} demonstrations ({level})"


def render(board: Board) -> RenderableType:
    """The whole display: a headline, the round's bar, and the tasks by group."""
    tokens = board.spent.input_tokens + board.spent.output_tokens
    clock = duration(time.monotonic() - board.began)
    head = f"run {board.run}  {board.model}  {tokens:,} tokens  {cost(board.spent)}  {clock}"
    bars = Table.grid(padding=(0, 1))
    for name, done, of, note in (
        ("solved", board.solved, len(board.tasks), ""),
        (f"round {max(board.round, 0)}", board.done, board.planned, board.shown),
    ):
        bars.add_row(name, ProgressBar(of or 1, done, width=40), f"{done}/{of}", note)
    return Group(Text(head), bars, _tasks(board))


def _tasks(board: Board) -> Table:
    """One row per group of ids with a common stem, so that the 26 tasks fit a small terminal."""
    made = table("group", "tasks (round solved and rate, or right/judged in this round)")
    groups: dict[str, list[Text]] = {}
    for task, state in board.tasks.items():
        stem, _, _ = task.rpartition("_")
        groups.setdefault(stem or task, []).append(_cell(task, state))
    for group, cells in groups.items():
        made.add_row(group, Text("   ").join(cells))
    return made


def _cell(task: str, state: TaskState) -> Text:
    if state.solved_in is None:
        return Text(f"{task} {state.right}/{state.judged}", style="green" if state.right else "")
    when = "given" if state.solved_in < 0 else f"r{state.solved_in} {state.rate:.2f}"
    return Text(f"{task} {when}", style="bold green")
