"""A finished tiny run with two optimisation rounds that were never run: for tests of how they are counted and shown.

Two tasks, one parent each, four attempts a round. In the first round one is half again as fast, one slower, one wrong
and one no program; in the second, from the faster one, a fixed one is faster by 1.2, one does not compile, one has no
verdict and one fails as it runs.
"""

from dataclasses import replace
from pathlib import Path

from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel
from speed_store import make_report, spread

from opsmith.learn.loop import improve
from opsmith.measuring.claims import Claim
from opsmith.measuring.record import MeasuringGrade, SpeedRatio, SpeedReport
from opsmith.models import Message, Reply, Request
from opsmith.models.pictures import Picture
from opsmith.records import (
    Boundary,
    Candidate,
    Diagnostic,
    Experience,
    Outcome,
    Stage,
    Suggestion,
    Usage,
    Verdict,
)
from opsmith.store import Store, rows
from opsmith.store.measurements import Profile, StoredSpeed, profile_rows, speed_rows
from opsmith.store.rows import ANALYST, OPTIMISATION, PROPOSER, Judged, RoundInfo, SampleKey

OPTIMISED = ("sum_0", "mul_0")  # the tasks
SUGGESTION = Suggestion(
    "Use <b>one</b> addition less.", "the second line", "it waits for the first", "1.5 times as fast"
)
FASTER = " # faster"  # what is added to a start program
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # a PNG


def write_functional(path: Path) -> str:
    """A finished run without a round more: its id."""
    with Store.open(path) as store:
        return improve(TASKS, TinyModel(price=0.001), SETTINGS.replace(seed=1, samples=6), store, judge=InProcess()).run


def add_optimisation(store: Store, run: str, *, with_grade: bool = True) -> None:
    """The two rounds, what was measured in them, and the full grade of the best at their end."""
    first = 1 + max(info.number for info, _ in store.read_rounds(run))
    experiences = {row.experience.task.id: row.experience for row in store.read_experiences(run)}
    for number in (first, first + 1):
        sources = {task: experiences[task].source + ("" if number == first else FASTER) for task in OPTIMISED}
        parents = tuple((task, Candidate(source).id) for task, source in sources.items())
        info = RoundInfo(number, 0, "", parents, OPTIMISED, 4 * len(OPTIMISED), OPTIMISATION)
        store.put([rows.round_row(run, info), rows.round_end_row(run, number, [])]).result()
    for task in OPTIMISED:
        _add_task(store, run, experiences[task], first, with_grade)
    store.flush()


def _add_task(store: Store, run: str, solution: Experience, first: int, with_grade: bool) -> None:
    task, start = solution.task.id, solution.source
    faster, slower, wrong, best = (start + text for text in (FASTER, " # slower", " # wrong", " # best"))
    name = Candidate(start).id
    keys = [
        [SampleKey(run, number, task, 1.0, n, phase=OPTIMISATION) for n in range(4)] for number in (first, first + 1)
    ]
    _answer(store, keys[0][0], [_judge(faster, None, name)])
    _answer(store, keys[0][1], [_judge(slower, None, name)])
    _answer(store, keys[0][2], [_judge(wrong, Stage.MATCH, name)])
    _answer(store, keys[0][3], [_judge(None, Stage.FORMAT, None)])
    parent, place = Candidate(faster).id, keys[0][0].id
    broken = _judge(f"{best} broken", Stage.RUN, parent, place)
    _answer(store, keys[1][0], [broken, replace(_judge(best, None, parent, place), agent="repair-1")])
    _answer(store, keys[1][1], [_judge(f"{best} ?", Stage("TYPE"), parent, place)])
    _answer(store, keys[1][2], [])
    _answer(store, keys[1][3], [_judge(f"{best} failing", Stage.RUN, parent, place)])
    _measure(store, keys[0][0], faster, name, 1.5)
    _measure(store, keys[0][1], slower, name, 0.8)
    _measure(store, keys[1][0], best, parent, 1.2)
    for partner, ratio in ((name, 1.75), ("plain", 1.75), ("eager", 2.0), ("compile", 1.25)) if with_grade else ():
        _measure(store, keys[1][0], best, partner, ratio, MeasuringGrade.FULL)


def _answer(store: Store, key: SampleKey, judged: list[Judged]) -> None:
    reply = Reply(("text",), Usage(1, 100, 10, 0, 0.001), "tiny", ("stop",))
    agents = (ANALYST, PROPOSER, *(candidate.agent for candidate in judged if candidate.agent != PROPOSER))
    for agent in agents:
        images = (Picture("image/png", PIXEL),) if agent == ANALYST else ()
        messages = (Message("system", "Make it faster."), Message("user", f"task: {key.task}", images))
        prompt, texts = rows.prompt_rows(messages)
        store.put([*texts, *rows.reply_rows(key, agent, prompt, Request(messages, 1.0, seed=7), reply, 0.1)])
    store.put(rows.suggestion_rows(key, SUGGESTION))
    for kind, media, body in (
        ("remarks", "text/plain", "line 2: <i>not</i> vectorised"),
        ("roofline", "image/png", PIXEL),
    ):
        profile = Profile("", judged[0].parent or "", "d", kind, media, body, key.task) if judged else None
        store.put(profile_rows(key.run, profile) if profile else [])
    store.put(rows.judged_rows(key, judged) if judged else [rows.failure_row(key, Boundary.SANDBOX, "killed")]).result()


def _judge(source: str | None, refused: Stage | None, parent: str | None, place: str | None = None) -> Judged:
    name = Candidate(source).id if source is not None else ""
    errors = () if refused is None else (Diagnostic("LANG", "here", "this", "that"),)
    outcome = Outcome.PASSED if refused is None else Outcome.REFUSED
    verdict = Verdict(name, refused or Stage.MATCH, outcome, Boundary.CANDIDATE, errors, trials=1)
    return Judged(source, verdict, PROPOSER, parent, place)


def _measure(
    store: Store, key: SampleKey, source: str, partner: str, ratio: float, grade: MeasuringGrade = MeasuringGrade.SCREEN
) -> None:
    is_full = grade is MeasuringGrade.FULL
    report = make_report(Candidate(source).id, "small", 10.0, ratio, grade, Claim.FASTER if is_full else None)
    measured = replace(
        report.measurement,
        ratio=SpeedRatio(
            partner, spread(ratio), spread(ratio, 0.1) if is_full else None, Claim.FASTER if is_full else None
        ),
    )
    store.put(speed_rows(key.run, StoredSpeed(key.task, key.id, SpeedReport(measured, report.share), 0.5)))
