"""Which operators has a run to give, where do they come from, and are they right by today's verifier?"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from opsmith.errors import UsageError
from opsmith.learn.judge import IMPORT
from opsmith.records import Outcome, Task, Usage, Verdict
from opsmith.store import Store
from opsmith.store.queries import Kept, SampleDetail
from opsmith.store.rows import RunInfo
from opsmith.targets.packaged import Solved
from opsmith.verification.pool import Pool

LONGEST = 60  # characters of a function's name


@dataclass(frozen=True)
class Origin:
    """Where a solution comes from, as far as the store knows; None: it does not."""

    run: str  # the run that found it, or "import"
    model: str | None
    is_language_model: bool | None
    round: int | None
    success_rate: float
    sample: str | None
    temperature: float | None
    contaminated: bool | None  # it equals an example of its own prompt
    sample_usage: Usage | None  # of the sample that it came from, all its requests
    samples: int | None  # judged, of this task in that run
    right: int | None  # of these
    verdict: Verdict | None  # the one by which the run kept it


@dataclass(frozen=True)
class Operator:
    """A solved task with its program, where it comes from, and the verdict of now."""

    name: str  # of its function in the library
    task: Task
    source: str
    origin: Origin
    verdict: Verdict

    @property
    def solved(self) -> Solved:
        return Solved(self.name, self.task, self.source, facts(self))


def operators_of(store: Store, run: str, pool: Pool) -> list[Operator]:
    """Every solved task of a run, those it was given included, judged by today's verifier; by name."""
    kept = sorted(store.experiences(run), key=lambda item: (item.experience.task.id, item.experience.task.digest))
    if not kept:
        raise UsageError(f"run {run}: it has solved no task; expected at least one operator to export")
    names = identifiers([item.experience.task.id for item in kept])
    waiting = [pool.submit(item.experience.task, item.experience.source) for item in kept]
    counts: Counts = {}
    return [
        Operator(name, item.experience.task, item.experience.source, _origin(store, run, item, counts), future.result())
        for name, item, future in zip(names, kept, waiting, strict=True)
    ]


def missing_of(store: Store, run: str, operators: Sequence[Operator]) -> list[Task]:
    """The run's tasks that it has not solved."""
    solved = {operator.task.digest for operator in operators}
    return sorted((task for task in store.tasks(run) if task.digest not in solved), key=lambda task: task.id)


def identifiers(ids: Sequence[str]) -> list[str]:
    """A name of a Python function for each task id, in lower case, all different.

    >>> identifiers(["attn_0", "Attn_0", "my task!", "2nd", "class"])
    ['attn_0', 'attn_0_2', 'my_task', 'op_2nd', 'class_']
    """
    found: list[str] = []
    for id_ in ids:
        stem = _identifier(id_)
        number, name = 1, stem
        while name in found:
            number += 1
            name = f"{stem}_{number}"
        found.append(name)
    return found


def _identifier(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:LONGEST].strip("_") or "op"
    name = name if name[0].isalpha() else f"op_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


Counts = dict[str, dict[str, Counter[str]]]  # run -> task -> judged and right samples


def _origin(store: Store, run: str, kept: Kept, seen: Counts) -> Origin:
    """Looked up in the run that found it, which may be another one of this store."""
    found = kept.experience
    name = run if kept.sample is not None else found.origin
    info = store.info(name) if name != IMPORT else None
    earned = kept if kept.sample is not None else _earned(store, info, found.task)
    detail = store.sample(name, earned.sample) if earned is not None and earned.sample is not None else None
    counts = _counts(store, info, seen).get(found.task.id)
    return Origin(
        run=name,
        model=info.model if info else None,
        is_language_model=info.is_language_model if info else None,
        round=earned.experience.round if earned else None,
        success_rate=found.success_rate,
        sample=earned.sample if earned else None,
        temperature=detail.row.temperature if detail else None,
        contaminated=earned.contaminated if earned else None,
        sample_usage=Usage.total(call.reply.usage for call in detail.calls) if detail else None,
        samples=counts["judged"] if counts else None,
        right=counts["right"] if counts else None,
        verdict=_verdict(detail),
    )


def _earned(store: Store, info: RunInfo | None, task: Task) -> Kept | None:
    """The experience of another run for this task, if that run found it itself."""
    found = store.experiences(info.id) if info else []
    same = (item for item in found if item.experience.task.digest == task.digest and item.sample is not None)
    return next(same, None)


def _counts(store: Store, info: RunInfo | None, seen: Counts) -> dict[str, Counter[str]]:
    """By task, of the run; counted once."""
    if info is None:
        return {}
    if info.id not in seen:
        counts = seen[info.id] = {}
        for tally in store.tallies(info.id):
            counts.setdefault(tally.task, Counter()).update(judged=tally.judged, right=tally.right)
    return seen[info.id]


def _verdict(detail: SampleDetail | None) -> Verdict | None:
    finals = [row.verdict for row in detail.candidates if row.final] if detail else []
    return finals[0] if finals else None


def facts(operator: Operator) -> dict[str, str]:
    """An operator's origin and verdicts in words."""
    origin, verdict = operator.origin, operator.verdict
    told = {
        "model": _model(origin),
        "run": origin.run if origin.round is None else f"{origin.run}, round {origin.round}",
        "success rate": f"{origin.success_rate:.3g}, of the samples at the best temperature of that round",
        "samples": None
        if origin.samples is None
        else f"{origin.right} right of {origin.samples} judged, in all rounds",
        "sample": origin.sample and f"{origin.sample}, temperature {origin.temperature:g}",
        "cost": origin.sample_usage and _cost(origin.sample_usage),
        "found right by": origin.verdict and f"verifier {origin.verdict.verifier}, {origin.verdict.trials} trials",
        "verdict now": f"{verdict.outcome}: verifier {verdict.verifier}, {verdict.trials} trials",
        "note": "the program equals an example of its own prompt" if origin.contaminated else None,
    }
    return {name: str(fact) for name, fact in told.items() if fact}


def _model(origin: Origin) -> str:
    if origin.model is None:
        return "none: it was imported" if origin.run == IMPORT else "not known: the store does not hold that run"
    return (
        origin.model
        if origin.is_language_model
        else f"{origin.model}, which is a program sampler, not a language model"
    )


def _cost(usage: Usage) -> str:
    price = "price not known" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    return f"{usage.input_tokens} input and {usage.output_tokens} output tokens, {price}"


def not_passed(operators: Sequence[Operator]) -> list[Operator]:
    """Those that today's verifier refuses or cannot judge."""
    return [operator for operator in operators if operator.verdict.outcome is not Outcome.PASSED]
