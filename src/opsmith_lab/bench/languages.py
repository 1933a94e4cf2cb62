"""Languages beside each other: do their plain programs pass, how long does it take, at what size?

Each program is judged once to warm its worker and once more with no build kept, which is timed; and it is built alone.
Wrong programs are `attacks`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from opsmith.errors import TaskError, UsageError
from opsmith.judging.pool import Pool
from opsmith.records import Outcome, Task, Verdict
from opsmith.suites import read_task_file, resolve_names
from opsmith.targets import Built, Loaded, Target, get_target
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.lookup import LANGUAGES
from opsmith.targets.protocols import Equipped
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
    unjudged: int = 0
    compile_ms: float | None = None  # median over plain programs
    verdict_ms: float | None = None
    extra_bytes: int | None = None
    surprises: tuple[str, ...] = ()  # verdicts that are not what they should be, a line each


@dataclass
class _Counts:
    """Verdicts so far."""

    verdicts: list[Verdict] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    builds_s: list[float] = field(default_factory=list)
    verdicts_s: list[float] = field(default_factory=list)
    passed: int = 0

    def count_verdict(self, name: str, verdict: Verdict) -> bool:
        """Whether it passed."""
        self.verdicts.append(verdict)
        if not verdict.passed:
            words = f": {verdict.errors[0]}" if verdict.errors else ""
            self.surprises.append(f"{name}: {verdict.outcome.value} at {verdict.stage.name}{words}"[:500])
        return verdict.passed


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
            yield _measure_language(target, _list_tasks(tasks, name), pool, tell)


def _list_tasks(names: Sequence[str], language: str) -> list[Task]:
    """Those that the language can be asked for."""
    tasks = []
    for path in resolve_names(names):
        try:
            tasks.append(read_task_file(path, language))
        except TaskError:  # of types that the language lacks
            continue
    return tasks


def _measure_language(target: Target, tasks: Sequence[Task], pool: Pool, tell: Tell) -> LanguageRow:
    counts, programs = _Counts(), [task for task in tasks if task.impl]
    for number, task in enumerate(programs, 1):
        tell(f"{target.name}: plain program {number} of {len(programs)}, {task.id}")
        counts.passed += _judge_plain(target, task, pool, counts)
    return LanguageRow(
        target.name,
        name_verifier(target),
        programs=len(programs),
        passed=counts.passed,
        unjudged=sum(verdict.outcome is Outcome.UNJUDGED for verdict in counts.verdicts),
        compile_ms=_find_median_ms(counts.builds_s),
        verdict_ms=_find_median_ms(counts.verdicts_s),
        extra_bytes=measure_extra(target.name),
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
