"""What the program asks of a store: every question by name, asked as its command or page asks it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from opsmith.errors import ProviderError, VerifierError
from opsmith.learn.identity import run_info
from opsmith.learn.loop import improve
from opsmith.models import Reply, Request
from opsmith.models.roles import gather_models
from opsmith.records import Level, Outcome, Stage, Task, Verdict
from opsmith.report.attempts import sample_view
from opsmith.report.files import write_report
from opsmith.results.result import guardian_effects, result_of
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.attempts import list_attempts, spent_by_round
from opsmith.store.pages import Filter, SampleKind, SamplePlace, count_kinds, judged_since, last_verdicts, page_of
from opsmith.store.rows import GUARDIAN, PROPOSER, RunInfo
from opsmith.store.verdicts import list_judgements
from opsmith.suites import load_tasks
from opsmith.targets import get_target
from opsmith_lab.filling import ROUNDS, TEMPERATURES, Filled

Question = Callable[[Store, Filled], object]


class Silent:
    """A model that refuses every request, and a judge that judges nothing: what comes before them is measured."""

    name = "bench"
    context_window: int | None = None
    is_language_model = False

    async def complete(self, request: Request) -> Reply:
        raise ProviderError("bench: no model", status=401)

    async def close(self) -> None:
        """Nothing is open."""

    async def judge(self, task: Task, source: str, level: Level = Level.CHEAP) -> Verdict:
        raise VerifierError("bench: no verifier")


def make_settings(each: int, seed: int) -> Settings:
    """Those of a run that was filled with `each` samples of a task and temperature in every round."""
    return Settings(model=Silent.name, samples=each, temperatures=TEMPERATURES, seed=seed)


def make_info(tasks: Sequence[Task], settings: Settings) -> RunInfo:
    """How `opsmith run` names that run, so that it is resumed."""
    return run_info(tasks, [], None, gather_models(Silent()), get_target(tasks[0].target), settings)


def _resume_run(store: Store, filled: Filled) -> None:
    """What `opsmith run` does from its start to its first request, and to its end after that was refused."""
    with contextlib.suppress(ProviderError):
        improve(load_tasks(()), Silent(), make_settings(filled.each, filled.seed), store, judge=Silent())


def _ask_report(kind: str) -> Question:
    def report_run(store: Store, filled: Filled) -> None:
        with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
            write_report(store, [filled.run], kind, Path(folder) / f"report.{kind}")

    return report_run


def _count_rounds(store: Store, filled: Filled) -> None:
    for number in range(ROUNDS):
        count_kinds(store, filled.run, number)


def _ask_page(sample_filter: Filter, back: bool = False) -> Question:
    """A page of the list of samples, from its first sample on or up to its last; the counts are those of the cells."""

    def list_samples(store: Store, filled: Filled) -> None:
        cells = list_kinds(filled)
        place = SamplePlace(filled.last.round + 1, "", 0.0, 0) if back else None
        page_of(store, filled.run, sample_filter, cells, before=place)

    return list_samples


def list_kinds(filled: Filled) -> Mapping[SampleKind, int]:
    """Every kind of sample in every cell: the pages' own counts, which are measured apart, say no more."""
    ends = [(stage, outcome) for stage in map(Stage, Stage.ORDER) for outcome in (Outcome.PASSED, Outcome.REFUSED)]
    return {
        SampleKind(number, task, warm, stage, outcome, agent): 1
        for number, task, warm in filled.cells
        for stage, outcome in ends
        for agent in (PROPOSER, GUARDIAN)
    }


QUESTIONS: Mapping[str, Question] = {
    "resume, to the first request": _resume_run,
    "end of a round: tallies": lambda store, filled: store.read_tallies(filled.run, 0),
    "end of a round: right programs": lambda store, filled: store.read_answers(filled.run, 0),
    "opsmith runs": lambda store, filled: store.list_runs(),
    "opsmith show RUN": lambda store, filled: result_of(store, filled.run),
    "opsmith show RUN TASK": lambda store, filled: list(store.list_samples(filled.run, filled.middle.task)),
    "opsmith show RUN SAMPLE": lambda store, filled: store.find_sample(filled.run, filled.middle.id[:12]),
    "tallies of a run": lambda store, filled: store.read_tallies(filled.run),
    "usage of a run": lambda store, filled: store.sum_usage(filled.run),
    "usage of the guardian": lambda store, filled: store.sum_usage(filled.run, GUARDIAN),
    "usage by round": lambda store, filled: spent_by_round(store, filled.run),
    "prompt tokens": lambda store, filled: store.prompt_tokens(filled.run),
    "guardian's effects": lambda store, filled: guardian_effects(store, filled.run),
    "programs of a task": lambda store, filled: list_attempts(store, filled.run, filled.middle.task, 500),
    "verdicts of other versions": lambda store, filled: list_judgements(store, filled.run, "none"),
    "report, html": _ask_report("html"),
    "report, md": _ask_report("md"),
    "report, csv": _ask_report("csv"),
    "report, parquet": _ask_report("parquet"),
    "ui: counts of all rounds": _count_rounds,
    "ui: counts of the open round": lambda store, filled: count_kinds(store, filled.run, ROUNDS - 1),
    "ui: first page": _ask_page(Filter()),
    "ui: last page": _ask_page(Filter(), back=True),
    "ui: page of passed": _ask_page(Filter(outcome=Outcome.PASSED)),
    "ui: page of the guardian's": _ask_page(Filter(agent=GUARDIAN)),
    "ui: last verdicts": lambda store, filled: last_verdicts(store, filled.run, 12),
    "ui: verdicts of a minute": lambda store, filled: judged_since(store, filled.run, time.time() - 60),
    "ui: sample with drawings": lambda store, filled: sample_view(store, filled.run, filled.middle.id),
}
