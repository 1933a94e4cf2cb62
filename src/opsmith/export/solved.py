"""The operators that a run has to give, where they come from, and today's verdicts on them."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from opsmith.errors import UsageError
from opsmith.export.choice import ProgramChoice
from opsmith.judging.judge import IMPORT
from opsmith.judging.pool import Pool
from opsmith.judging.verifier import leave_unjudged
from opsmith.records import (
    KNOWN,
    Boundary,
    Candidate,
    Diagnostic,
    Level,
    Outcome,
    Task,
    Usage,
    Verdict,
    content_hash,
)
from opsmith.report.fronts import word_best, word_figure, write_value
from opsmith.results.bests import list_best
from opsmith.results.optimisation import read_optimisation
from opsmith.store import Store
from opsmith.store.queries import KeptExperience, SampleDetail
from opsmith.store.rows import RunInfo
from opsmith.targets import get_target
from opsmith.targets.programs import SizedProgram, Solved
from opsmith.targets.protocols import Translated

LONGEST = 60  # characters of a function's name
NO_GAIN = "no gain shown"


@dataclass(frozen=True)
class SolutionOrigin:
    """Where a solution comes from, as far as the store knows; None: it does not."""

    run: str  # the run that found it, or "import"
    model: str | None
    is_language_model: bool | None
    round: int | None
    success_rate: float
    gain: float | None  # over the program that optimisation rounds began with; None: it is that one
    sample: str | None
    temperature: float | None
    contaminated: bool | None  # it equals an example of its own prompt
    sample_usage: Usage | None  # of the sample that it came from, all its requests
    samples: int | None  # judged, of this task in that run
    right: int | None  # of these
    verdict: Verdict | None  # the one by which the run kept it


@dataclass(frozen=True)
class SolvedOperator:
    """A solved task with its program, where it comes from, and the verdict of now."""

    name: str  # of its function in the library
    task: Task
    source: str
    origin: SolutionOrigin
    verdict: Verdict
    choice: ProgramChoice | None = None  # by an objective; None: it is the one that the run kept
    sized_verdicts: tuple[Verdict, ...] = ()  # of the choice's several programs
    lack: str = ""  # why it is what optimisation rounds began with; "": they made it, or there were none
    figures: tuple[Mapping[str, Any], ...] = ()  # further ones of its record in a manifest
    secret: str = field(default="", repr=False)  # of its proof: what that one's hidden sizes are drawn from
    translation: Mapping[str, Any] = field(default_factory=dict, repr=False)  # see `Solved`

    @property
    def as_solved(self) -> Solved:
        return Solved(
            self.name,
            self.task,
            self.source,
            describe_facts(self),
            self.verdict.build,
            tuple(self._list_sized()),
            self.secret,
            self.translation,
        )

    def _list_sized(self) -> Iterator[SizedProgram]:
        """The several programs where all of them are right today."""
        sized = self.choice.by_size if self.choice is not None else ()
        if all(verdict.passed for verdict in self.sized_verdicts):
            for program, verdict in zip(sized, self.sized_verdicts, strict=True):
                yield SizedProgram(program.source, verdict.build, program.sizes)


def operators_of(
    store: Store, run: str, pool: Pool, choices: Mapping[str, ProgramChoice] = MappingProxyType({})
) -> list[SolvedOperator]:
    """Every solved task of a run, those it was given included, with its best program, judged by today's verifier; by
    name.

    choices: by task, programs in place of the best ones.
    """
    solutions = sorted(
        list_best(store, run), key=lambda solution: (solution.experience.task.id, solution.experience.task.digest)
    )
    solutions = [
        choices[solution.experience.task.id].apply(solution) if solution.experience.task.id in choices else solution
        for solution in solutions
    ]
    if not solutions:
        raise UsageError(f"run {run}: it has solved no task; expected at least one operator to export")
    names = name_functions([solution.experience.task.id for solution in solutions])
    waiting = [pool.submit(solution.experience.task, solution.experience.source, Level.FULL) for solution in solutions]
    counts: Counts = {}
    optimised = read_optimisation(store, run)
    tried = optimised.tasks if optimised is not None else ()
    lacks = {task.task: task.lack or NO_GAIN for task in tried if task.best is None}
    return [
        SolvedOperator(
            name,
            solution.experience.task,
            solution.experience.source,
            _find_origin(store, run, solution, counts),
            future.result(),
            choice := choices.get(solution.experience.task.id),
            _judge_sized(pool, solution.experience.task, choice),
            lacks.get(solution.experience.task.id, "") if choice is None else "",
            secret=content_hash("the proof of an export", store.read_secret(run), name)[:32],
        )
        for name, solution, future in zip(names, solutions, waiting, strict=True)
    ]


def translate_operators(pool: Pool, operators: Sequence[SolvedOperator]) -> list[SolvedOperator]:
    """The same with what their packages need, where their language is written anew in these; one for which there is no
    such text is unjudged, and its message says why."""
    return [_translate_operator(pool, operator) for operator in operators]


def _translate_operator(pool: Pool, operator: SolvedOperator) -> SolvedOperator:
    if not operator.verdict.passed or not isinstance(get_target(operator.task.target), Translated):
        return operator
    try:
        return replace(operator, translation=pool.plan_translation(operator.task, operator.source, operator.name))
    except UsageError as lack:
        finding = Diagnostic("EXPORT", "the package", str(lack), "a text that gives the same")
        verdict = leave_unjudged(operator.source, Boundary.OURS, finding, operator.verdict.verifier)
        return replace(operator, verdict=verdict)


def _judge_sized(pool: Pool, task: Task, choice: ProgramChoice | None) -> tuple[Verdict, ...]:
    sized = choice.by_size if choice is not None else ()
    return tuple(pool.verify(task, program.source, Level.FULL) for program in sized)


def missing_of(store: Store, run: str, operators: Sequence[SolvedOperator]) -> list[Task]:
    """The run's tasks that it has not solved."""
    solved = {operator.task.digest for operator in operators}
    return sorted((task for task in store.read_tasks(run) if task.digest not in solved), key=lambda task: task.id)


def name_functions(ids: Sequence[str]) -> list[str]:
    """A name of a Python function for each task id, in lower case, all different.

    >>> name_functions(["attn_0", "Attn_0", "my task!", "2nd", "class"])
    ['attn_0', 'attn_0_2', 'my_task', 'op_2nd', 'class_']
    """
    names: list[str] = []
    for id_ in ids:
        stem = _name_function(id_)
        number, name = 1, stem
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names.append(name)
    return names


def _name_function(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:LONGEST].strip("_") or "op"
    name = name if name[0].isalpha() else f"op_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


Counts = dict[str, dict[str, Counter[str]]]  # run -> task -> judged and right samples


def _find_origin(store: Store, run: str, solution: KeptExperience, counted: Counts) -> SolutionOrigin:
    """Looked up in the run that found it, which may be another one of this store."""
    experience = solution.experience
    name = run if solution.sample is not None else experience.origin
    info = store.read_info(name) if name != IMPORT else None
    earned = solution if solution.sample is not None else _find_earned(store, info, experience.task)
    detail = store.find_sample(name, earned.sample) if earned is not None and earned.sample is not None else None
    counts = _count_samples(store, info, counted).get(experience.task.id)
    return SolutionOrigin(
        run=name,
        model=info.model if info else None,
        is_language_model=info.is_language_model if info else None,
        round=earned.experience.round if earned else None,
        success_rate=experience.success_rate,
        gain=experience.gain,
        sample=earned.sample if earned else None,
        temperature=detail.row.temperature if detail else None,
        contaminated=earned.contaminated if earned else None,
        sample_usage=Usage.total(call.reply.usage for call in detail.calls) if detail else None,
        samples=counts["judged"] if counts else None,
        right=counts["right"] if counts else None,
        verdict=_find_verdict(detail, experience.source),
    )


def _find_earned(store: Store, info: RunInfo | None, task: Task) -> KeptExperience | None:
    """The experience of another run for this task, if that run found it itself."""
    solutions = list_best(store, info.id) if info else []
    same = (
        solution
        for solution in solutions
        if solution.experience.task.digest == task.digest and solution.sample is not None
    )
    return next(same, None)


def _count_samples(store: Store, info: RunInfo | None, counted: Counts) -> dict[str, Counter[str]]:
    """By task, of the run; counted once."""
    if info is None:
        return {}
    if info.id not in counted:
        counts = counted[info.id] = {}
        for tally in store.read_tallies(info.id):
            counts.setdefault(tally.task, Counter()).update(judged=tally.judged, right=tally.right)
    return counted[info.id]


def _find_verdict(detail: SampleDetail | None, source: str) -> Verdict | None:
    """That of the program in its sample, or the one that the sample counts by."""
    rows = detail.candidates if detail else ()
    own = [row.verdict for row in rows if row.verdict is not None and row.verdict.candidate == Candidate(source).id]
    finals = [row.verdict for row in rows if row.final]
    return next(iter((*own, *finals)), None)


def describe_facts(operator: SolvedOperator) -> dict[str, str]:
    """An operator's origin and verdicts in words."""
    origin, verdict = operator.origin, operator.verdict
    is_given = origin.run.startswith(KNOWN)
    phrases = {
        "written by" if is_given else "model": name_author(origin),
        "run": None if is_given else origin.run if origin.round is None else f"{origin.run}, round {origin.round}",
        "success rate": None
        if origin.gain or is_given
        else f"{origin.success_rate:.3g}, of the samples at the best temperature of that round",
        "gain": origin.gain and f"better by a factor of {origin.gain:.3f} than the program that the run began with",
        "not better": operator.lack and f"the program that the run began with: {operator.lack}",
        "samples": None
        if origin.samples is None
        else f"{origin.right} right of {origin.samples} judged, in all rounds",
        "sample": origin.sample and f"{origin.sample}, temperature {origin.temperature:g}",
        "cost": origin.sample_usage and _format_usage(origin.sample_usage),
        "found right by": origin.verdict and f"verifier {origin.verdict.verifier}, {origin.verdict.trials} trials",
        "verdict now": f"{verdict.outcome}: verifier {verdict.verifier}, {verdict.trials} trials",
        "built with": verdict.build,
        "chosen": operator.choice and describe_choice(operator.choice),
        "note": "the program equals an example of its own prompt" if origin.contaminated else None,
    }
    return {name: str(fact) for name, fact in phrases.items() if fact}


def describe_choice(choice: ProgramChoice) -> str:
    """By what a program was chosen, in words."""
    front, name = choice.front, choice.objective
    place = front.names.index(name)
    objective, value = front.objectives[place], choice.point.figures[place]
    own = "" if front.own is None else f"; the task's own program has {write_value(objective, front.own[place])}"
    count = f"of {len(front.programs)} right program{'s' * (len(front.programs) != 1)}"
    return f"the {word_best(objective)} {word_figure(name)} {count}: {write_value(objective, value)}{own}"


_GIVEN_BY = {
    "person": "people, who gave it to the run",
    "model": "a model of other runs: the program was given to this one",
    "rules": "rules: the program was given to the run",
}


def name_author(origin: SolutionOrigin) -> str:
    """Who wrote it: a model, or who else."""
    if origin.run.startswith(KNOWN):
        author = origin.run.removeprefix(KNOWN)
        return _GIVEN_BY.get(author, author)
    if origin.model is None:
        return "none: it was imported" if origin.run == IMPORT else "not known: the store does not hold that run"
    return (
        origin.model
        if origin.is_language_model
        else f"{origin.model}, which is a program sampler, not a language model"
    )


def _format_usage(usage: Usage) -> str:
    price = "price not known" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
    return f"{usage.input_tokens} input and {usage.output_tokens} output tokens, {price}"


def not_passed(operators: Sequence[SolvedOperator]) -> list[SolvedOperator]:
    """Those that today's verifier refuses or cannot judge."""
    return [operator for operator in operators if operator.verdict.outcome is not Outcome.PASSED]
