"""Languages beside each other: do right programs pass, are wrong ones refused, how long does it take, at what size?

Right programs are the problems' plain ones. Each is judged once to warm its worker and once more with no build kept,
which is timed; and it is built alone. Wrong programs are files that say in their first lines
for which problem they are, and where they must fail:

    // problem: softmax
    // refused: RUN race on shared memory

Without the first line the problem is what the file's name says before `__`. C's files say `refused at RUN` behind what
is wrong with them.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsmith.errors import TaskError, UsageError
from opsmith.judging.pool import Pool
from opsmith.records import Outcome, Task, Verdict
from opsmith.suites import read_task_file, resolve_names
from opsmith.targets import Built, Loaded, Target, get_target
from opsmith.targets.capabilities import name_verifier
from opsmith.targets.lookup import LANGUAGES
from opsmith.targets.protocols import Equipped, Suffixed
from opsmith_lab.bench.extras import measure_extra
from opsmith_lab.bench.native import keep_builds_apart

Tell = Callable[[str], None]
_HEAD = 6  # lines that are looked at
_PROBLEM = re.compile(r"^\W*problem:\s*([\w/]+)\s*$", re.MULTILINE)
_REFUSED = re.compile(r"^\W*(?:refused:|wrong:.*; refused at)[ \t]*([A-Z]+)\b[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class LanguageRow:
    """What was seen of one language; None: nothing can be said."""

    language: str
    verifier: str = ""
    lack: str = ""  # what is missing here, so that nothing was judged
    programs: int = 0  # plain ones
    passed: int = 0
    wrong: int = 0  # programs that must be refused
    refused: int = 0  # of them, at the stage that they name
    unjudged: int = 0  # of all
    compile_ms: float | None = None  # median over plain programs
    verdict_ms: float | None = None
    extra_bytes: int | None = None
    surprises: tuple[str, ...] = ()  # verdicts that are not what they should be, a line each


@dataclass(frozen=True)
class WrongProgram:
    """A program, its problem's id, and the stage that must refuse it."""

    path: Path
    problem: str
    stage: str
    source: str


@dataclass
class _Counts:
    """Verdicts so far."""

    verdicts: list[Verdict] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    builds_s: list[float] = field(default_factory=list)
    verdicts_s: list[float] = field(default_factory=list)
    passed: int = 0
    refused: int = 0

    def count_verdict(self, name: str, verdict: Verdict, stage: str = "") -> bool:
        """Whether it is as it should be: refused at `stage`; "": passed."""
        self.verdicts.append(verdict)
        is_refused = verdict.outcome is Outcome.REFUSED
        is_right = (is_refused and verdict.stage.name == stage) if stage else verdict.passed
        if not is_right:
            words = f": {verdict.errors[0]}" if verdict.errors else ""
            self.surprises.append(f"{name}: {verdict.outcome.value} at {verdict.stage.name}{words}"[:500])
        return is_right


def choose_languages(names: Sequence[str]) -> list[str]:
    """The named languages; none named: all that are built in and whose programs are compiled. Raises UsageError."""
    compiled = [name for name in LANGUAGES if isinstance(get_target(name), Loaded)]
    for name in names:
        if name not in compiled:
            raise UsageError(f"bench languages: given {name!r}; expected one of {', '.join(compiled)}")
    return [name for name in compiled if not names or name in names]


def measure_languages(
    names: Sequence[str], tasks: Sequence[str], folders: Sequence[Path], make_pool: Callable[[], Pool], tell: Tell
) -> Iterator[LanguageRow]:
    """A row for each of `choose_languages`. `tasks`: names of problems. `folders`: of wrong programs."""
    for name in names:
        target = get_target(name)
        lack = target.explain_lack() if isinstance(target, Equipped) else ""
        if lack or not isinstance(target, Built) or not isinstance(target, Suffixed):
            yield LanguageRow(name, lack=lack or "its programs are not built")
            continue
        wrong = list(list_wrong_programs(folders, target.suffix))
        with make_pool() as pool:
            yield _measure_language(target, _list_tasks(tasks, name), wrong, pool, tell)


def list_wrong_programs(folders: Sequence[Path], suffix: str) -> Iterator[WrongProgram]:
    """All files of a language below the folders that say where they fail, by path.

    Raises UsageError for a folder that is not there, and for a file that looks wrong and does not say it.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"--wrong {folder}: no such folder; expected one of wrong programs")
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield read_wrong_program(path)


def read_wrong_program(path: Path) -> WrongProgram:
    """Raises UsageError."""
    source = path.read_text("utf-8")
    head = "\n".join(source.split("\n", _HEAD)[:_HEAD])
    problem, refused = _PROBLEM.search(head), _REFUSED.search(head)
    if refused is None:
        raise UsageError(f"{path}: given no stage; expected a line such as `// refused: RUN` among the first {_HEAD}")
    name = problem[1] if problem else path.stem.partition("__")[0]
    return WrongProgram(path, name, refused[1], source)


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
    target: Target, tasks: Sequence[Task], wrong: Sequence[WrongProgram], pool: Pool, tell: Tell
) -> LanguageRow:
    counts, programs = _Counts(), [task for task in tasks if task.impl]
    for number, task in enumerate(programs, 1):
        tell(f"{target.name}: plain program {number} of {len(programs)}, {task.id}")
        counts.passed += _judge_plain(target, task, pool, counts)
    task_of = {task.id: task for task in tasks}
    fitting = [program for program in wrong if program.problem in task_of]
    for number, program in enumerate(fitting, 1):
        tell(f"{target.name}: wrong program {number} of {len(fitting)}, {program.path.stem}")
        verdict = pool.verify(task_of[program.problem], program.source)
        counts.refused += counts.count_verdict(f"{target.name} {program.path.name}", verdict, program.stage)
    return LanguageRow(
        target.name,
        name_verifier(target),
        programs=len(programs),
        passed=counts.passed,
        wrong=len(fitting),
        refused=counts.refused,
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
