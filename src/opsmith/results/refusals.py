"""Why programs are refused: equal refusals as one group, the nearest miss of each, and how near it was.

Two refusals are equal where stage, kind and message are, apart from what only names a place: numbers, names of
variables, types. A group shows the message itself where all of it agrees, and `…` for what differs. Samples that nobody
could judge stand apart, by who is charged. Not covered: samples of optimisation rounds.

>>> finding = Diagnostic("TYPE", "Bufferize of E2 (made by Map on line 1)", "a = 2, dims [K]", "1 <= a <= rank")
>>> mask_names(describe_finding(finding))
'Bufferize: expected … <= a <= rank'
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from textwrap import shorten
from typing import NamedTuple

from opsmith.records import Diagnostic, Stage, Verdict, printable, verdict_from_json
from opsmith.store.queries import Reader
from opsmith.store.refused import (
    FailedSample,
    RefusalRow,
    list_failed_samples,
    list_functional_rounds,
    list_refused_programs,
)
from opsmith.targets.hidden import DATA_NOT_SHOWN, NOT_SHOWN

Place = tuple[str, int]  # task, round
_Key = tuple[Stage, str, str]  # stage, kind and masked reason: what equal refusals share

LONGEST = 160  # characters of a reason
SHORT = 20  # characters of what is expected that stands behind what was given
TEXTS = 500  # verdicts that are read at once
_RULES = frozenset({"TYPE", "FN", "OUT"})  # kinds whose `expected` states the rule that was broken
_TRIALS = frozenset({"RUN", "DATA", "STATE", "MEMORY"})  # kinds whose `where` names a trial or an output
_TOLD_APART = frozenset({"STATE", "MEMORY"})  # kinds that may have the same words
_HEADS = {"the base shape was right": "the base sizes are right, others are not"}  # of hints, as causes
_ASIDE = re.compile(r" \((?:[^()]*line \d+|input|rank \d+)\)| (?:of|at) [A-Za-z_]\w*\b|, [A-Z]\d+\b|^[A-Z]\d+\b")
_LINES = re.compile(r": line \d+ .*", re.DOTALL)  # of each use of a stream
_QUOTED = re.compile(r"(['`‘])[A-Za-z_]\w*(['`’])")
_NAMED = re.compile(r"\b(?:[A-Za-z]+\d\w*|[A-Za-z]\w*_\w+|__\w+)\b")  # fn_mul, E1, fp32
_NUMBER = re.compile(r"(?<!HTTP )(?<!step )(?<![\w.])[-+]?(?:\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|inf|nan)\b(?!\.\w)")
_BRACKETS = re.compile(r"\[[^\[\]]*\]|(?<=\w)\([^()]*\)")
_CHOICE = re.compile(r"\bone of .*")  # what a task allows
_WORD = re.compile(r"\b[a-z]{3,}\b")
_DIFFERING = re.compile(r"; (\d+) of (\d+) entries differ")
_HELD_NOWHERE = ("no stream holds value", "of the reference,")  # as a model is told; as a reader is:
_NOT_COMPUTED = ("the program never computes step", "of the PyTorch reference,")
_LACK = re.compile(r"(?:holds value|computes step) (\d+) of \S+ of the (?:PyTorch )?reference, ([^:]+)")
_HAS_ALL = re.compile("every entry is .* times|these are the right values|the reference with")  # hints
_GIVEN = re.compile(r"^ +given: +(.*)$", re.MULTILINE)  # of a finding's block
_LINE = re.compile(r"\bline \d+: ")


class Nearness(NamedTuple):
    """How near a refused program came to passing: the larger, the nearer. The first value that differs decides."""

    stage: float  # the place of the stage that refused it
    draws: int  # that were run, those of the trial that failed included
    is_mostly_right: bool  # at least half of the entries of the first wrong output are right
    reached: float  # the first value of the reference that it lacks; infinity: it has all; 0: not known
    closeness: float  # minus the largest absolute error; minus infinity: none, or not finite
    line: int  # of the first finding, 0: none; a checker that stops there has taken all lines before it


@dataclass(frozen=True)
class Miss:
    """A refused program, by one sample that held it."""

    task: str
    round: int
    sample: str
    program: str  # hash of its text; "": the reply held no program
    nearness: Nearness
    reason: str  # in its own words


class _Placed:
    """Samples that are counted by place."""

    places: Mapping[Place, int]  # samples by task and round

    @property
    def tasks(self) -> Counter[str]:
        return _sum_places(self.places, 0)

    @property
    def rounds(self) -> Counter[int]:
        return _sum_places(self.places, 1)


@dataclass(frozen=True)
class RefusalGroup(_Placed):
    """Samples that were refused for the same reason."""

    stage: Stage
    kind: str  # of the first finding: TYPE, COMPILE, DATA ...
    reason: str
    samples: int
    programs: int  # different texts
    places: Mapping[Place, int]  # samples by task and round
    nearest: Miss  # the nearest of them, the first of equals by the sample's id

    @property
    def title(self) -> str:
        return f"{self.stage.name}{f' ({self.kind})' if self.kind in _TOLD_APART else ''}: {self.reason}"


@dataclass(frozen=True)
class UnjudgedGroup(_Placed):
    """Samples without a verdict for the same reason."""

    charged_to: str  # provider, task, target, sandbox, ours, nobody
    reason: str
    samples: int
    places: Mapping[Place, int]


@dataclass(frozen=True)
class RunRefusals:
    """Why samples of a run, or of one of its tasks, did not pass."""

    groups: tuple[RefusalGroup, ...]  # the most frequent first
    unjudged: tuple[UnjudgedGroup, ...]  # likewise
    nearest: Mapping[str, Miss]  # by task, over all groups

    @cached_property
    def refused(self) -> int:
        return sum(group.samples for group in self.groups)

    @cached_property
    def unjudged_count(self) -> int:
        return sum(group.samples for group in self.unjudged)

    @property
    def lacks(self) -> str:
        """Which value of the reference programs would need next, in its order; "": of none it is known."""
        matches = ((_LACK.search(group.reason), group.samples) for group in self.groups)
        lacks = sorted((int(match[1]), match[2], samples) for match, samples in matches if match)
        if not lacks:
            return ""
        first = ", ".join(f"{name} ({samples:,})" for _, name, samples in lacks)
        return (
            f"{sum(samples for *_, samples in lacks):,} of {self.refused:,} refused samples: every entry differs; the "
            f"first step of the PyTorch reference that they never compute: {first}"
        )

    def sort_by_nearness(self) -> list[RefusalGroup]:
        """The groups with the nearest miss first."""
        return sorted(self.groups, key=lambda group: (group.nearest.nearness, group.samples), reverse=True)


def read_refusals(reader: Reader, run: str, task: str | None = None) -> RunRefusals:
    """Of a whole run, or of one of its tasks. Verdicts are read some hundreds at a time and not kept."""
    numbers = list_functional_rounds(reader, run)
    grouping = RefusalGrouping()
    for number in numbers:
        grouping.add_round(reader, run, number, task)
    return grouping.make_refusals(list_failed_samples(reader, run, numbers, task), task)


class RefusalGrouping:
    """Groups, by task, that grow as refusals are added; what a round that has ended adds never changes."""

    def __init__(self) -> None:
        self._tasks: dict[str, dict[_Key, _GrowingGroup]] = {}

    def add_round(self, reader: Reader, run: str, number: int, task: str | None = None) -> None:
        """Add the refusals of a round of a run."""
        refused = list_refused_programs(reader, run, number, task)
        for programs in (refused[start : start + TEXTS] for start in range(0, len(refused), TEXTS)):
            bodies = reader.read_texts(program.body for program in programs)
            for program in programs:
                self.add_program(program, verdict_from_json(json.loads(bodies[program.body])))

    def add_program(self, program: RefusalRow, verdict: Verdict) -> None:
        """Add the samples of one program."""
        finding = verdict.errors[0] if verdict.errors else None
        kind, text = (finding.kind, describe_finding(finding)) if finding else (program.stage.name, "no finding")
        miss = Miss(program.task, program.round, program.sample, program.program, measure_nearness(verdict), text)
        groups = self._tasks.setdefault(program.task, {})
        group = groups.setdefault((program.stage, kind, mask_names(text)), _GrowingGroup(miss))
        group.add_miss(miss, program.samples)

    def merge_grouping(self, addition: RefusalGrouping) -> None:
        """Add all that another one holds, which stays as it is."""
        for task, groups in addition._tasks.items():
            _merge_groups(self._tasks.setdefault(task, {}), groups)

    def make_refusals(self, failed: Iterable[FailedSample] = (), task: str | None = None) -> RunRefusals:
        """What was added so far, of all tasks or of one; `failed`: the samples without a verdict."""
        merged: dict[_Key, _GrowingGroup] = {}
        nearest: dict[str, Miss] = {}
        for name, groups in sorted(self._tasks.items()) if task is None else [(task, self._tasks.get(task, {}))]:
            _merge_groups(merged, groups)
            if groups:
                nearest[name] = reduce(_choose_nearer, (group.nearest for group in groups.values()))
        frozen = [group.freeze_group(key) for key, group in merged.items()]
        frozen.sort(key=lambda group: (-group.samples, -group.stage.rank, group.reason))
        own = [sample for sample in failed if task in (None, sample.task)]
        return RunRefusals(tuple(frozen), group_failed(own), nearest)


@dataclass
class _GrowingGroup:
    nearest: Miss
    texts: set[str] = field(default_factory=set)  # of the reason; two at most
    programs: set[int] = field(default_factory=set)  # beginnings of hashes
    places: Counter[Place] = field(default_factory=Counter)

    def add_miss(self, miss: Miss, samples: int) -> None:
        if len(self.texts) < 2:
            self.texts.add(miss.reason)
        if miss.program:
            self.programs.add(int(miss.program[:15], 16))
        self.places[miss.task, miss.round] += samples
        self.nearest = _choose_nearer(self.nearest, miss)

    def merge_group(self, addition: _GrowingGroup) -> None:
        self.texts |= addition.texts
        self.programs |= addition.programs
        self.places.update(addition.places)
        self.nearest = _choose_nearer(self.nearest, addition.nearest)

    def freeze_group(self, key: _Key) -> RefusalGroup:
        stage, kind, masked = key
        reason = next(iter(self.texts)) if len(self.texts) == 1 else masked
        reason = reason if len(reason) <= LONGEST else f"{reason[: LONGEST - 1]}…"
        places, samples = dict(sorted(self.places.items())), self.places.total()
        return RefusalGroup(stage, kind, reason, samples, len(self.programs), places, self.nearest)


def _merge_groups(groups: dict[_Key, _GrowingGroup], additions: Mapping[_Key, _GrowingGroup]) -> None:
    for key, addition in additions.items():
        groups.setdefault(key, _GrowingGroup(addition.nearest)).merge_group(addition)


def group_failed(failed: Iterable[FailedSample]) -> tuple[UnjudgedGroup, ...]:
    """Samples without a verdict by who is charged and by their reason, the most frequent first."""
    groups: dict[tuple[str, str], tuple[set[str], Counter[Place]]] = {}
    for sample in failed:
        text = name_failure(sample.message)
        texts, places = groups.setdefault((sample.charged_to, mask_names(text)), (set(), Counter()))
        texts.add(text)
        places[sample.task, sample.round] += 1
    unjudged = [
        UnjudgedGroup(charged_to, next(iter(texts)) if len(texts) == 1 else masked, places.total(), dict(places))
        for (charged_to, masked), (texts, places) in groups.items()
    ]
    return tuple(sorted(unjudged, key=lambda group: (-group.samples, group.charged_to, group.reason)))


def name_failure(message: str) -> str:
    """What left a sample unjudged, in a line; lines of programs are left out.

    >>> name_failure("SANDBOX: \\n  where:    the build\\n  given:    not emulated: line 3: <mma.h>")
    'not emulated: <mma.h>'
    """
    block = _GIVEN.search(message)
    reason = block.group(1) if block else message.partition("\n")[0]
    return printable(shorten(_LINE.sub("", reason), 300, placeholder=" ..."))


def describe_finding(finding: Diagnostic) -> str:
    """The cause in a line: where, and the rule or what broke it; of values that differ, what their pattern says."""
    if finding.kind == "DATA":
        head = finding.remedy.partition(":")[0] or "the values differ"
        for told, said in zip(_HELD_NOWHERE, _NOT_COMPUTED, strict=True):
            head = head.replace(told, said)
        return printable(_HEADS.get(head, head))
    return printable(": ".join(words for words in (_name_where(finding), _name_fault(finding)) if words))


def _name_where(finding: Diagnostic) -> str:
    """Where, without what differs from program to program."""
    if finding.where in (NOT_SHOWN, DATA_NOT_SHOWN):
        return finding.where
    is_trial = finding.kind in _TRIALS and finding.line is None
    return "" if is_trial or finding.where.startswith("at ") else _ASIDE.sub("", finding.where)


def _name_fault(finding: Diagnostic) -> str:
    actual, expected = _LINES.sub("", finding.given), f"expected {finding.expected}"
    if finding.kind in _RULES or not _WORD.search(mask_names(actual)):
        return expected
    is_short = finding.kind == "LANG" and len(finding.expected) <= SHORT
    return f"{actual}, {expected}" if is_short else actual


def mask_names(text: str) -> str:
    """A reason without what only names a place: numbers, quoted names, names with digits, what stands in brackets.

    >>> mask_names("'undeclared_6' undeclared (first use in this function)"), mask_names("expected ';' before 'x'")
    ('… undeclared (first use in this function)', "expected ';' before …")
    """
    masked = _BRACKETS.sub(lambda match: f"{match[0][0]}…{match[0][-1]}", _CHOICE.sub("one of …", text))
    for pattern in (_QUOTED, _NAMED, _NUMBER):
        masked = pattern.sub("…", masked)
    return re.sub(r"…(?:, …)+", "…", masked)


def measure_nearness(verdict: Verdict) -> Nearness:
    """How near a refused program came, by what its verdict holds."""
    finding = verdict.errors[0] if verdict.errors else None
    error = verdict.max_abs_error
    is_finite = error is not None and math.isfinite(error)
    differing = _DIFFERING.search(finding.given) if finding is not None else None
    share = 1 - int(differing[1]) / int(differing[2]) if differing and int(differing[2]) else 0.0
    closeness = -error if error is not None and is_finite else -math.inf
    line = (finding.line or 0) if finding is not None else 0
    remedy = finding.remedy if finding is not None else ""
    lack = _LACK.search(remedy)
    reach = int(lack[1]) if lack else math.inf if _HAS_ALL.match(remedy) else 0.0
    return Nearness(verdict.stage.rank, verdict.trials, share >= 0.5, reach, closeness, line)


def describe_nearness(nearness: Nearness) -> str:
    """How far a refused program came, in words.

    >>> describe_nearness(Nearness(Stage.MATCH.rank, 5, True, 0, -0.25, 0))
    'wrong within the first 5 inputs; at least half of the entries are right; largest error 0.25'
    >>> describe_nearness(Nearness(Stage("TYPE").rank, 0, False, 0, -math.inf, 7))
    'refused at line 7, before it ran'
    """
    if nearness.stage == Stage.FORMAT.rank:
        return "no program"
    if nearness.stage < Stage.RUN.rank:
        return f"refused{f' at line {nearness.line}' if nearness.line else ''}, before it ran"
    several = f"within the first {nearness.draws:,} inputs" if nearness.draws != 1 else "on the first input"
    failed = f"wrong {several}" if nearness.stage == Stage.MATCH.rank else f"stopped {several}"
    entries = "at least half of the entries are right" if nearness.is_mostly_right else ""
    has_error = nearness.stage == Stage.MATCH.rank and math.isfinite(nearness.closeness)
    error = f"largest error {-nearness.closeness:.3g}" if has_error else ""
    return "; ".join(filter(None, (failed, entries, error)))


def _choose_nearer(first: Miss, second: Miss) -> Miss:
    """The nearer of two; of equals the one whose sample's id is the smaller."""
    if first.nearness == second.nearness:
        return min(first, second, key=lambda miss: (miss.round, miss.sample))
    return max(first, second, key=lambda miss: miss.nearness)


def _sum_places(places: Mapping[Place, int], axis: int) -> Counter:  # type: ignore[type-arg]
    counts: Counter[str | int] = Counter()
    for place, samples in places.items():
        counts[place[axis]] += samples
    return counts
