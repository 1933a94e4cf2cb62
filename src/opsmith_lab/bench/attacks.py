"""The standing adversary: a public library of programs that a verdict must refuse, and right ones that it must pass.

Files lie below `opsmith_lab/attacks`, by language and class, and say in their first lines for which problem they are
and what is wrong with them (its README). Each is judged as what would be kept is, under one secret or several, and
beside that by the usual harness: five draws at one size, compared with `allclose`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from opsmith.errors import UsageError
from opsmith.judging.pool import Pool
from opsmith.records import Level, Outcome, Task, Verdict
from opsmith.suites import SUITES, load_tasks, task_files
from opsmith.targets import get_target
from opsmith.targets.protocols import Equipped

LIBRARY = Path(__file__).parents[1] / "attacks"
LANGUAGES = ("step", "c", "cuda", "wgsl")  # that the library has programs in
RIGHT, CLOCKS = "right", "clocks"  # classes of programs that pass
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

    @property
    def must_pass(self) -> bool:
        return self.kind in (RIGHT, CLOCKS)


@dataclass
class AttackRow:
    """Programs of one class in one language, each counted once."""

    language: str
    kind: str
    tried: int = 0
    passed: int = 0  # under one secret at least
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
        ...


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
    tell: Tell,
) -> list[AttackRow]:
    """A row per language and class. `make_pool`: by secret."""
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
        _count_attack(row, attack, verdicts[attack.name])
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


def _count_attack(row: AttackRow, attack: Attack, verdicts: Sequence[Verdict]) -> None:
    row.tried += 1
    passes = sum(verdict.passed for verdict in verdicts)
    unjudged = [verdict for verdict in verdicts if verdict.outcome is Outcome.UNJUDGED]
    refusals = [verdict for verdict in verdicts if verdict.outcome is Outcome.REFUSED]
    misplaced = [verdict for verdict in refusals if attack.stage and verdict.stage.name != attack.stage]
    row.passed += bool(passes)
    row.unjudged += bool(unjudged)
    wanted = passes if attack.must_pass else len(refusals) - len(misplaced)
    if wanted != len(verdicts):
        odd = unjudged or misplaced or (refusals if attack.must_pass else [v for v in verdicts if v.passed])
        row.surprises.append(f"{attack.name}: {_describe_odd(odd, len(verdicts))}"[:400])


def _describe_odd(verdicts: Sequence[Verdict], total: int) -> str:
    first = verdicts[0]
    words = f": {first.errors[0]}" if first.errors else ""
    return f"{first.outcome.value} at {first.stage.name} under {len(verdicts)} of {total} secrets{words}"
