"""What does the program ask of a store? Every question by name, asked as its command or page asks it."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from opsmith.benchmarks import load_tasks
from opsmith.errors import ProviderError, VerifierError
from opsmith.learn.identity import run_info
from opsmith.learn.loop import improve
from opsmith.learn.result import guardian_effects, result_of
from opsmith.models import Reply, Request
from opsmith.records import Outcome, Stage, Task, Verdict
from opsmith.report.attempts import sample_view
from opsmith.report.files import write
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.attempts import attempts, spent_by_round
from opsmith.store.filling import ROUNDS, TEMPERATURES, Filled
from opsmith.store.pages import Filter, Kind, Place, count_kinds, judged_since, last_verdicts, page_of
from opsmith.store.rows import GUARDIAN, PROPOSER, RunInfo
from opsmith.store.verdicts import judgements
from opsmith.targets import get_target

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

    async def judge(self, task: Task, source: str) -> Verdict:
        raise VerifierError("bench: no verifier")


def settings_of(each: int, seed: int) -> Settings:
    """Those of a run that was filled with `each` samples of a task and temperature in every round."""
    return Settings(model=Silent.name, samples=each, temperatures=TEMPERATURES, seed=seed)


def info_of(tasks: Sequence[Task], settings: Settings) -> RunInfo:
    """How `opsmith run` names that run, so that it is resumed."""
    return run_info(tasks, [], None, Silent(), get_target(tasks[0].target), settings)


def _resume(store: Store, at: Filled) -> None:
    """What `opsmith run` does from its start to its first request, and to its end after that was refused."""
    with contextlib.suppress(ProviderError):
        improve(load_tasks(()), Silent(), settings_of(at.each, at.seed), store, judge=Silent())


def _report(kind: str) -> Question:
    def asked(store: Store, at: Filled) -> None:
        with tempfile.TemporaryDirectory(prefix="opsmith-") as folder:
            write(store, [at.run], kind, Path(folder) / f"report.{kind}")

    return asked


def _counted(store: Store, at: Filled) -> None:
    for number in range(ROUNDS):
        count_kinds(store, at.run, number)


def _listed(wanted: Filter, back: bool = False) -> Question:
    """A page of the list of samples, from its first sample on or up to its last; the counts are those of the cells."""

    def asked(store: Store, at: Filled) -> None:
        cells = kinds_of(at)
        place = Place(at.last.round + 1, "", 0.0, 0) if back else None
        page_of(store, at.run, wanted, cells, before=place)

    return asked


def kinds_of(at: Filled) -> Mapping[Kind, int]:
    """Every kind of sample in every cell: the pages' own counts, which are measured apart, say no more."""
    ends = [(stage, outcome) for stage in Stage for outcome in (Outcome.PASSED, Outcome.REFUSED)]
    return {
        Kind(number, task, warm, stage, outcome, agent): 1
        for number, task, warm in at.cells
        for stage, outcome in ends
        for agent in (PROPOSER, GUARDIAN)
    }


QUESTIONS: Mapping[str, Question] = {
    "resume, to the first request": _resume,
    "end of a round: tallies": lambda store, at: store.tallies(at.run, 0),
    "end of a round: right programs": lambda store, at: store.answers(at.run, 0),
    "opsmith runs": lambda store, at: store.runs(),
    "opsmith show RUN": lambda store, at: result_of(store, at.run),
    "opsmith show RUN TASK": lambda store, at: list(store.samples(at.run, at.middle.task)),
    "opsmith show RUN SAMPLE": lambda store, at: store.sample(at.run, at.middle.id[:12]),
    "tallies of a run": lambda store, at: store.tallies(at.run),
    "usage of a run": lambda store, at: store.usage(at.run),
    "usage of the guardian": lambda store, at: store.usage(at.run, GUARDIAN),
    "usage by round": lambda store, at: spent_by_round(store, at.run),
    "prompt tokens": lambda store, at: store.prompt_tokens(at.run),
    "guardian's effects": lambda store, at: guardian_effects(store, at.run),
    "programs of a task": lambda store, at: attempts(store, at.run, at.middle.task, 500),
    "verdicts of other versions": lambda store, at: judgements(store, at.run, "none"),
    "report, html": _report("html"),
    "report, md": _report("md"),
    "report, csv": _report("csv"),
    "report, parquet": _report("parquet"),
    "ui: counts of all rounds": _counted,
    "ui: counts of the open round": lambda store, at: count_kinds(store, at.run, ROUNDS - 1),
    "ui: first page": _listed(Filter()),
    "ui: last page": _listed(Filter(), back=True),
    "ui: page of passed": _listed(Filter(outcome=Outcome.PASSED)),
    "ui: page of the guardian's": _listed(Filter(agent=GUARDIAN)),
    "ui: last verdicts": lambda store, at: last_verdicts(store, at.run, 12),
    "ui: verdicts of a minute": lambda store, at: judged_since(store, at.run, time.time() - 60),
    "ui: sample with drawings": lambda store, at: sample_view(store, at.run, at.middle.id),
}
