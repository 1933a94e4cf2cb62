"""What is happening. A run's progress on a terminal while it runs, or as plain lines where there is no terminal.

with watch_run(console) as on_event:
    improve(tasks, model, settings, on_event=on_event)

Where there is no terminal, a line a minute says how far a round is.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from opsmith.learn import events
from opsmith.records import Usage, printable, strip_number
from opsmith.report.speeds import describe_speed
from opsmith.report.tables import count_noun, format_cost, format_duration, make_table
from opsmith.store.plans import StoredPlan
from opsmith.store.rows import OPTIMISATION, RoundInfo

_ALL_LINES = 99  # of the tasks of a group
EVERY_S = 60.0  # between two lines of how far a round is, in a log


@dataclass
class TaskState:
    """One task in the current round."""

    right: int = 0
    judged: int = 0
    solved_in: int | None = None  # None: not solved yet; -1: before the run began
    rate: float = 0.0


@dataclass
class RunProgress:
    """All that the display shows, told by events."""

    run: str = ""
    model: str = ""
    tasks: dict[str, TaskState] = field(default_factory=dict)
    round: int = -1
    examples: str = ""  # the demonstrations of the round, in words
    planned: int = 0  # samples of the round
    answered: int = 0
    answered_before: int = 0  # of them, in earlier sessions
    round_began: float | None = None  # None: no round is under way
    known: set[str] = field(default_factory=set)  # tasks with a program that the run was given: none of the model's
    nodes: int = 0  # children of plans that have their program
    spent: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)

    @property
    def solved(self) -> int:
        return sum(state.solved_in is not None and task not in self.known for task, state in self.tasks.items())

    @property
    def asked(self) -> int:
        """The tasks less those that are known."""
        return len(self.tasks) - len(self.known)

    def show_event(self, event: events.Event) -> None:
        match event:
            case events.RunStarted():
                self.run, self.model, self.began = event.run, event.model, time.monotonic()
                self.tasks = {task: TaskState() for task in event.tasks}
                self.known = set(event.known)
                for task in self.tasks.keys() & {*event.solved_before, *event.known}:
                    self.tasks[task].solved_in = -1
            case events.ProgramsGiven():
                fresh = self.tasks.keys() & {program.task.id for program in event.programs}
                self.known |= fresh
                for task in fresh:
                    self.tasks[task].solved_in = -1
            case events.RoundStarted():
                self._start_round(event)
            case events.SampleJudged():
                self._count_sample(event)
            case events.TaskSolved():
                state = self.tasks[event.experience.task.id]
                state.solved_in, state.rate = event.experience.round, event.experience.success_rate
            case events.RoundEnded():
                self.spent, self.round_began = event.spent, None
            case events.NodeSolved():
                self.nodes += 1

    def describe_pace(self) -> str:
        """How long the round goes on at the pace that it had so far; "" where nobody can tell."""
        fresh, ahead = self.answered - self.answered_before, self.planned - self.answered
        if self.round_began is None or fresh <= 0 or ahead <= 0:
            return ""
        return f"about {format_duration((time.monotonic() - self.round_began) / fresh * ahead)} left"

    def count_attempted(self, info: RoundInfo) -> str:
        """`3 tasks`, `2 tasks and 4 nodes`."""
        own = sum(task in self.tasks for task in info.attempted)
        nodes = len(info.attempted) - own
        counts = [count_noun(own, "task")] if own or not nodes else []
        return " and ".join([*counts, *([count_noun(nodes, "node")] if nodes else [])])

    def _start_round(self, event: events.RoundStarted) -> None:
        info = event.round
        self.round, self.planned, self.answered = info.number, info.planned, event.judged_before
        self.answered_before, self.round_began = event.judged_before, time.monotonic()
        self.examples = describe_round(info)
        for task in self.tasks.keys() & set(info.attempted):
            self.tasks[task].right = self.tasks[task].judged = 0

    def _count_sample(self, event: events.SampleJudged) -> None:
        self.answered += 1
        self.spent = event.spent
        state = self.tasks.get(event.key.task)  # None: of a child of a plan
        if event.verdict is not None and state is not None:
            state.judged += 1
            state.right += event.verdict.passed


@contextlib.contextmanager
def watch_run(console: Console) -> Iterator[events.OnEvent]:
    """A function to be told of events. The display lives as long as the context."""
    board = RunProgress()
    if not console.is_terminal:
        with _print_regularly(console, board):
            yield lambda event: _print_line(console, board, event)
        return
    with Live(
        console=console, refresh_per_second=4, get_renderable=lambda: render_board(board), transient=True
    ) as live:

        def tell(event: events.Event) -> None:
            board.show_event(event)
            if isinstance(
                event, (events.RoundEnded, events.Warned, events.Stopping, events.ProgramsGiven)
            ):  # these stay above the display
                live.console.print(format_event(board, event), markup=False, highlight=False)

        yield tell


@contextlib.contextmanager
def _print_regularly(console: Console, board: RunProgress) -> Iterator[None]:
    """While inside, a line a minute of how far the round is, also where nothing happens at all."""
    end = threading.Event()

    def keep_printing() -> None:
        while not end.wait(EVERY_S):
            if board.round_began is not None and board.answered < board.planned:
                clock = format_duration(time.monotonic() - board.round_began)
                text = f"  round {board.round}: {board.answered:,} of {count_noun(board.planned, 'sample')}, {clock}"
                pace = board.describe_pace()
                console.print(f"{text}, {pace}" if pace else text, markup=False, highlight=False, soft_wrap=True)

    thread = threading.Thread(target=keep_printing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _print_line(console: Console, board: RunProgress, event: events.Event) -> None:
    board.show_event(event)
    text = format_event(board, event)
    if text is not None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def format_event(board: RunProgress, event: events.Event) -> str | None:
    """The event as one line of a log; None for those that happen too often."""
    match event:
        case events.RunStarted():
            verb = "goes on" if event.resumed else "starts"
            return printable(f"run {event.run} {verb}: {count_noun(len(event.tasks), 'task')}, model {event.model}")
        case events.RoundStarted(round=info):
            asked = f"{board.count_attempted(info)}, {count_noun(info.planned, 'sample')}"
            return f"round {info.number}: {board.examples}; {asked}"
        case events.TaskSolved(experience=found):
            flag = " (equals an example of its prompt)" if event.contaminated else ""
            return printable(f"  solved {found.task.id}: rate {found.success_rate:.3f}{flag}")
        case events.RoundEnded(round=info):
            unjudged = f", {count_noun(event.unjudged, 'sample')} unjudged" if event.unjudged else ""
            clock = format_duration(time.monotonic() - board.began)
            new = f"{len(event.solved)} new, {board.solved} of {board.asked} solved"
            if info.phase == OPTIMISATION:
                new = f"{count_noun(len(event.solved), 'task')} gained"
            return f"round {info.number}: {new}{unjudged}, {clock}"
        case events.Warned() | events.Stopping():
            return f"warning: {event.message}" if isinstance(event, events.Warned) else describe_stop(event)
        case _:
            return _format_measuring(event)


def _describe_known(event: events.KnownJudged | events.ProgramsGiven) -> str:
    """What became of programs that the run was given."""
    if isinstance(event, events.KnownJudged):
        state = "right" if event.passed else "not right, or not judged"
        place = f"{event.program.task.id} ({event.program.place})"
        return f"  known: {place}: {state}; {event.number} of {event.count} judged"
    names = ", ".join(f"{program.task.id} ({program.author}, {program.place})" for program in event.programs)
    return f"known, shown from round {event.round} on and not the model's: {names}"


def _format_measuring(event: events.Event) -> str | None:
    """The same of those that tell of plans, measurements and what the run is given."""
    match event:
        case events.KnownJudged() | events.ProgramsGiven():
            return printable(_describe_known(event))
        case events.PlanMade(plan=plan):
            return printable(f"  {describe_plan(plan)}")
        case events.NodeSolved(experience=solution):
            return printable(f"  solved node {solution.task.id}: rate {solution.success_rate:.3f}")
        case events.MeasuringStarted():
            noun = "program" if event.programs == 1 else "programs"
            return f"  {event.programs} {noun} to be measured, {event.grade} grade"
        case events.ProgramMeasured():
            measured = event.speed.report.measurement
            return printable(f"  measured {event.speed.task} at {measured.shape_set}: {describe_speed(measured)}")
    return None


def describe_plan(plan: StoredPlan) -> str:
    """What was planned, and why.

    >>> describe_plan(StoredPlan("attn_0", 0, "static", "unsolved after 2 rounds", 2, None, "no split: too small"))
    'attn_0 has no split: too small (unsolved after 2 rounds)'
    """
    if plan.split is None:
        what = f"{plan.task}: the contract of {plan.changed} stays" if plan.changed else f"{plan.task} has no split"
        return f"{what}: {plan.lack} ({plan.reason})"
    names = ", ".join(node.name for node in plan.split.nodes)
    verb = f"has another contract for {plan.changed}" if plan.changed else "is split"
    return f"{plan.task} {verb}: {names} ({plan.reason})"


def describe_stop(event: events.Stopping) -> str:
    """What a run that was told to stop still waits for.

    >>> describe_stop(events.Stopping(16, 1, 20.0, False))
    'stopping: waiting for 16 requests in flight and 1 verdict, 20 s at most; Ctrl-C again ends at once'
    """
    if not event.requests and not event.verdicts:
        return "stopping: nothing is under way"
    where = "that lie in batches (the same command finds them again)" if event.in_batches else "in flight"
    waiting = f"{count_noun(event.requests, 'request')} {where} and {count_noun(event.verdicts, 'verdict')}"
    return f"stopping: waiting for {waiting}, {event.seconds:g} s at most; Ctrl-C again ends at once"


def describe_round(info: RoundInfo) -> str:
    """What a round shows, or what it begins with."""
    if info.phase == OPTIMISATION:
        return f"optimisation of {count_noun(len(info.demonstrations), 'program')}"
    return describe_demonstrations(info.level, len(info.demonstrations))


def describe_demonstrations(level: str, count: int) -> str:
    return "no demonstrations" if count == 0 else f"{count_noun(count, 'demonstration')} ({level})"


def render_board(board: RunProgress) -> RenderableType:
    """The whole display: a headline, the round's bar, and the tasks by group."""
    tokens = board.spent.input_tokens + board.spent.output_tokens
    clock = format_duration(time.monotonic() - board.began)
    head = f"run {board.run}  {board.model}  {tokens:,} tokens  {format_cost(board.spent)}  {clock}"
    bars = Table.grid(padding=(0, 1))
    notes = ", ".join(filter(None, (board.examples, board.describe_pace())))
    for name, count, of, note in (
        ("solved", board.solved, board.asked, f"{len(board.known)} known" if board.known else ""),
        (f"round {max(board.round, 0)}", board.answered, board.planned, notes),
    ):
        bars.add_row(name, ProgressBar(of or 1, count, width=40), f"{count}/{of}", note)
    return Group(Text(printable(head)), bars, _tasks_table(board))


def _tasks_table(board: RunProgress) -> Table:
    """One row per group of ids with a common stem, so that the 26 tasks fit a small terminal."""
    rows = make_table("group", "tasks (round solved and rate, or right/judged in this round)", lines=_ALL_LINES)
    groups: dict[str, list[Text]] = {}
    for task, state in board.tasks.items():
        groups.setdefault(strip_number(task), []).append(_task_text(task, state, task in board.known))
    for group, cells in groups.items():
        rows.add_row(group, Text("   ").join(cells))
    return rows


def _task_text(task: str, state: TaskState, is_known: bool) -> Text:
    name = printable(task)
    if state.solved_in is None:
        return Text(f"{name} {state.right}/{state.judged}", style="green" if state.right else "")
    when = "known" if is_known else "given" if state.solved_in < 0 else f"r{state.solved_in} {state.rate:.2f}"
    return Text(f"{name} {when}", style="bold green")
