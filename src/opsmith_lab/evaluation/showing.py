"""What the arms of `study-learning` show in place of what was learned: functions of the kept experiences.

Each gives a demonstration for every experience, at its rank, and as long as the true one or nearly so: prompts differ
in what their demonstrations say, and in nothing else. Every task is shown what was learned from the others.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from opsmith.agents.manual import find_manual
from opsmith.agents.prompt import format_yaml_block, get_form, write_system_prompt
from opsmith.errors import UsageError
from opsmith.models import ChatModel, Reply, Request
from opsmith.records import SHOWN_FOR, Experience, Task, content_hash
from opsmith.targets import Target
from opsmith.targets.protocols import Documented, HasManual

TRUE, SHUFFLED, RENAMED, ALL_RENAMED = "true", "shuffled", "renamed", "all renamed"
REFUSED, MANUAL, NOTHING, FEEDBACK = "refused", "manual", "none", "feedback"
MIN_LEARNED = 3  # solved tasks: each is shown two others at least, whose programs can be exchanged
_WORD = re.compile(r"[A-Za-z_]\w*")
_FIRST_WORD = re.compile(r"^[ \t]*([A-Za-z_]\w+)", re.MULTILINE)  # of a line


@dataclass(frozen=True)
class Learned:
    """What a run has left behind, or a part of it."""

    target: Target
    experiences: Sequence[Experience]
    refused: Mapping[str, Sequence[str]]  # by task, its programs that were refused
    seed: int
    findings: Mapping[str, str] = field(default_factory=dict)  # by refused program, what its verdict says

    @property
    def names(self) -> OperatorNames:
        """Of the language's operators."""
        return name_operators(self.target, [each.source for each in self.experiences])

    def leave_out(self, task: str) -> Learned:
        """What was learned without that task."""
        others = [each for each in self.experiences if each.task.id != task]
        refused = {name: sources for name, sources in self.refused.items() if name != task}
        return replace(self, experiences=others, refused=refused)


def show_true(learned: Learned) -> list[Experience]:
    """The experiences as they are."""
    return list(learned.experiences)


def shuffle_programs(learned: Learned) -> list[Experience]:
    """Every program with another task."""
    own = sorted(learned.experiences, key=lambda each: content_hash(str(learned.seed), each.task.id))
    return [replace(each, source=other.source) for each, other in zip(own, [*own[1:], own[0]], strict=True)]


def rename_operators(learned: Learned) -> list[Experience]:
    """The programs with names of operators that the manual does not know."""
    exchange = learned.names.exchange
    return [replace(each, source=exchange(each.source)) for each in learned.experiences]


def show_refused(learned: Learned) -> list[Experience]:
    """A refused program of the task in place of the right one, the nearest in length; where none of its own was
    refused, another task's; where none was refused at all, another task's right one."""
    wrong = [source for sources in learned.refused.values() for source in sources]

    def choose_program(each: Experience) -> str:
        others = wrong or [other.source for other in learned.experiences if other.task != each.task]
        sources = learned.refused.get(each.task.id) or others
        return min(sources, key=lambda source: (abs(len(source) - len(each.source)), source), default=each.source)

    return [replace(each, source=choose_program(each)) for each in learned.experiences]


def quote_manual(learned: Learned) -> list[Experience]:
    """As many characters of what is written on the language, from its beginning on, and from there again at its end."""
    target, form = learned.target, get_form(learned.target, "structural")
    text, place = write_manual(target), 0
    quoted = []
    for each in learned.experiences:
        room = size = len(form.write_example(each))
        excess, passage = 1, each
        while excess > 0 and size > 0:
            beginning = place % len(text)
            chosen = (text * (1 + (beginning + size) // len(text)))[beginning : beginning + size]
            task = replace(each.task, shown=f"manual: {format_yaml_block(chosen)}\n")
            passage = replace(each, task=task, source=f"{target.comment} a passage of the manual")
            excess = len(form.write_example(passage)) - room
            size -= max(0, excess)
        place += size
        quoted.append(passage)
    return quoted


def show_feedback(learned: Learned, task: Task) -> list[Experience]:
    """All programs that were written for the task itself, each below what its verdict says; the right one last."""
    comment = learned.target.comment
    judgements = [(learned.findings[source], source) for source in learned.refused.get(task.id, ())]
    judgements += [("right", own.source) for own in learned.experiences if own.task.id == task.id]
    heads = ["".join(f"{comment} {line}\n" for line in words.splitlines()) for words, _ in judgements]
    return [
        Experience(replace(task, text=f"{task.prompt_text}\n{comment} {number}"), head + source, 1.0, -1)
        for number, (head, (_, source)) in enumerate(zip(heads, judgements, strict=True))
    ]


DEMONSTRATIONS: Mapping[str, Callable[[Learned], list[Experience]]] = {
    TRUE: show_true,
    SHUFFLED: shuffle_programs,
    RENAMED: rename_operators,
    ALL_RENAMED: show_true,  # what is sent is renamed as a whole: `RenamedModel`
    REFUSED: show_refused,
    MANUAL: quote_manual,
}


def make_demonstrations(shows: str, learned: Learned, tasks: Sequence[Task]) -> list[Experience]:
    """What an arm's run is given, for each of its tasks alone. That these are unsolved is no lie: a demonstration is of
    a task that reads alike and is another one. Raises UsageError where fewer than three tasks were solved, but for
    feedback, which is of the task itself."""
    if shows == FEEDBACK:
        return [
            replace(each, task=replace(each.task, shown=task.prompt_text), origin=SHOWN_FOR + task.id)
            for task in tasks
            for each in show_feedback(learned, task)
        ]
    if len(learned.experiences) < MIN_LEARNED:
        given = len(learned.experiences)
        raise UsageError(
            f"study: {given} tasks were solved; expected {MIN_LEARNED} to learn from; try: more samples, or more tasks"
        )
    return [
        replace(each, task=replace(each.task, text=f"{text}\n# {note}", shown=text), round=-1, origin=note)
        for task in tasks
        for note in [SHOWN_FOR + task.id]
        for each in DEMONSTRATIONS[shows](learned.leave_out(task.id))
        for text in [each.task.prompt_text]
    ]


def write_manual(target: Target) -> str:
    """All that is written on a language: its base prompt, the rules of its constructs, its manual."""
    rules = target.describe_constructs() if isinstance(target, Documented) else {}
    manual = find_manual(target)
    passages = [] if manual is None else map(str, manual.passages.quotations)
    return "\n".join([write_system_prompt(target, "structural"), *rules.values(), *passages])


def has_named_operators(target: Target) -> bool:
    """Whether its operators are names, which may as well be others: it documents them, or it is a language of
    instructions, whose names begin its lines."""
    return isinstance(target, Documented | HasManual)


@dataclass(frozen=True)
class OperatorNames:
    """Names of operators, each with a meaningless one that is as long."""

    invented: Mapping[str, str]  # by the language's own

    def exchange(self, text: str) -> str:
        """The text with either in place of the other; twice, it is what it was."""
        both = {**self.invented, **{new: old for old, new in self.invented.items()}}
        return _WORD.sub(lambda word: both.get(word[0], word[0]), text)

    def select_invented(self, text: str) -> OperatorNames:
        """Those whose invented name the text has."""
        words = set(_WORD.findall(text))
        return OperatorNames({old: new for old, new in self.invented.items() if new in words})


def name_operators(target: Target, sources: Iterable[str]) -> OperatorNames:
    """The operators that a language documents; of one that documents none, what begins lines of programs and stands in
    what is written on it."""
    known = set(_WORD.findall(write_manual(target)))
    if isinstance(target, Documented):
        operators = list(target.describe_constructs())
    else:
        operators = sorted({word for source in sources for word in _FIRST_WORD.findall(source)} & known)
    invented: dict[str, str] = {}
    for name in operators:
        rng, new = random.Random(content_hash("name of an operator", name)), ""
        while not new or new in known:
            letters = [rng.choice(("bdfgklmnprstvz", "aeiou")[place % 2]) for place in range(len(name))]
            new = "".join(
                b.upper() if a.isupper() else b if a.isalpha() else a for a, b in zip(name, letters, strict=True)
            )
        known.add(new)
        invented[name] = new
    return OperatorNames(invented)


class RenamedModel:
    """A model that is told of a language whose operators have other names, and answers in that one."""

    def __init__(self, model: ChatModel, names: OperatorNames) -> None:
        self.name, self.context_window = f"{model.name} (renamed)", model.context_window
        self.is_language_model = model.is_language_model
        self._model, self._names = model, names

    async def complete(self, request: Request) -> Reply:
        """Raises ProviderError."""
        exchange = self._names.exchange
        messages = tuple(replace(message, content=exchange(message.content)) for message in request.messages)
        reply = await self._model.complete(replace(request, messages=messages))
        return replace(reply, texts=tuple(map(exchange, reply.texts)))

    async def close(self) -> None:
        await self._model.close()
