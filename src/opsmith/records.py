"""The records that flow through the system: task, candidate, verdict, experience, usage.

Every record is frozen, turns into JSON and back, and is named by the hash of its content.
`None` means "not known" or "does not apply"; it is never written as 0 or infinity.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, ClassVar, Final, Literal

FOR_PEOPLE = "not for models: "  # begins a warning that prompts and other machine-readable answers leave out
TEXT: Final = "text/plain"
PICTURE: Final = "image/png"
KNOWN = "known:"  # begins the origin of an experience that was given to a run; behind it stands the author
SHOWN_FOR = "shown for:"  # begins the origin of an experience that one task alone is shown, whose id stands behind it
SCHEMA = 1  # version of the JSON forms below


def content_hash(*texts: str) -> str:
    """sha256 over the parts, each preceded by its length so that no two lists of parts collide."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Stage:
    """How far a candidate came. FORMAT, RUN and MATCH are all languages'; what is checked between FORMAT and RUN is the
    target's to name.

    >>> sorted([Stage.RUN, Stage("LINK"), Stage("TYPE")])
    [Stage(name='TYPE'), Stage(name='LINK'), Stage(name='RUN')]
    """

    name: str  # capitals

    FORMAT: ClassVar[Stage]  # an implementation was looked for in the reply
    RUN: ClassVar[Stage]  # ... runs on every trial
    MATCH: ClassVar[Stage]  # ... computes the expected values
    ORDER: ClassVar[tuple[str, ...]] = ("FORMAT", "PARSE", "TYPE", "AFFINE", "RUN", "MATCH")

    def __post_init__(self) -> None:
        if self.name not in self.ORDER and not re.fullmatch(r"[A-Z][A-Z_]{0,29}", self.name):
            raise ValueError(f"stage: given {self.name[:40]!r}; expected a name in capitals, such as TYPE")

    @property
    def rank(self) -> float:
        """Its place in the order of checking, whether its target is known or not: what ORDER lacks comes before RUN."""
        return self.ORDER.index(self.name) if self.name in self.ORDER else self.ORDER.index("RUN") - 0.5

    def __lt__(self, other: Stage) -> bool:
        return (self.rank, self.name) < (other.rank, other.name)


Stage.FORMAT, Stage.RUN, Stage.MATCH = Stage("FORMAT"), Stage("RUN"), Stage("MATCH")


@dataclass(frozen=True)
class Objective:
    """A figure by which one right program is better than another one: what a target offers."""

    name: str  # as options, settings and stores have it
    unit: str  # as texts have it, after a number
    is_less_better: bool = True

    @property
    def is_counted(self) -> bool:
        """The same every time: a point without a claim. A time is measured."""
        return self != TIME

    def compare(self, value: float, other: float) -> float:
        """How many times as good `value` is as `other`: above 1 it is the better one.

        >>> TIME.compare(2.0, 4.0), Objective("accuracy", "right answers", False).compare(2.0, 4.0)
        (2.0, 0.5)
        """
        return other / value if self.is_less_better else value / other

    def rank(self, value: float) -> float:
        """A number of which less is better."""
        return value if self.is_less_better else -value

    def find_other(self, value: float, ratio: float) -> float:
        """Than what `value` is so many times as good."""
        return value * ratio if self.is_less_better else value / ratio


TIME = Objective("time", "ns")
CYCLES = Objective("cycles", "cycles")  # a simulator's, or a cost model's
ON_CHIP_BYTES = Objective("on_chip_bytes", "bytes on the chip")
OFF_CHIP_BYTES = Objective("off_chip_bytes", "bytes off the chip")


class Outcome(StrEnum):
    PASSED = "passed"
    REFUSED = "refused"
    UNJUDGED = "unjudged"  # something other than the candidate failed


class Boundary(StrEnum):
    """Who a verdict is charged to."""

    CANDIDATE = "candidate"
    TASK = "task"
    TARGET = "target"  # the author of a target that is not built in
    PROVIDER = "provider"
    SANDBOX = "sandbox"
    OURS = "ours"


class Level(StrEnum):
    """How much a program is tried at that its task does not state."""

    CHEAP = "cheap"  # every candidate: a draw of each kind, the same for all of a run
    FULL = "full"  # what would be kept or leaves the house: those of CHEAP, and more of each kind


@dataclass(frozen=True)
class Scrutiny:
    """How hard a program is tried at what its task does not state: hidden draws come from the problem, their number and
    this, so that equal scrutiny is equal draws, whatever the program."""

    secret: str = field(repr=False)  # of a run, an installation or an export: draws cannot be told without it
    level: Level = Level.CHEAP

    @property
    def digest(self) -> str:
        """What names the secret where verdicts and proofs are shown; it tells nothing of the draws."""
        return content_hash("name of a secret", self.secret)[:12]

    @property
    def label(self) -> str:
        """`full level, secret 1f2e3d4c5b6a`."""
        return f"{self.level} level, secret {self.digest}"

    @property
    def levels(self) -> tuple[Level, ...]:
        """Those whose draws are tried, in order: who passes the full level has passed the cheap one."""
        return (Level.CHEAP,) if self.level is Level.CHEAP else (Level.CHEAP, Level.FULL)

    def draw_number(self, *texts: str) -> int:
        """A number that only who holds the secret can tell; `texts` say what for."""
        return int(content_hash("hidden sizes", self.secret, *texts)[:15], 16)


def strip_number(task_id: str) -> str:
    """What a task is grouped by unless its file says otherwise: its id without the number behind the last `_`.

    >>> strip_number("attn_0"), strip_number("top_k")
    ('attn', 'top_k')
    """
    stem, _, number = task_id.rpartition("_")
    return stem if stem and number.isdigit() else task_id


def printable(text: str, keep: str = "") -> str:
    """A text without what steers a terminal or turns the direction of reading; characters of `keep` stay."""
    visible = text
    for char in keep:
        visible = visible.replace(char, "")
    if visible.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else "\ufffd" for char in text)


WHOLE_RUN = "a run to its end that writes the outputs"  # what is expected where a program fails as it runs


@dataclass(frozen=True)
class Diagnostic:
    """One finding, fit for a person and for the next model call.

    `kind` is the class of STEP-like languages' reports: FORMAT, LANG, TYPE, AFFINE, FN, RUN, OUT, DATA or TASK;
    compiled languages have PARSE and COMPILE; SANDBOX, TARGET and OURS are failures of others.
    `line` counts from 1 in the program (or task file); `text` is that line; `where` names the place in words.
    """

    kind: str
    where: str
    given: str
    expected: str
    remedy: str = ""
    line: int | None = None
    column: int | None = None
    text: str = ""

    @property
    def _headline(self) -> str:
        line = f" line {self.line}" if self.line is not None else ""
        return f"{self.kind}{line}{f', column {self.column}' if self.column is not None else ''}"

    def __str__(self) -> str:
        """One line: `TYPE line 4: Zip: given ...; expected ...; try: ...`."""
        tail = f"; try: {self.remedy}" if self.remedy else ""
        return f"{self._headline}: {self.where}: given {self.given}; expected {self.expected}{tail}"

    def block(self) -> str:
        """The five-line form that is shown to a person and to the next model call."""
        rows = [f"{self._headline}: {self.text}".rstrip(": ")]
        rows += [f"  where:    {self.where}", f"  given:    {self.given}", f"  expected: {self.expected}"]
        return "\n".join([*rows, f"  try:      {self.remedy}"] if self.remedy else rows)


@dataclass(frozen=True)
class Task:
    """A library operator to be written, as its file states it.

    `text` is the file in canonical YAML without `impl` and `test_name`; `shown` is what of it a prompt shows (all, if
    empty). `impl` is the file's own implementation (an oracle), never shown. The target understands the rest.
    """

    id: str
    target: str
    text: str
    impl: str | None = None
    group: str = ""  # what results are grouped by; "": the id without its number (`strip_number`)
    path: str = ""  # where it was read from, for messages only
    shown: str = ""  # the text without what only the verifier needs (extra shape sets, margins); "": all of it

    @property
    def digest(self) -> str:
        return content_hash(self.target, self.text)

    @property
    def prompt_text(self) -> str:
        return self.shown or self.text


@dataclass(frozen=True)
class Candidate:
    """A program proposed for a task. `parent` is the candidate that a guardian rewrote into this one."""

    source: str
    parent: str | None = None

    @property
    def id(self) -> str:
        return content_hash(self.source)


@dataclass(frozen=True)
class Verdict:
    """What the verifier found about one candidate."""

    candidate: str  # Candidate.id; "" when a reply held no program
    stage: Stage  # the furthest stage reached
    outcome: Outcome
    charged_to: Boundary
    errors: tuple[Diagnostic, ...] = ()  # every finding of that stage
    warnings: tuple[str, ...] = ()
    max_abs_error: float | None = None  # in the output's unit; None: there was no output to compare
    trials: int = 0  # trials run, the failing one included
    verifier: str = ""  # version of the verifier that judged
    judging_seconds: float = field(default=0.0, compare=False, metadata={"key": "seconds"})  # not the candidate's speed
    build: str = field(default="", metadata={"left_out": ""})  # compiler, ISA and flags; "": nothing was built
    undecided: int = field(default=0, metadata={"left_out": 0})  # entries of its trials that only rounding decides
    scrutiny: str = field(default="", compare=False, metadata={"left_out": ""})  # `Scrutiny.label`, without a run

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASSED and self.stage != Stage.MATCH:
            raise ValueError(f"Verdict {self.candidate[:8]}: passed, yet it stopped at {self.stage.name}")
        if self.outcome is not Outcome.UNJUDGED and self.charged_to is not Boundary.CANDIDATE:
            raise ValueError(f"Verdict {self.candidate[:8]}: {self.outcome}, yet charged to {self.charged_to}")

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED

    @property
    def public_warnings(self) -> tuple[str, ...]:
        """The warnings that a model may be told."""
        return tuple(warning for warning in self.warnings if not warning.startswith(FOR_PEOPLE))

    @property
    def message(self) -> str:
        """All findings in block form, or one line that says it passed."""
        if self.passed:
            undecided = f" ({self.undecided} undecided entries not judged)" if self.undecided else ""
            return f"passed: {self.trials} trials{undecided}"
        return "\n".join(error.block() for error in self.errors) or f"{self.outcome} at {self.stage.name}"


@dataclass(frozen=True)
class Usage:
    """Tokens and money of one or many requests; `cost_usd` None: the price is not known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of input_tokens that a provider's prompt cache served
    cost_usd: float | None = 0.0
    reasoning_tokens: int = field(default=0, metadata={"left_out": 0})  # part of output_tokens, where a provider tells

    def __add__(self, other: Usage) -> Usage:
        is_priced = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.requests + other.requests,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if is_priced else None,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        return sum(usages, cls())

    def scale(self, factor: float) -> Usage:
        """So many times as much, with whole tokens."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        cost = None if self.cost_usd is None else self.cost_usd * factor
        return Usage(**{name: round((count or 0) * factor) for name, count in every.items()} | {"cost_usd": cost})


@dataclass(frozen=True)
class Experience:
    """One solved task: the program kept for it and how hard it was to find."""

    task: Task
    source: str
    success_rate: float  # in (0, 1]: right samples / samples, at the best temperature of the round that solved it
    round: int  # -1: imported, not earned
    origin: str = ""  # run id, "import", SHOWN_FOR with a task, or `KNOWN` with the author
    gain: float | None = field(default=None, metadata={"left_out": None})  # over the program it began from, where known

    def __post_init__(self) -> None:
        if not 0.0 < self.success_rate <= 1.0:
            raise ValueError(f"Experience {self.task.id}: success rate {self.success_rate} is not in (0, 1]")

    def may_show(self, task: str) -> bool:
        """Whether a prompt for the task of that id may hold it."""
        return not self.origin.startswith(SHOWN_FOR) or self.origin == SHOWN_FOR + task

    @property
    def is_known(self) -> bool:
        """Whether it was given to a run (`KnownProgram`): no sample of any run found it."""
        return self.origin.startswith(KNOWN)

    @property
    def rank(self) -> float:
        """Its success rate, by which the hardest is shown first; what was given comes before all: nobody knows how
        hard it is to find."""
        return 0.0 if self.is_known else self.success_rate


@dataclass(frozen=True)
class KnownProgram:
    """A program that was given to a run for a task, which need not be the run's own."""

    task: Task
    source: str
    author: str  # person, model or rules
    place: str  # where it came from, for people: a path in the folder that was given, a client's name


@dataclass(frozen=True)
class Suggestion:
    """One change that is expected to make a right program better, in an analyst's words."""

    what: str
    where: str = ""
    why: str = ""
    effect: str = ""  # that is expected


@dataclass(frozen=True)
class ProfileReport:
    """What a profiler says of a program."""

    kind: str  # the profiler's name
    media: Literal["text/plain", "image/png"]
    body: str  # the text, or the picture in base64


def to_json(record: Any) -> Any:
    """A record as plain JSON data; stages by name, tuples as lists, without what says nothing and may be left out."""
    if isinstance(record, Stage):
        return record.name
    if isinstance(record, Enum):
        return record.value
    if hasattr(record, "__dataclass_fields__"):
        values = ((member, getattr(record, member.name)) for member in fields(record))
        return {_json_key(member): to_json(value) for member, value in values if not _is_left_out(member, value)}
    if isinstance(record, (list, tuple)):
        return [to_json(entry) for entry in record]
    if isinstance(record, Mapping):
        return {str(key): to_json(value) for key, value in record.items()}
    return record


def _is_left_out(member: Field[Any], value: object) -> bool:
    return "left_out" in member.metadata and value == member.metadata["left_out"]


def _json_key(member: Field[Any]) -> str:
    key: str = member.metadata.get("key", member.name)
    return key


def verdict_from_json(data: Mapping[str, Any]) -> Verdict:
    """The inverse of `to_json` for verdicts."""
    values = {member.name: data[_json_key(member)] for member in fields(Verdict) if _json_key(member) in data}
    return Verdict(
        **values
        | {
            "stage": Stage(data["stage"]),
            "outcome": Outcome(data["outcome"]),
            "charged_to": Boundary(data["charged_to"]),
            "errors": tuple(Diagnostic(**error) for error in data["errors"]),
            "warnings": tuple(data.get("warnings", ())),
        }
    )


def dumps(record: Any) -> str:
    """Canonical JSON text of a record: sorted keys, no layout, so that equal records are equal texts."""
    return json.dumps(to_json(record), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=True)
