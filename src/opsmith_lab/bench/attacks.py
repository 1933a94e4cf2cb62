"""The standing adversary: a public library of programs that a verdict must refuse, and right ones that it must pass.

Files lie below `opsmith_lab/attacks`, by language and class, and say in their first lines for which problem they are
and what is wrong with them (its README). Each is judged as what would be kept is, under one secret or several, and
beside that by the usual harness: five draws at one size, compared with `allclose`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import randbits
from typing import Protocol

from opsmith.devices.describe import describe_device
from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.measuring.claims import LEAST_GAIN, Claim
from opsmith.measuring.loop import TimingRoom
from opsmith.measuring.measure import SpeedRequest, TimedProgram, choose_timed_sets, measure_program
from opsmith.measuring.record import PLAIN, MeasuringGrade, SpeedMeasurement
from opsmith.records import Level, Outcome, Task, Verdict
from opsmith.suites import SUITES, load_tasks, task_files
from opsmith.targets import get_target, lookup
from opsmith.targets.protocols import Equipped

LIBRARY = Path(__file__).parents[1] / "attacks"
LANGUAGES = tuple(name for name in lookup.LANGUAGES if (LIBRARY / name).is_dir())  # that it has programs in
RIGHT, CLOCKS = "right", "clocks"  # classes that must pass, and that may, where no claim to be fast is believed
SIZES = "small"  # at which they are measured
_HEAD = 6  # lines that are looked at
_PROBLEM = re.compile(r"^\W*problem:\s*([\w/]+)\s*$", re.MULTILINE)
_OPTION = re.compile(r"^\W*option:\s*(\w+)=(\w+)\s*$", re.MULTILINE)
_REFUSED = re.compile(r"^\W*(?:refused:|wrong:.*; refused at)[ \t]*([A-Z]+)\b", re.MULTILINE)

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Attack:
    """One program of the library."""

    language: str
    kind: str  # class
    path: Path
    problem: str
    source: str
    stage: str = ""  # that must refuse it, where its file says so
    options: Mapping[str, str] = field(default_factory=dict)  # of its task, as the command line has them

    @property
    def name(self) -> str:
        return f"{self.language}/{self.kind}/{self.path.stem}"


@dataclass
class AttackRow:
    """Programs of one class in one language, each counted once."""

    language: str
    kind: str
    tried: int = 0
    passed: int = 0  # under one secret at least; of clocks, those whose claim was believed
    unjudged: int = 0  # under one secret at least
    verdicts: int = 0  # of all, under each secret
    seconds: float = 0.0  # of all verdicts
    usual_passed: int = 0  # that the usual harness lets pass
    usual_tried: int = 0
    surprises: list[str] = field(default_factory=list)  # what is not as it should be, a line each

    @property
    def as_expected(self) -> int:
        return self.tried - len(self.surprises)


class UsualHarness(Protocol):
    """What most work on kernels compares with: does a program pass five draws at one size?"""

    def accepts(self, task: Task, source: str) -> bool | None:
        """None: it could not be asked."""


Clock = Callable[[Task, str], str]  # what a program's measurement says of its gain, where that is believed; else ""


@contextmanager
def open_clock(secret: str) -> Iterator[Clock]:
    """What measures programs beside their tasks' plain ones."""
    with Pool(1, secret=secret) as pool, TimingRoom() as room:

        def ask_clock(task: Task, source: str) -> str:
            measurement = measure_claim(pool, room, task, source)
            return f"believed to be faster: {measurement.ratio}" if is_believed(measurement) else ""

        yield ask_clock


def measure_claim(
    pool: Pool, room: TimingRoom, task: Task, source: str, grade: MeasuringGrade = MeasuringGrade.FULL
) -> SpeedMeasurement:
    """Raises what `measure_program` raises."""
    program, partner = TimedProgram(source, "program"), TimedProgram(task.impl or "", PLAIN)
    sets = choose_timed_sets(task, [SIZES])
    request = SpeedRequest(task, program, partner, sets, grade, describe_device(), None, randbits(40))
    (report,) = measure_program(room, pool.verify, request)
    return report.measurement


def is_believed(measurement: SpeedMeasurement) -> bool:
    """Whether there is a figure that says that it is faster."""
    ratio = measurement.ratio
    return ratio is not None and ratio.claim is Claim.FASTER and ratio.precise.low > LEAST_GAIN


def list_attacks(languages: Iterable[str], kinds: Sequence[str], folders: Sequence[Path] = ()) -> Iterator[Attack]:
    """The library's programs, by path; of `kinds`, or of all where none is named. `folders`: further ones, laid out as
    the library. Raises UsageError."""
    for folder in (LIBRARY, *folders):
        for language in languages:
            for path in sorted((folder / language).glob("*/*__*")):
                if not kinds or path.parent.name in kinds:
                    yield read_attack(path)


def read_attack(path: Path) -> Attack:
    """Raises UsageError where the file does not say what it is."""
    source = path.read_text("utf-8")
    head = "\n".join(source.split("\n", _HEAD)[:_HEAD])
    problem, refused = _PROBLEM.search(head), _REFUSED.search(head)
    name = problem[1] if problem else path.stem.partition("__")[0]
    kind, language = path.parent.name, path.parents[1].name
    if not re.search(r"^\W*(wrong|right|refused|claim)\b", head, re.MULTILINE):
        raise UsageError(
            f"{path}: says nothing of itself; expected `wrong: ...` or `right: ...` in its first {_HEAD} lines"
        )
    return Attack(language, kind, path, name, source, refused[1] if refused else "", dict(_OPTION.findall(head)))


def run_attacks(
    attacks: Sequence[Attack],
    secrets: Sequence[str],
    level: Level,
    make_pool: Callable[[str], AbstractContextManager[Pool]],
    usual: UsualHarness,
    clock: Clock,
    tell: Tell,
) -> list[AttackRow]:
    """A row per language and class. `make_pool`: by secret; `clock`: asked of programs of the class clocks."""
    rows: dict[tuple[str, str], AttackRow] = {}
    verdicts: dict[str, list[Verdict]] = {attack.name: [] for attack in attacks}
    tasks = {attack.name: read_task(attack) for attack in attacks}
    for number, secret in enumerate(secrets, 1):
        with make_pool(secret) as pool:
            for place, attack in enumerate(attacks, 1):
                tell(f"secret {number} of {len(secrets)}: {attack.name}, {place} of {len(attacks)}")
                row = rows.setdefault((attack.language, attack.kind), AttackRow(attack.language, attack.kind))
                begin = time.perf_counter()
                verdicts[attack.name].append(pool.verify(tasks[attack.name], attack.source, level=level))
                row.seconds += time.perf_counter() - begin
                row.verdicts += 1
    for place, attack in enumerate(attacks, 1):
        row = rows[attack.language, attack.kind]
        passes = any(verdict.passed for verdict in verdicts[attack.name])
        claim = clock(tasks[attack.name], attack.source) if attack.kind == CLOCKS and passes else ""
        _count_attack(row, attack, verdicts[attack.name], claim)
        tell(f"the usual harness: {attack.name}, {place} of {len(attacks)}")
        is_accepted = usual.accepts(tasks[attack.name], attack.source)
        row.usual_tried += is_accepted is not None
        row.usual_passed += bool(is_accepted)
    return list(rows.values())


def read_task(attack: Attack) -> Task:
    """The problem in the attack's language. Raises UsageError and TaskError."""
    for suite in SUITES:
        if any(path.stem == attack.problem for path in task_files(suite)):
            language = None if attack.language == "step" else attack.language
            return load_tasks((f"{suite}/{attack.problem}",), language, attack.options)[0]
    raise UsageError(f"{attack.path}: problem {attack.problem}; expected one of the suites {', '.join(SUITES)}")


def find_lack(language: str) -> str:
    """What this machine has not to judge programs of a language; "": it has all."""
    target = get_target(language)
    return target.explain_lack() if isinstance(target, Equipped) else ""


def _count_attack(row: AttackRow, attack: Attack, verdicts: Sequence[Verdict], claim: str) -> None:
    """`claim`: to be fast, which was believed."""
    row.tried += 1
    passes = sum(verdict.passed for verdict in verdicts)
    unjudged = [verdict for verdict in verdicts if verdict.outcome is Outcome.UNJUDGED]
    refusals = [verdict for verdict in verdicts if verdict.outcome is Outcome.REFUSED]
    misplaced = [verdict for verdict in refusals if attack.stage and verdict.stage.name != attack.stage]
    row.passed += bool(claim if attack.kind == CLOCKS else passes)
    row.unjudged += bool(unjudged)
    wanted = passes if attack.kind == RIGHT else len(refusals) - len(misplaced)
    if claim:
        row.surprises.append(f"{attack.name}: {claim}")
    elif wanted + passes * (attack.kind == CLOCKS) != len(verdicts):
        odd = unjudged or misplaced or (refusals if attack.kind == RIGHT else [v for v in verdicts if v.passed])
        words = f": {odd[0].errors[0]}" if odd[0].errors else ""
        where = f"{odd[0].outcome.value} at {odd[0].stage.name} under {len(odd)} of {len(verdicts)} secrets{words}"
        row.surprises.append(f"{attack.name}: {where}"[:400])
