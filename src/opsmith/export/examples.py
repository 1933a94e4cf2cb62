"""Replies of a run that teach something. Right ones to imitate, and pairs of a right and a wrong one to prefer from.

Of right replies that hold isomorphic programs for one task one stays, the first of the run, so that what is sampled
often does not drown the rest; a wrong program, too, is paired once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from opsmith.judging.verifier import canonical_source
from opsmith.records import Candidate, Outcome, Task, content_hash
from opsmith.results.lineage import OptimisationStep, read_objective, read_optimised
from opsmith.results.memory import remember_step
from opsmith.store import Store
from opsmith.store.rows import RoundInfo
from opsmith.store.verdicts import Answered, list_answered
from opsmith.targets import get_target
from opsmith.targets.capabilities import name_verifier

TRAIN, TEST, MIXED = SPLITS = ("train", "test", "mixed")
TEST_SHARE = 5  # one task of so many


@dataclass(frozen=True)
class Example:
    """A right reply, with what is known of it."""

    task: Task
    answer: Answered
    split: str
    isomorphism: str  # hash of the program's canonical text
    demonstrations: tuple[str, ...]  # the tasks whose solutions its round's prompts show
    contaminated: bool  # the program is isomorphic to one of these


@dataclass(frozen=True)
class Preference:
    """A right and a wrong reply to one task; `same_prompt`: both answer the prompt of the right one."""

    chosen: Example
    rejected: Answered
    same_prompt: bool


@dataclass(frozen=True)
class ChangeExample:
    """A right program of an optimisation round with the one that it set out from: better or worse."""

    task: Task
    step: OptimisationStep
    objective: str
    split: str
    remembered: str  # gain, or loss: prompts may show it, a loss turned around; "": it changed too little


@dataclass(frozen=True)
class Examples:
    right: tuple[Example, ...]
    pairs: tuple[Preference, ...]
    improvements: tuple[ChangeExample, ...] = ()


def examples_of(store: Store, run: str, every: bool) -> Examples:
    """Those of a run, by task; `every`: all right replies, isomorphic ones too."""
    verifier = name_verifier(get_target(store.target_name(run)))
    rounds = {round_.number: round_ for round_, _ in store.read_rounds(run)}
    own = sorted(store.read_tasks(run), key=lambda task: task.id)
    children, origins = {task.id: task for task in store.read_children(run)}, store.find_origins(run)
    tasks = [*own, *(children[name] for name in sorted(children))]
    shown_names = {name for round_ in rounds.values() for name, _ in round_.demonstrations}
    digests = {solution.experience.task.id: solution.experience.task.digest for solution in store.read_experiences(run)}
    splits = {task.id: split_of(task.digest) for task in own}
    splits |= {child: splits[origin] for child, origin in origins.items()}
    splits |= {name: split_of(digests[name]) for name in shown_names & digests.keys()}
    chosen: list[Example] = []
    pairs: list[Preference] = []
    for task in tasks:
        answers = _list_answers(store, run, task.id, verifier)
        name = _class_namer(store, task)
        round_ = [
            _make_example(task, answer, rounds[answer.round], splits, name) for answer in answers if answer.is_right
        ]
        right = _first_of_each(round_)
        chosen += round_ if every else right
        pairs += _pair_answers(right, [answer for answer in answers if answer.outcome is Outcome.REFUSED], task)
    return Examples(tuple(chosen), tuple(pairs), tuple(_list_improvements(store, run, own)))


def _list_answers(store: Store, run: str, task: str, verifier: str) -> list[Answered]:
    """The replies to a task that answer it: one that called tools asks for something, whatever program it names."""
    answers = list(list_answered(store, run, task, verifier))
    called = store.read_tool_calls([answer.sample for answer in answers])
    calling = {(sample, call.turn) for sample, calls in called.items() for call in calls}
    return [answer for answer in answers if (answer.sample, answer.agent) not in calling]


def _list_improvements(store: Store, run: str, tasks: Sequence[Task]) -> Iterator[ChangeExample]:
    """All steps whose ratio is known, task by task in the order of the samples' keys."""
    objective = read_objective(store, run)
    lineages = read_optimised(store, run)
    for task in (task for task in tasks if task.id in lineages):
        for step in lineages[task.id].steps:
            if step.ratio is not None and step.row.source is not None:
                change = remember_step(task, step)
                remembered = "" if change is None else "loss" if change.is_reversed else "gain"
                yield ChangeExample(task, step, objective, split_of(task.digest), remembered)


def split_of(digest: str) -> str:
    """`test` for one task of five, by the hash of its content: the same in every data set that holds the task."""
    return TEST if int(content_hash("split", digest)[:8], 16) % TEST_SHARE == 0 else TRAIN


def _class_namer(store: Store, task: Task) -> Callable[[str], str]:
    """The name of a program's isomorphism class, by its hash in the store."""

    @cache
    def name(program: str) -> str:
        return content_hash(canonical_source(task, store.read_text(program)))

    return name


def _make_example(
    task: Task, answer: Answered, round_: RoundInfo, splits: dict[str, str], name: Callable[[str], str]
) -> Example:
    assert answer.program is not None, "a right reply holds a program"
    isomorphism = name(Candidate(answer.program).id)
    names = tuple(dict.fromkeys(name_shown for name_shown, _ in round_.demonstrations))
    leaks = splits[task.id] == TRAIN and any(splits.get(name_shown) == TEST for name_shown in names)
    contaminated = isomorphism in {name(program) for _, program in round_.demonstrations}
    return Example(task, answer, MIXED if leaks else splits[task.id], isomorphism, names, contaminated)


def _first_of_each(examples: Sequence[Example]) -> list[Example]:
    """The first of every isomorphism class."""
    groups: dict[str, Example] = {}
    for example in examples:
        groups.setdefault(example.isomorphism, example)
    return list(groups.values())


def _pair_answers(right: Sequence[Example], wrong: Sequence[Answered], task: Task) -> Iterator[Preference]:
    """Each wrong program once, with a right one to the same prompt, each in turn; where no prompt of the task has
    both, with one to another prompt.
    """
    by_prompt: dict[str, list[Example]] = {}
    for example in right:
        by_prompt.setdefault(example.answer.prompt, []).append(example)
    distinct = _distinct_answers(wrong, task)
    same = [answer for answer in distinct if answer.prompt in by_prompt]
    turns: dict[str, int] = {}
    for answer in same or (distinct if right else ()):
        choices = by_prompt[answer.prompt] if same else list(right)
        key = answer.prompt if same else ""
        turns[key] = turns.get(key, -1) + 1
        yield Preference(choices[turns[key] % len(choices)], answer, bool(same))


def _distinct_answers(wrong: Sequence[Answered], task: Task) -> list[Answered]:
    """The first reply of each wrong program and prompt; replies without a program differ by their text."""
    first: dict[tuple[str, str], Answered] = {}
    for answer in wrong:
        program = answer.reply if answer.program is None else canonical_source(task, answer.program)
        first.setdefault((answer.prompt, program), answer)
    return list(first.values())
