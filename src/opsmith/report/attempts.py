"""What was tried at one task. Its samples grouped by isomorphic program, each group with one sample in full.

Bounded on large stores: so many different programs are read and compared at most, so many groups shown; how many are
left out is counted. Programs are drawn where their language can draw them; nothing of a program is executed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from opsmith.errors import UsageError
from opsmith.records import Candidate, Outcome, Suggestion, Task, Usage, content_hash
from opsmith.report.conversations import ExampleReader, ShownExample, TurnView, is_tool_turn, view_turns
from opsmith.report.curves import DrawnFigure, draw_picture, draw_speeds, draw_steps
from opsmith.report.differences import Difference, find_difference, most_similar
from opsmith.report.drawing import draw_dataflow
from opsmith.report.optimised import ProfileView, read_picture, tabulate_steps, view_profiles
from opsmith.report.record import DataTable
from opsmith.report.speeds import SpeedRow, choose_kept, choose_own, word_speed
from opsmith.report.verdicts import explain_verdict, label_of
from opsmith.report.views import TaskRow
from opsmith.results.bests import find_best, list_best
from opsmith.results.optimisation import OptimisedRun, OptimisedTask, find_origin, find_parent
from opsmith.store import Store
from opsmith.store import attempts as stored
from opsmith.store.measurements import StoredSpeed
from opsmith.store.queries import CandidateRow, KeptExperience, SampleDetail
from opsmith.suites import find_bundled
from opsmith.targets import get_target
from opsmith.targets.capabilities import canonical_form
from opsmith.targets.protocols import Drawn

GROUPS = 12  # shown of a task
PROGRAMS = 500  # of a task that are compared: the most frequent


@dataclass(frozen=True)
class CandidateView:
    agent: str
    source: str | None  # None: the reply held no program
    label: str  # passed, or the stage that refused it
    passed: bool
    message: str
    warnings: tuple[str, ...]
    max_abs_error: float | None
    trials: int
    verifier: str
    final: bool  # what the sample counts by
    differences: tuple[Difference, ...]
    drawing: str | None  # an SVG


@dataclass(frozen=True)
class CallView:
    """One request with its reply; `prompt` names its messages, equal for equal prompts."""

    agent: str
    prompt: str
    messages: tuple[tuple[str, str], ...]  # (role, text)
    replies: tuple[tuple[str, str], ...]  # (text, why it ended)
    model: str
    usage: Usage
    seed: int | None
    max_tokens: int
    pictures: tuple[str, ...]  # of the prompt, as `data:` addresses
    examples: tuple[ShownExample, ...]  # the demonstrations that it shows
    goes_on: bool  # with a conversation, after tools: what it holds stands in the sample's turns
    shared: int = 0  # completions of one request, among which `usage` was shared out; 0: it is this reply's own


@dataclass(frozen=True)
class Improvement:
    """What a sample of an optimisation round was given."""

    suggestion: Suggestion | None
    origin: str | None  # the sample that holds the program it set out from; None: the start program
    profiles: tuple[ProfileView, ...]  # of that program


@dataclass(frozen=True)
class SampleView:
    id: str
    task: str
    round: int
    temperature: float
    number: int
    label: str
    passed: bool
    candidates: tuple[CandidateView, ...]
    calls: tuple[CallView, ...]
    failures: tuple[str, ...]  # what left it unjudged
    speeds: tuple[SpeedRow, ...]
    improvement: Improvement | None  # None: it was not to make a right program better
    turns: tuple[TurnView, ...] = ()  # of its conversation with tools; (): it called none


@dataclass(frozen=True)
class AttemptGroup:
    """Samples whose programs are isomorphic and have one verdict."""

    number: int  # from 1, in the order shown
    samples: int
    programs: int  # different texts
    label: str
    passed: bool
    first_round: int
    is_kept: bool  # the solution that was kept is one of them
    sample: SampleView  # one of them


@dataclass(frozen=True)
class TaskView:
    row: TaskRow
    text: str  # the task as a prompt shows it
    stages: tuple[tuple[str, int], ...]  # samples by where they ended, furthest first
    groups: tuple[AttemptGroup, ...]
    groups_left: int  # groups that are not shown
    samples_left: int  # their samples
    uncompared: int  # samples of rare programs, beyond those that are compared
    unjudged: tuple[tuple[str, int], ...]  # what left samples without a verdict, and how often
    solution: str | None  # the program that was kept, or given
    own: str | None  # the bundled task's own program
    speeds: tuple[SpeedRow, ...]  # of the kept program
    speed_picture: DrawnFigure | None  # None: no time of it is known
    steps: DataTable | None  # of optimisation rounds
    steps_picture: DrawnFigure | None  # None: none of them has a ratio
    shown_steps: tuple[SampleView, ...]  # those that were kept, in full


@dataclass(frozen=True)
class _Group:
    programs: tuple[stored.Attempt, ...]

    @property
    def sample_count(self) -> int:
        return sum(program.count for program in self.programs)


def task_view(
    store: Store,
    run: str,
    row: TaskRow,
    limit: int = GROUPS,
    programs: int = PROGRAMS,
    optimised: OptimisedRun | None = None,
) -> TaskView:
    """A task of a run with its attempts; `run` is a whole id, `row` one of its view's; `programs`: how many at most.

    `optimised`: what came of the run's optimisation rounds.
    """
    task = find_task(store, run, row.id)
    solution = find_best(store, run, task.digest)
    groups, improved = _group_attempts(store, run, task, solution, programs), find_improvement(optimised, row.id)
    chosen = _choose_groups(groups, solution, limit)
    ends = stored.count_stages(store, run, task.id)
    compared = sum(group.sample_count for group in groups)
    stages = sorted(ends, key=lambda end: (end[1] is not Outcome.PASSED, -end[0].rank, end[1]))
    speeds = store.read_speeds(run, task.id)
    kept_speeds = choose_kept(speeds, [solution] if solution is not None else [])
    return TaskView(
        row=row,
        text=task.prompt_text,
        stages=tuple((label_of(stage, outcome), ends[stage, outcome]) for stage, outcome in stages),
        groups=tuple(_view_groups(store, run, task, chosen, solution, speeds)),
        groups_left=len(groups) - len(chosen),
        samples_left=compared - sum(group.sample_count for group in chosen),
        uncompared=sum(ends.values()) - compared,
        unjudged=tuple(stored.count_failures(store, run, task.id)),
        solution=solution.experience.source if solution else None,
        own=own_program(task),
        speeds=tuple(map(word_speed, kept_speeds)),
        speed_picture=_draw_kept(task.id, kept_speeds),
        steps=tabulate_steps([improved]) if improved is not None else None,
        steps_picture=draw_improvement(improved),
        shown_steps=_view_kept_steps(store, run, task, improved, limit),
    )


def find_improvement(optimised: OptimisedRun | None, task: str) -> OptimisedTask | None:
    """What came of a task in a run's optimisation rounds."""
    tasks = optimised.tasks if optimised is not None else ()
    return next((improved for improved in tasks if improved.task == task), None)


def draw_improvement(improved: OptimisedTask | None) -> DrawnFigure | None:
    """A task's ratios, attempt by attempt."""
    figure = draw_steps(improved) if improved is not None else None
    return draw_picture(figure) if figure is not None else None


def _view_kept_steps(
    store: Store, run: str, task: Task, improved: OptimisedTask | None, limit: int
) -> tuple[SampleView, ...]:
    names = [step.row.sample for step in improved.steps if step.is_kept] if improved is not None else []
    details = store.read_details(names[-limit:])
    speeds = store.read_speeds(run, task.id) if details else []
    viewed = [_view_step(store, run, task, details[name], {}, speeds) for name in names[-limit:]]
    return tuple(_add_turns(store, viewed, details))


def read_task_speeds(store: Store, run: str, task: str) -> tuple[tuple[SpeedRow, ...], DrawnFigure | None]:
    """What was measured of the program kept for a task, and its picture over sizes; None: no time is known."""
    solutions = [solution for solution in list_best(store, run) if solution.experience.task.id == task]
    kept_speeds = choose_kept(store.read_speeds(run, task), solutions)
    return tuple(map(word_speed, kept_speeds)), _draw_kept(task, kept_speeds)


def _draw_kept(task: str, speeds: Sequence[StoredSpeed]) -> DrawnFigure | None:
    figure = draw_speeds(task, [speed.report for speed in speeds])
    return draw_picture(figure) if figure is not None else None


def sample_view(store: Store, run: str, name: str) -> SampleView:
    """One sample with drawings, and differences against the kept and the bundled program. Raises UsageError."""
    detail = store.find_sample(run, name)
    task = find_task(store, run, detail.row.task)
    references = _reference_programs(task, find_best(store, run, task.digest))
    viewed = _view_step(store, run, task, detail, references, store.read_speeds(run, task.id))
    return next(_add_turns(store, [viewed], {detail.row.id: detail}))


def _view_step(
    store: Store,
    run: str,
    task: Task,
    detail: SampleDetail,
    references: Mapping[str, str],
    speeds: Sequence[StoredSpeed],
) -> SampleView:
    """A sample, and what it set out from if it was to make a right program better."""
    parent = find_parent(store, run, detail.row)
    if parent is None:
        return _view_sample(ExampleReader(store, run), task, detail, references, speeds)
    stated = next((row.parent_sample for row in detail.candidates if row.parent_sample is not None), None)
    origin = stated or find_origin(store, run, task.id, parent)  # a reply without a program states none
    profiles = view_profiles(store.read_profiles(run, task.id, [parent]))
    improvement = Improvement(store.read_suggestion(detail.row.id), origin, profiles)
    viewed = _view_sample(
        ExampleReader(store, run), task, detail, references, speeds, parents=store.read_texts([parent])
    )
    return replace(viewed, improvement=improvement)


def find_task(store: Store, run: str, name: str) -> Task:
    """A task of a run, or a node that a plan of it split off. Raises UsageError for one that there is not."""
    for task in (*store.read_tasks(run), *store.read_children(run)):
        if task.id == name:
            return task
    raise UsageError(f"task {name!r}: run {run} has no such task")


def _add_turns(
    store: Store, samples: Sequence[SampleView], details: Mapping[str, SampleDetail]
) -> Iterator[SampleView]:
    """Samples with their conversations."""
    used = store.read_tool_calls([sample.id for sample in samples])
    for sample in samples:
        yield replace(sample, turns=view_turns(details[sample.id], used.get(sample.id, ())))


def own_program(task: Task) -> str | None:
    """The program in the file of a bundled task, if the task is exactly that one."""
    bundled = _find_bundled(task)
    return bundled.impl if bundled is not None else None


_find_bundled = lru_cache(maxsize=256)(find_bundled)


def _choose_groups(groups: Sequence[_Group], solution: KeptExperience | None, limit: int) -> list[_Group]:
    """The kept solution's group, then the largest right and refused ones: half of each, where there are as many."""
    right = [group for group in groups if group.programs[0].outcome is Outcome.PASSED]
    right.sort(key=lambda group: not _holds_solution(group, solution))
    refused = [group for group in groups if group.programs[0].outcome is not Outcome.PASSED]
    room = max(limit - len(refused), (limit + 1) // 2)
    return [*right[:room], *refused[: limit - len(right[:room])]]


def _group_attempts(store: Store, run: str, task: Task, solution: KeptExperience | None, limit: int) -> list[_Group]:
    """Right ones first, then the largest; ties in the order of the store."""
    first = Candidate(solution.experience.source).id if solution is not None else None
    programs = stored.list_attempts(store, run, task.id, limit, first)
    bodies = store.read_texts(program.program for program in programs)
    groups: dict[tuple[str, str], list[stored.Attempt]] = {}
    for program in programs:
        text = bodies.get(program.program, "")
        key = (_canonical_text(task.target, text), label_of(program.stage, program.outcome))
        groups.setdefault(key, []).append(program)
    isomorphic = [_Group(tuple(programs)) for programs in groups.values()]
    return sorted(isomorphic, key=lambda group: (group.programs[0].outcome is not Outcome.PASSED, -group.sample_count))


@lru_cache(maxsize=20_000)
def _canonical_text(target: str, source: str) -> str:
    try:
        return canonical_form(get_target(target), source)
    except Exception:  # a text that is no program, or a target that is not here
        return source


def _holds_solution(group: _Group, solution: KeptExperience | None) -> bool:
    return solution is not None and Candidate(solution.experience.source).id in {
        program.program for program in group.programs
    }


def _view_groups(
    store: Store,
    run: str,
    task: Task,
    groups: Sequence[_Group],
    solution: KeptExperience | None,
    speeds: Sequence[StoredSpeed],
) -> Iterable[AttemptGroup]:
    own = solution.sample if solution is not None else None  # that the kept program came from
    chosen = [own if own and _holds_solution(group, solution) else group.programs[0].sample for group in groups]
    details = store.read_details(chosen)
    sources = {f"attempt {number}": _counted_program(details[sample]) for number, sample in enumerate(chosen, 1)}
    references = _reference_programs(task, solution)
    used, reader = store.read_tool_calls(chosen), ExampleReader(store, run)
    for number, (group, sample) in enumerate(zip(groups, chosen, strict=True), 1):
        first = group.programs[0]
        neighbours = {name: text for name, text in sources.items() if name != f"attempt {number}" and text}
        yield AttemptGroup(
            number=number,
            samples=group.sample_count,
            programs=len(group.programs),
            label=label_of(first.stage, first.outcome),
            passed=first.outcome is Outcome.PASSED,
            first_round=min(program.round for program in group.programs),
            is_kept=_holds_solution(group, solution),
            sample=replace(
                _view_sample(reader, task, details[sample], references, speeds, neighbours),
                turns=view_turns(details[sample], used.get(sample, ())),
            ),
        )


def _reference_programs(task: Task, solution: KeptExperience | None) -> dict[str, str]:
    """What an attempt is compared with, by name."""
    own = own_program(task)
    references = {"the kept solution": solution.experience.source} if solution is not None else {}
    return references | ({"the task's own program": own} if own is not None and own not in references.values() else {})


def _counted_program(detail: SampleDetail) -> str:
    """The program that a sample counts by."""
    return next((candidate.source or "" for candidate in detail.candidates if candidate.final), "")


def _view_sample(
    reader: ExampleReader,
    task: Task,
    detail: SampleDetail,
    references: Mapping[str, str],
    speeds: Sequence[StoredSpeed],
    neighbours: Mapping[str, str] | None = None,
    parents: Mapping[str, str] | None = None,
) -> SampleView:
    row = detail.row
    compared = dict(references)
    near = most_similar(_counted_program(detail), neighbours or {})
    if near is not None and neighbours is not None and neighbours[near] not in references.values():
        compared[f"{near}, the most similar one"] = neighbours[near]
    proposals = {
        Candidate(candidate.source).id: candidate.source
        for candidate in detail.candidates
        if candidate.source is not None
    }
    named = {name: ("what it was rewritten from", text) for name, text in proposals.items()}
    named |= {name: ("the program that it set out from", text) for name, text in (parents or {}).items()}
    candidates = tuple(_view_candidate(task, candidate, compared, named) for candidate in detail.candidates)
    calls = tuple(_view_calls(detail, reader))
    place = (row.id, row.task, row.round, row.temperature, row.number)
    passed = row.outcome is Outcome.PASSED
    measured = tuple(map(word_speed, choose_own(speeds, detail)))
    label = label_of(row.stage, row.outcome)
    return SampleView(*place, label, passed, candidates, calls, detail.failures, measured, improvement=None)


def _view_candidate(
    task: Task, candidate: CandidateRow, compared: Mapping[str, str], parents: Mapping[str, tuple[str, str]]
) -> CandidateView:
    verdict, source = candidate.verdict, candidate.source
    against = dict(compared) if candidate.final else {}
    if candidate.parent is not None and candidate.parent in parents:
        name, text = parents[candidate.parent]
        against = {name: text, **against}
    differences = [find_difference(source or "", program, name) for name, program in against.items() if source]
    return CandidateView(
        agent=candidate.agent,
        source=source,
        label=label_of(verdict.stage, verdict.outcome),
        passed=verdict.passed,
        message=explain_verdict(task, verdict),
        warnings=verdict.public_warnings,
        max_abs_error=verdict.max_abs_error,
        trials=verdict.trials,
        verifier=verdict.verifier,
        final=candidate.final,
        differences=tuple(candidate for candidate in differences if candidate is not None),
        drawing=drawing_of(task, source) if source else None,
    )


def _view_calls(detail: SampleDetail, reader: ExampleReader) -> Iterable[CallView]:
    for call in detail.calls:
        messages = tuple((message.role, message.content) for message in call.messages)
        name = content_hash(*(text for message in messages for text in message))
        finish = (*call.reply.finish, *[""] * len(call.reply.texts))
        replies = tuple(zip(call.reply.texts, finish, strict=False))
        images = [image for message in call.messages for image in message.images]
        pictures = tuple(filter(None, (read_picture(image.media, image.data) for image in images)))
        facts = (call.reply.model, call.reply.usage, call.seed, call.max_tokens, pictures)
        goes_on, prompt = is_tool_turn(call.agent), "\n".join(text for _, text in messages)
        examples = () if goes_on else tuple(reader.list_shown(detail.row.round, prompt))
        yield CallView(call.agent, name, messages, replies, *facts, examples, goes_on, call.reply.shared)


def drawing_of(task: Task, source: str) -> str | None:
    """The program as an SVG; None where it has no graph, or its language is not here or draws nothing."""
    try:
        target = get_target(task.target)
        flow = target.build_dataflow(task, source) if isinstance(target, Drawn) else None
    except Exception:  # a target of others: a page without a drawing is better than none
        return None
    return None if flow is None else draw_dataflow(flow, f"Dataflow of a program for {task.id}")
