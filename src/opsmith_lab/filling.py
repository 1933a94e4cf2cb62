"""What a long run would have left in a store. Rows like a run's, drawn from a seed, for measurements of large stores.

A run has four rounds. Each of the first three solves some tasks and ends; the fourth goes on, half of its samples are
there, and the last few of them have a reply and no verdict, as when a process is killed. Programs are the tasks' own
with other names and now and then a line less, so that many texts are different and they compress as programs do.
Nothing here was said by a model or judged by a verifier.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsmith.models import Message, Reply, Request
from opsmith.records import Boundary, Candidate, Diagnostic, Experience, Outcome, Stage, Task, Usage, Verdict
from opsmith.store import Row, Store, rows
from opsmith.store.rows import GUARDIAN, PROPOSER, Judged, RoundInfo, RunInfo, SampleKey

TEMPERATURES = (0.4, 0.7, 1.0)
ROUNDS = 4
SOLVED = 3  # tasks, in each round that ended
IN_FLIGHT = 8  # replies without a verdict
WAITING = 2000  # samples handed to the writer before it is waited for
_SHARES = {  # of 100 samples, how many end where; MATCH holds those that pass
    "FORMAT": 2, "PARSE": 6, "TYPE": 15, "AFFINE": 12, "RUN": 5, "MATCH": 60,
}  # fmt: skip
_SENTENCES = (
    "The inputs arrive as streams, so each of them may be used only once.",
    "First the innermost dimension is gathered into a buffer, then the function is mapped over it.",
    "A copy is needed because two consumers read the same stream.",
    "The accumulation runs over the innermost dimension and leaves one value per row.",
    "Both operands must have the same shape before they are zipped.",
    "The result is turned into a stream again, since the task asks for scalars.",
    "This follows the example above with another function.",
    "The order of the dimensions is checked against the declaration of the output.",
    "I repeat the smaller stream so that its shape agrees with the larger one.",
    "No stream is left over at the end.",
)


@dataclass(frozen=True)
class Filled:
    """A run that was written, and samples of it to ask for."""

    run: str
    seed: int
    each: int  # samples of a task and temperature in a round
    samples: int  # of the whole run
    cells: tuple[tuple[int, str, float], ...]  # (round, task, temperature) of those that are there
    middle: SampleKey
    last: SampleKey


def each_of(samples: int, tasks: int) -> int:
    """Of how many samples a task and temperature of a round must be for about `samples` in all."""
    cells = len(TEMPERATURES) * sum(_shares_of_rounds(tasks))
    return max(2, round(samples / cells))


def fill_run(store: Store, info: RunInfo, tasks: Sequence[Task], each: int) -> Filled:
    """Write a run in which every unsolved task is tried `each` times at every temperature of every round."""
    writing = _Writing(store, random.Random(info.seed))
    tried = sorted(tasks, key=lambda task: task.id)
    store.put(rows.run_rows(info, tasks))
    for number in range(ROUNDS):
        places = ((task.id, warm, index) for task in tried for warm in TEMPERATURES for index in range(each))
        keys = [SampleKey(info.id, number, *place) for place in places]
        names = tuple(task.id for task in tried)
        begun = RoundInfo(number, number, "H" if number else "none", (), names, len(keys))
        store.put([rows.round_row(info.id, begun)])
        half = len(keys) // 2
        writing.write_samples(keys[:half], tried)
        if number < ROUNDS - 1:
            writing.write_samples(keys[half:], tried)
            tried = writing.end_round(info.id, number, tried)
    last = writing.judged[-1]
    writing.write_samples(keys[half : half + IN_FLIGHT], tried, with_verdicts=False)
    return Filled(info.id, info.seed, each, writing.written, tuple(writing.cells), writing.judged[ROUNDS], last)


def arriving_samples(filled: Filled, task: Task) -> Iterator[list[Row]]:
    """More samples of a task in the round that goes on, for ever; their numbers are beyond its own."""
    rng, prompt, number = random.Random(1), rows.prompt_rows(make_messages(task, ROUNDS - 1))[0], 10**6
    while True:
        key = SampleKey(filled.run, ROUNDS - 1, task.id, TEMPERATURES[0], number)
        candidates = _judge_task(task, rng)
        yield [*_reply_rows(key, prompt, candidates, rng), *rows.judged_rows(key, candidates)]
        number += 1


def make_messages(task: Task, number: int) -> tuple[Message, ...]:
    """A prompt of a usual size."""
    return Message("system", " ".join(_SENTENCES) * 25), Message("user", f"round: {number}\n{task.prompt_text}")


def _shares_of_rounds(tasks: int) -> Iterator[float]:
    """Of each round, how many of the tasks' samples it holds; of the last, half are there."""
    for number in range(ROUNDS):
        tried = max(1, tasks - number * SOLVED)
        yield tried / 2 if number == ROUNDS - 1 else tried


class _Writing:
    """Writes samples, and remembers what a round's end needs."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.store = store
        self.rng = rng
        self.written = 0
        self.cells: dict[tuple[int, str, float], None] = {}
        self.judged: list[SampleKey] = []  # the last one of every call
        self._right: dict[str, tuple[SampleKey, str]] = {}  # of a round: a sample of each task, with its program

    def write_samples(self, keys: Sequence[SampleKey], tasks: Sequence[Task], with_verdicts: bool = True) -> None:
        """`with_verdicts` False: replies alone."""
        by_name, prompts = {task.id: task for task in tasks}, {}
        for task in tasks:
            prompts[task.id], texts = rows.prompt_rows(make_messages(task, keys[0].round))
            self.store.put(texts)
        self.cells |= dict.fromkeys((key.round, key.task, key.temperature) for key in keys)
        for count, key in enumerate(keys):
            self.store.put(self._sample_rows(key, by_name[key.task], prompts[key.task], with_verdicts))
            if count % WAITING == 0:
                self.store.flush()
        self.store.flush()
        self.written += len(keys)
        self.judged.append(self._last)

    def end_round(self, run: str, number: int, tried: Sequence[Task]) -> list[Task]:
        """Close a round that solved the first few of its tasks, though not all; those that are left."""
        solved = [task for task in tried if task.id in self._right][: min(SOLVED, len(tried) - 1)]
        earned: list[Row] = []
        for task in solved:
            key, source = self._right[task.id]
            earned += rows.experience_rows(run, Experience(task, source, 0.3, number, run), key.id, False)
        self.store.put([*earned, rows.round_end_row(run, number, [task.id for task in solved])]).result()
        self._right.clear()
        return [task for task in tried if task not in solved]

    def _sample_rows(self, key: SampleKey, task: Task, prompt: str, with_verdicts: bool) -> list[Row]:
        """A failure of the provider, a reply alone, or a reply with its verdicts."""
        rng = self.rng
        if with_verdicts and rng.random() < 0.005:
            status = rng.choice((429, 500, 529))
            return [rows.failure_row(key, Boundary.PROVIDER, f"HTTP {status} after 6 tries")]
        candidates = _judge_task(task, rng)
        reply = _reply_rows(key, prompt, candidates, rng)
        if not with_verdicts:
            return reply
        if candidates[-1].verdict.passed and candidates[-1].source is not None:
            self._right.setdefault(key.task, (key, candidates[-1].source))
        self._last = key
        return [*reply, *rows.judged_rows(key, candidates)]


def _judge_task(task: Task, rng: random.Random) -> list[Judged]:
    """A candidate with its verdict; the guardian rewrites what fails the resource check."""
    stage = Stage(rng.choices(list(_SHARES), list(_SHARES.values()))[0])
    if stage == Stage.FORMAT:
        return [Judged(None, _draw_verdict("", stage, rng))]
    source = _vary_program(task, rng)
    candidates = [Judged(source, _draw_verdict(source, stage, rng))]
    if stage.name == "AFFINE":
        rewritten = f"# copied\n{source}"
        candidates.append(Judged(rewritten, _draw_verdict(rewritten, Stage.MATCH, rng), GUARDIAN, Candidate(source).id))
    return candidates


def _draw_verdict(source: str, stage: Stage, rng: random.Random) -> Verdict:
    name = Candidate(source).id if source else ""
    if stage == Stage.MATCH and rng.random() < 0.5:
        return Verdict(
            name, stage, Outcome.PASSED, Boundary.CANDIDATE, (), trials=52, judging_seconds=0.02, verifier="bench"
        )
    line = rng.randrange(1, 9)
    what = Diagnostic(
        stage.name, f"Map, at the input of line {line}", f"fp32 [M{rng.randrange(40)}, N, K]",
        "a Buffer(fp32, [N]) for its first input", "Bufferize the stream before the Map", line,
    )  # fmt: skip
    trials = 52 if stage == Stage.MATCH else 0
    return Verdict(name, stage, Outcome.REFUSED, Boundary.CANDIDATE, (what,), trials=trials, verifier="bench")


def _vary_program(task: Task, rng: random.Random) -> str:
    """Four of ten are one of twenty usual ones."""
    variant = rng.randrange(20) if rng.random() < 0.4 else rng.randrange(20, 10**9)
    lines = re.sub(r"\bE(\d+)\b", rf"x\1_{variant}", task.impl or "return E0").splitlines()
    if variant % 3 and len(lines) > 1:
        del lines[variant % (len(lines) - 1)]
    return "\n".join(lines) + "\n"


def _reply_rows(key: SampleKey, prompt: str, candidates: Sequence[Judged], rng: random.Random) -> list[Row]:
    sentences = " ".join(rng.choices(_SENTENCES, k=rng.randrange(2, 9)))
    body = f"{candidates[0].source}".replace("\n", "\n  ")
    reply = Reply(
        (f"{sentences}\n```yaml\nimpl: |\n  {body}\n```",), Usage(1, 4700, 240, 4100, 0.0021), "bench", ("stop",)
    )
    request = Request((), 1, key.temperature, 1024, key.seed(0))
    return rows.reply_rows(key, PROPOSER, prompt, request, reply, 2.0)
