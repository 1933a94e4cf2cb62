"""A run with both phases over a language without a compiler: its programs count words, and fewer are better.

Scripted are the models (what they say depends on their messages and the request's seed alone) and the device (its
figures depend on the program alone). Run as a program, `python optimised_run.py STORE`, every session is a process of
its own, which ends itself by SIGKILL at the first step that no earlier session reached (of some thirty, chosen by a hash); at the end the number of killed
sessions is printed. STORE.asked has each request that was answered, STORE.measured each measurement that was made.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

from killed_run import run_until_done  # noqa: E402
from tiny_run import InProcess, TinyModel  # noqa: E402
from tiny_target import Tiny, tiny_task  # noqa: E402

from opsmith.agents.analysis import read_analysis_prompt  # noqa: E402
from opsmith.agents.generation import read_generation_prompt  # noqa: E402
from opsmith.agents.prompt import read_prompt  # noqa: E402
from opsmith.learn.events import Event, ProgramMeasured, RoundEnded, RoundStarted, SampleJudged  # noqa: E402
from opsmith.learn.loop import improve  # noqa: E402
from opsmith.measuring.intervals import Interval  # noqa: E402
from opsmith.measuring.orders import SpeedOrder, name_measurement  # noqa: E402
from opsmith.measuring.record import SpeedMeasurement, SpeedRatio, SpeedReport  # noqa: E402
from opsmith.models import Message, Request  # noqa: E402
from opsmith.records import CYCLES, Candidate, Task, content_hash  # noqa: E402
from opsmith.settings import Settings  # noqa: E402
from opsmith.store import Store  # noqa: E402
from opsmith.store.rows import OPTIMISATION  # noqa: E402
from opsmith.targets import TARGETS  # noqa: E402

LAYERS = 3  # of useless work in the program that the functional phase ends with
WRONG = "x"  # no program is shorter


class ImprovableTiny(Tiny):
    name = "tiny-improvable"

    def describe_platform(self) -> str:
        return "Every word costs 10 cycles."

    def improvement_prompt(self, has_example: bool) -> str:
        return "Write the same program in fewer words."


IMPROVABLE = ImprovableTiny()
TARGETS[IMPROVABLE.name] = lambda: IMPROVABLE
TASKS = [replace(tiny_task(f"sum_{at}", "x y + z +" + " u +" * at), target=IMPROVABLE.name) for at in range(2)]
SETTINGS = Settings(
    samples=3, temperatures=(0.7,), agents="single", measure="screen", seed=1, concurrency=4,
    optimise=2, objective="cycles", attempts=4, fixes=1,
)  # fmt: skip


def write_layers(task: Task, layers: int) -> str:
    """The task's sum, where `x` goes through so many useless comparisons with itself."""
    copies = [
        f"copy {name} c{at} d{at}" for at, name in enumerate(["x", *(f"c{at}" for at in range(layers - 1))][:layers])
    ]
    first = f"c{layers - 1}" if layers else "x"
    maxima = "".join(f" d{at} max" for at in reversed(range(layers)))
    return "\n".join([*copies, f"{first}{maxima} y + z +" + " u +" * int(task.id[-1])]) + "\n"


def count_layers(source: str) -> int:
    return source.count("max")


def find_task(text: str) -> Task:
    """The task in a prompt: only the second one has an input `u`."""
    return TASKS[" u:" in text]


def answer(messages: Sequence[Message], choice: int) -> str:
    """What the models say; `choice`: which of what they may say."""
    analysed, generated = read_analysis_prompt(messages), read_generation_prompt(messages)
    if analysed is not None:
        return f'what: "leave out one max of {count_layers(analysed.source)}"\nwhere: "the first line"\n'
    if generated is None:
        return write_answer(write_layers(find_task(read_prompt(messages).task), LAYERS) if choice % 3 else WRONG)
    task, layers = find_task(generated.task), count_layers(generated.source)
    if len(messages) > 2 or not layers:  # a wrong program comes back with its findings
        return write_answer(write_layers(task, max(0, layers - 1)))
    choices = [WRONG, generated.source, write_layers(task, layers + 1), write_layers(task, layers - 1)]
    return write_answer(choices[choice % 4])


def write_answer(source: str) -> str:
    return "impl: |\n  " + source.strip().replace("\n", "\n  ") + "\n"


class ScriptedModel(TinyModel):
    """One of the two, by its name."""

    def __init__(self, name: str = "generator", note: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.name, self._note = name, note

    def answer(self, request: Request) -> str:
        self._note(f"{self.name} {request.seed}")
        assert request.seed is not None
        return answer(request.messages, request.seed)


class WordCounter:
    """The measuring device: 10 cycles a word."""

    def __init__(self, note: Callable[[str], None] = lambda _: None) -> None:
        self.orders: list[SpeedOrder] = []
        self._note = note

    def explain_lack(self, task: Task) -> str:
        return ""

    async def measure(self, order: SpeedOrder) -> AsyncIterator[SpeedReport]:
        self.orders.append(order)
        report = count_words(order)
        if name_measurement(order.task.id, report.measurement) not in order.measured:
            partner, _ = order.find_partner() or ("nobody", "")
            self._note(f"{order.task.id} {Candidate(order.source).id[:8]} beside {partner[:8]} {order.grade.value}")
            yield report


def count_words(order: SpeedOrder) -> SpeedReport:
    def as_point(figure: float) -> Interval:
        return Interval(figure, figure, figure)

    own, partner = 10.0 * len(order.source.split()), order.find_partner()
    measurement = SpeedMeasurement(
        program=Candidate(order.source).id, problem=order.task.digest, shape_set="base", sizes={}, device="scripted",
        protocol="scripted/1", flags="", grade=order.grade, objective=CYCLES, time=as_point(own),
        ratio=partner and SpeedRatio(partner[0], as_point(10.0 * len(partner[1].split()) / own)),
    )  # fmt: skip
    return SpeedReport(measurement, None)


def run_session(path: str) -> None:
    """Ends itself at a step that no session before it has reached."""
    steps = Path(f"{path}.steps")
    reached = set(steps.read_text().splitlines()) if steps.exists() else set()

    def end_at(step: str) -> None:
        if step not in reached and content_hash(step)[0] in "0246":
            with steps.open("a") as log:
                log.write(f"{step}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    def note_in(name: str) -> Callable[[str], None]:
        def note(line: str) -> None:
            end_at(f"{name} {line}")
            with Path(f"{path}.{name}").open("a") as log:
                log.write(f"{line}\n")

        return note

    def watch(event: Event) -> None:
        if isinstance(event, SampleJudged) and event.key.phase == OPTIMISATION:
            end_at(f"judged {event.key.id}")
        if isinstance(event, ProgramMeasured):
            end_at(f"stored {event.speed.task} {event.speed.report.measurement}")
        if isinstance(event, (RoundStarted, RoundEnded)):
            end_at(f"{type(event).__name__} {event.round.number}")

    with Store.open(path) as store:
        model, measurer = ScriptedModel(note=note_in("asked")), WordCounter(note_in("measured"))
        improve(
            TASKS, model, SETTINGS.replace(concurrency=1), store, judge=InProcess(), measurer=measurer, on_event=watch
        )


def main() -> None:
    killed, code = run_until_done(lambda: run_session(sys.argv[1]))
    print(killed)
    sys.exit(code)


if __name__ == "__main__":
    main()
