"""Zero-shot kernels of one model: asked for, judged and timed once each, and the most typical ones chosen.

A sample is one reply. Nothing is repaired, and nothing that was found wrong is told: there is no second round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsmith.agents.reply import read_reply
from opsmith.measuring.record import MeasuringGrade
from opsmith.models import ChatModel, Request
from opsmith.targets import get_target
from opsmith.targets.protocols import Parametrised, Timed
from opsmith_lab.study.arms import seed_search
from opsmith_lab.study.recording import Inquiry, RecordingModel
from opsmith_lab.study.sizes import TOLD, KernelCell, Sizes, find_task, write_messages
from opsmith_lab.study.workbench import PlainRatio, Workbench

MAX_TOKENS = 4096
NO_PROGRAM = "FORMAT"
Parameters = tuple[tuple[str, tuple[int, ...]], ...]  # by kind


@dataclass(frozen=True)
class KernelSample:
    """What came of one reply."""

    cell: KernelCell
    source: str | None  # None: the reply held no program
    stage: str = NO_PROGRAM  # where it was refused; "": it is right
    parameters: Parameters = ()  # of right ones
    screen: PlainRatio | None = None  # of right ones, at the cell's size

    @property
    def is_right(self) -> bool:
        return not self.stage


@dataclass(frozen=True)
class TypicalKernel:
    """The right program of some samples that is nearest to all others by its parameters, fully graded."""

    cell: KernelCell
    source: str
    parameters: Parameters
    ratio: PlainRatio
    build: str = ""  # what the compiler says of it, where its language is not timed here


@dataclass
class KernelSamples:
    """All of one model."""

    model: str
    is_language_model: bool
    samples: list[KernelSample] = field(default_factory=list)
    typical: list[TypicalKernel] = field(default_factory=list)


def ask_kernels(
    model: ChatModel,
    cells: Sequence[KernelCell],
    number: int,
    file: Path,
    concurrency: int,
    max_cost: float | None,
    on_progress: Callable[[str], None],
) -> tuple[list[tuple[KernelCell, str]], Inquiry]:
    """So many replies for each cell, as far as money and provider let them come; earlier ones from a file."""
    inquiry = Inquiry(RecordingModel(model, file), max_cost)

    async def answer(order: tuple[KernelCell, int]) -> tuple[tuple[KernelCell, int], str] | None:
        reply = await inquiry.ask(make_request(*order))
        return None if reply is None else (order, reply.texts[0])

    orders = [(cell, place) for cell in cells for place in range(number)]
    work = inquiry.answer_all(orders, answer, concurrency, "samples", on_progress)
    answered = dict(asyncio.run(work))
    return [(order[0], answered[order]) for order in orders if order in answered], inquiry


def make_request(cell: KernelCell, place: int) -> Request:
    """Of one sample; no two of a study are equal."""
    messages = write_messages(cell.kernel, cell.language, cell.sizes if cell.prompt == TOLD else None)
    seed = seed_search("kernel", cell.kernel, cell.sizes, cell.prompt, place) % 2**31
    return Request(messages, 1, cell.temperature, MAX_TOKENS, seed)


def read_samples(replies: Sequence[tuple[KernelCell, str]], bench: Workbench) -> list[KernelSample]:
    """Judged, with parameters; right ones screened."""
    sources: dict[tuple[str, str], list[str]] = {}
    texts = {(cell.language, cell.kernel, text) for cell, text in replies}  # of several equal ones one is read
    read = {place: read_reply(get_target(place[0]), find_task(place[1], place[0]), place[2]).source for place in texts}
    samples = [KernelSample(cell, read[cell.language, cell.kernel, text]) for cell, text in replies]
    for sample in samples:
        if sample.source is not None:
            sources.setdefault((sample.cell.language, sample.cell.kernel), []).append(sample.source)
    verdicts = {
        place: bench.judge_programs(find_task(place[1], place[0]), programs) for place, programs in sources.items()
    }
    complete = []
    for number, sample in enumerate(samples, 1):
        cell = sample.cell
        if sample.source is None:
            complete.append(sample)
            continue
        verdict = verdicts[cell.language, cell.kernel][sample.source]
        parameters = read_parameters(cell.language, verdict.source) if verdict.is_right else ()
        screen = screen_program(bench, cell, verdict.source) if verdict.is_right else None
        complete.append(KernelSample(cell, verdict.source, verdict.stage, parameters, screen))
        if number % 200 == 0 or number == len(samples):
            bench.on_progress(f"{cell.language}: {number} of {len(samples)} samples judged and screened")
    return complete


def read_parameters(language: str, source: str) -> Parameters:
    target = get_target(language)
    return tuple(target.read_parameters(source).items()) if isinstance(target, Parametrised) else ()


def screen_program(bench: Workbench, cell: KernelCell, source: str) -> PlainRatio:
    task = find_task(cell.kernel, cell.language)
    return bench.time_program(task, source, dict(cell.sizes), MeasuringGrade.SCREEN)


def grade_typical(samples: Sequence[KernelSample], bench: Workbench) -> list[TypicalKernel]:
    """Of each cell that has a right sample."""
    by_cell: dict[KernelCell, list[KernelSample]] = {}
    for sample in samples:
        if sample.is_right:
            by_cell.setdefault(sample.cell, []).append(sample)
    typical = []
    for number, (cell, right) in enumerate(by_cell.items(), 1):
        chosen, task = find_medoid(right), find_task(cell.kernel, cell.language)
        ratio = bench.time_program(task, chosen.source or "", dict(cell.sizes), MeasuringGrade.FULL)
        is_timed = isinstance(get_target(cell.language), Timed)
        build = "" if is_timed else bench.describe_build(task, chosen.source or "")
        typical.append(TypicalKernel(cell, chosen.source or "", chosen.parameters, ratio, build))
        bench.on_progress(f"{cell.language}: {number} of {len(by_cell)} typical programs graded")
    return typical


def find_medoid(samples: Sequence[KernelSample]) -> KernelSample:
    """The sample with the smallest sum of distances by parameters to all others; of several the first."""
    pairs = [
        frozenset((kind, number) for kind, numbers in sample.parameters for number in numbers) for sample in samples
    ]
    counts: dict[frozenset[tuple[str, int]], int] = {}
    for own in pairs:
        counts[own] = counts.get(own, 0) + 1
    sums = {own: sum(number * measure_distance(own, each) for each, number in counts.items()) for own in counts}
    return samples[min(range(len(samples)), key=lambda place: sums[pairs[place]])]


def measure_distance(first: frozenset[tuple[str, int]], second: frozenset[tuple[str, int]]) -> float:
    """Of two sets of parameters: the share of their numbers that are not in both, from 0 to 1."""
    together = first | second
    return 1 - len(first & second) / len(together) if together else 0.0


def transfer_programs(
    bench: Workbench, language: str, kernel: str, programs: Mapping[Sizes, str]
) -> list[list[float | None]]:
    """Screens of programs that were written for sizes at all these sizes, [size][program], by a schedule of their own:
    the figures that chose a program are not among them."""
    task = find_task(kernel, language)

    def screen_row(sizes: Sizes) -> Iterator[float | None]:
        for source in programs.values():
            yield bench.time_program(task, source, dict(sizes), MeasuringGrade.SCREEN, 1).ratio

    return [list(screen_row(sizes)) for sizes in programs]
