"""Languages beside each other: are programs judged as they should be, how long does it take, what did a language cost?

Each plain program is judged once to warm its worker and once more with no build kept, which is timed; and it is built
alone. Wrong programs are the mistakes of `attacks`, each judged once, as what would be kept is.
"""

from __future__ import annotations

import io
import json
import statistics
import time
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsmith.errors import TaskError, UsageError
from opsmith.judging.pool import Pool
from opsmith.records import Level, Outcome, Task, Verdict
from opsmith.suites import read_task_file, resolve_names
from opsmith.targets import Built, Loaded, Target, get_target, lookup
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.lookup import LANGUAGES
from opsmith.targets.protocols import Equipped, Suffixed
from opsmith_lab.bench.attacks import Attack, list_attacks, read_task
from opsmith_lab.bench.extras import measure_extra
from opsmith_lab.bench.native import keep_builds_apart

Tell = Callable[[str], None]


@dataclass(frozen=True)
class LanguageRow:
    """What was seen of one language; None: nothing can be said."""

    language: str
    verifier: str = ""
    lack: str = ""  # what is missing here, so that nothing was judged
    programs: int = 0  # plain ones
    passed: int = 0
    wrong: int = 0  # programs that must be refused
    refused: int = 0  # of these, at the stage that their files name
    unjudged: int = 0  # of all
    compile_ms: float | None = None  # median over plain programs
    verdict_ms: float | None = None
    extra_bytes: int | None = None
    files: int = 0  # of the language's folder
    lines: int = 0
    tokens: int = 0  # of Python
    programs_outside: int = 0  # files of the language elsewhere in our packages: data of suites and tests
    surprises: tuple[str, ...] = ()  # verdicts that are not what they should be, a line each


_OWN = Path(lookup.__file__).parent  # a language is a folder beside it
_PACKAGES = (_OWN.parent, Path(__file__).parents[1])
_COUNTED = frozenset({tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING})


@dataclass
class _Counts:
    """Verdicts so far."""

    verdicts: list[Verdict] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    builds_s: list[float] = field(default_factory=list)
    verdicts_s: list[float] = field(default_factory=list)
    passed: int = 0
    refused: int = 0

    def count_verdict(self, name: str, verdict: Verdict, is_right: bool = True, stage: str = "") -> bool:
        """Whether it is as it should be: passed, or refused, at a stage that must refuse it if one is named."""
        self.verdicts.append(verdict)
        is_refused = verdict.outcome is Outcome.REFUSED and stage in ("", verdict.stage.name)
        is_expected = verdict.passed if is_right else is_refused
        if not is_expected:
            words = f": {verdict.errors[0]}" if verdict.errors else ""
            self.surprises.append(f"{name}: {verdict.outcome.value} at {verdict.stage.name}{words}"[:500])
        return is_expected


def choose_languages(names: Sequence[str]) -> list[str]:
    """The named languages; none named: all that are built in and whose programs are compiled. Raises UsageError."""
    compiled = [name for name in LANGUAGES if isinstance(get_target(name), Loaded)]
    for name in names:
        if name not in compiled:
            raise UsageError(f"bench languages: given {name!r}; expected one of {', '.join(compiled)}")
    return [name for name in compiled if not names or name in names]


def measure_languages(
    names: Sequence[str], tasks: Sequence[str], make_pool: Callable[[], Pool], tell: Tell
) -> Iterator[LanguageRow]:
    """A row for each of `choose_languages`. `tasks`: names of problems."""
    for name in names:
        target = get_target(name)
        lack = target.explain_lack() if isinstance(target, Equipped) else ""
        if lack or not isinstance(target, Built):
            yield LanguageRow(name, lack=lack or "its programs are not built")
            continue
        with make_pool() as pool:
            problems = _list_tasks(tasks, name)
            ids = {task.id for task in problems}
            mistakes = [attack for attack in list_attacks([name], ["mistakes"]) if attack.problem in ids]
            yield _measure_language(target, problems, mistakes, pool, tell)


def add_rows(rows: Sequence[LanguageRow], paths: Sequence[Path]) -> list[LanguageRow]:
    """With languages that were judged elsewhere and not here, out of what `--json` printed there. Raises UsageError."""
    merged = {row.language: row for row in rows}
    for path in paths:
        try:
            others = [LanguageRow(**row) for row in json.loads(path.read_text("utf-8"))["languages"]]
        except (OSError, ValueError, TypeError, KeyError) as error:
            expected = "what `opsmith bench languages --json` printed"
            raise UsageError(f"{path}: given {type(error).__name__}: {error}; expected {expected}") from error
        merged |= {row.language: row for row in others if row.language not in merged or merged[row.language].lack}
    return list(merged.values())


def _list_tasks(names: Sequence[str], language: str) -> list[Task]:
    """Those that the language can be asked for."""
    tasks = []
    for path in resolve_names(names):
        try:
            tasks.append(read_task_file(path, language))
        except TaskError:  # of types that the language lacks
            continue
    return tasks


def _measure_language(
    target: Target, tasks: Sequence[Task], mistakes: Sequence[Attack], pool: Pool, tell: Tell
) -> LanguageRow:
    counts, programs = _Counts(), [task for task in tasks if task.impl]
    for number, task in enumerate(programs, 1):
        tell(f"{target.name}: plain program {number} of {len(programs)}, {task.id}")
        counts.passed += _judge_plain(target, task, pool, counts)
    for number, attack in enumerate(mistakes, 1):
        tell(f"{target.name}: wrong program {number} of {len(mistakes)}, {attack.path.stem}")
        verdict = pool.verify(read_task(attack), attack.source, level=Level.FULL)
        counts.refused += counts.count_verdict(attack.name, verdict, is_right=False, stage=attack.stage)
    files, lines, tokens = _count_folder(_OWN / target.name)
    return LanguageRow(
        target.name,
        name_verifier(target),
        programs=len(programs),
        passed=counts.passed,
        wrong=len(mistakes),
        refused=counts.refused,
        unjudged=sum(verdict.outcome is Outcome.UNJUDGED for verdict in counts.verdicts),
        compile_ms=_find_median_ms(counts.builds_s),
        verdict_ms=_find_median_ms(counts.verdicts_s),
        extra_bytes=measure_extra(target.name),
        files=files,
        lines=lines,
        tokens=tokens,
        programs_outside=_count_programs(target),
        surprises=tuple(counts.surprises),
    )


def _judge_plain(target: Target, task: Task, pool: Pool, counts: _Counts) -> bool:
    """Whether it passed. Its build and its second verdict are timed, each with nothing built before."""
    source = task.impl or ""
    is_passed = counts.count_verdict(f"{target.name} {task.id}", pool.verify(task, source))
    if is_passed:
        assert isinstance(target, Built)
        with keep_builds_apart():
            begin = time.perf_counter()
            target.build_program(task, source)
            counts.builds_s.append(time.perf_counter() - begin)
        with keep_builds_apart():
            begin = time.perf_counter()
            pool.verify(task, source)
            counts.verdicts_s.append(time.perf_counter() - begin)
    return is_passed


def _find_median_ms(seconds: Sequence[float]) -> float | None:
    return round(1e3 * statistics.median(seconds), 1) if seconds else None


def _count_folder(folder: Path) -> tuple[int, int, int]:
    """Files, lines, and tokens of Python."""
    texts = {path: path.read_text("utf-8") for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    streams = (io.StringIO(text).readline for path, text in texts.items() if path.suffix == ".py")
    tokens = sum(token.type in _COUNTED for stream in streams for token in tokenize.generate_tokens(stream))
    return len(texts), sum(text.count("\n") for text in texts.values()), tokens


def _count_programs(target: Target) -> int:
    suffix = target.suffix if isinstance(target, Suffixed) else None
    paths = (path for package in _PACKAGES for path in package.rglob(f"*{suffix}"))
    return sum(suffix is not None and _OWN / target.name not in path.parents for path in paths)
