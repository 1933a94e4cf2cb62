"""Programs that a run is given: read from what people have, or submitted while it goes; never counted as the model's.

Each is judged at the full level and stored with its verdict before anything goes by it. What is stored and right
becomes an experience between two rounds, with the number of the round that is the first to show it; a round that has
begun is finished without it. So a run that was killed shows what one shows that was not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from opsmith.errors import OpsmithError, UsageError, VerifierError
from opsmith.judging.judge import Judge, Secretive
from opsmith.learn.events import KnownJudged, ProgramsGiven
from opsmith.learn.session import RunSession
from opsmith.outside import read_text
from opsmith.records import KNOWN, Experience, KnownProgram, Level, Outcome, Task, Verdict, content_hash, dumps
from opsmith.settings import Settings
from opsmith.store import Store
from opsmith.store.rows import experience_rows, known_rows
from opsmith.suites import read_task_file
from opsmith.suites.library import FILE, read_library
from opsmith.targets import get_target, is_own
from opsmith.targets.capabilities import FRAME, explain_message, is_frame
from opsmith.targets.protocols import Suffixed

PERSON = "person"
AUTHORS = (PERSON, "model", "rules")
MOST_FILES = 10_000  # of a folder, those that are looked at
NAMED = 5  # files that name no task, of which a message says the names
_TASK_FILES = (".yaml", ".yml")


@dataclass(frozen=True)
class KnownPrograms:
    """What `read_known` has read for a run."""

    tasks: tuple[Task, ...]  # the run's; of the control, those that nothing is known for
    programs: tuple[KnownProgram, ...] = ()  # what is judged and shown; of the control, nothing
    notes: tuple[str, ...] = ()  # what of the place is no program for a task, and what is left out
    digest: str = ""  # equal where the same programs lie there for the same tasks, in the same order; "": none


def read_known(settings: Settings, tasks: Sequence[Task]) -> KnownPrograms:
    """The programs of the place that the settings name: a library, or a folder of programs by task, each named so or in
    a folder that is. Tasks are the run's, and those whose files lie there too. Raises UsageError and TaskError."""
    where = settings.teamwork.showing.known
    if where is None:
        return KnownPrograms(tuple(tasks))
    place, own = Path(where), {task.id: task for task in tasks}
    if not place.exists():
        raise UsageError(f"known {where}: does not exist; expected a library, or a folder with a program for each task")
    notes: list[str] = []
    is_library = (place / FILE).is_file()
    every = _read_operators(place, own, settings) if is_library else _read_folder(place, own, settings, notes)
    written = []
    for program in every:
        if is_frame(program.task, program.source):
            notes.append(f"known: {program.place} is {FRAME}, so that nobody is shown it")
        else:
            written.append(program)
    different = {(program.task.digest, program.source): program for program in reversed(written)}
    if not different:
        suffix = _find_suffix(tasks[0]) or ".*"
        expected = f"expected TASK{suffix}, or a folder TASK with *{suffix} in it"
        raise UsageError("; ".join([f"known {where}: given no program for a task", *notes, expected]))
    programs = tuple(reversed(different.values()))
    digest = content_hash(dumps([(each.task.digest, content_hash(each.source), each.author) for each in programs]))
    if settings.teamwork.showing.show_known:
        return KnownPrograms(tuple(tasks), programs, tuple(notes), digest)
    asked = list_asked(tasks, programs, settings)
    if not asked:
        raise UsageError(f"no-known: {where} has programs for all tasks; expected one without, to be asked for")
    apart = f"no-known: {len(programs)} programs are neither judged nor shown"
    return KnownPrograms(asked, (), (f"{apart}; {len(asked)} of {len(tasks)} tasks are asked for",), digest)


def list_asked(tasks: Sequence[Task], programs: Sequence[KnownProgram], settings: Settings) -> tuple[Task, ...]:
    """What a model is asked for if these programs are right. The control asks for the same: it differs from the run
    that it is compared with in what is shown, not in the tasks or the samples of each."""
    solved = {program.task.digest for program in programs}
    return tuple(task for task in tasks if settings.optimisation.optimise or task.digest not in solved)


def _read_operators(folder: Path, own: Mapping[str, Task], settings: Settings) -> Iterator[KnownProgram]:
    library, any_task = read_library(folder), next(iter(own.values()))
    if library.target not in (any_task.target, get_target(any_task.target).name):
        what = f"known {folder}: given a library of {library.target}; expected {any_task.target}"
        raise UsageError(f"{what}; try: --translate {folder}, which shows its programs for the same problems")
    for operator in library.operators:
        task = own.get(operator.task.id) or _read_task(Path(operator.task.path), any_task.target, settings)
        author = operator.written_by if operator.written_by in AUTHORS else PERSON
        yield KnownProgram(task, operator.source, author, f"{library.name}: {operator.name}")


def _read_folder(folder: Path, own: Mapping[str, Task], settings: Settings, notes: list[str]) -> Iterator[KnownProgram]:
    """The programs of files, then those that task files hold. Adds to the notes."""
    target = next(iter(own.values())).target
    suffix, files, strange = _find_suffix(next(iter(own.values()))), list(_walk_files(folder)), []
    there: dict[str, Task] = {}
    for path in files:
        if path.suffix in _TASK_FILES:
            try:
                there.setdefault(path.stem, _read_task(path, target, settings))
            except OpsmithError as error:  # whatever else people keep in such files
                notes.append(f"{error}")
    for path in files:
        inside = path.relative_to(folder) if path != folder else Path(path.name)
        if path.suffix in _TASK_FILES or (suffix and path.suffix != suffix):
            continue
        names = (path.stem, *(parent.name for parent in inside.parents))
        task = next((tasks[name] for name in names for tasks in (own, there) if name in tasks), None)
        if task is None:
            strange.append(str(inside))
        else:
            try:
                yield KnownProgram(task, read_text(path), PERSON, str(inside))
            except OpsmithError as error:
                notes.append(f"{error}")
    for name, task in there.items():
        if task.impl is not None:
            yield KnownProgram(own.get(name, task), task.impl, PERSON, Path(task.path).name)
    if strange:
        first = ", ".join(strange[:NAMED]) + (f" and {len(strange) - NAMED} more" if len(strange) > NAMED else "")
        notes.append(f"not looked at in {folder}: {first}: no task of this run is called so, nor the folder")


def _walk_files(folder: Path) -> Iterator[Path]:
    """Its files in the order of their paths, hidden ones left out; no link to a folder is followed. Raises
    UsageError."""
    if folder.is_file():
        yield folder
        return
    found = (
        Path(root, name)
        for root, folders, names in os.walk(folder)
        for name in names
        if not any(part.startswith(".") for part in Path(root, name).relative_to(folder).parts)
    )
    files = sorted(islice(found, MOST_FILES + 1))
    if len(files) > MOST_FILES:
        raise UsageError(f"known {folder}: given more than {MOST_FILES:,} files; expected a folder of programs alone")
    yield from files


def _read_task(path: Path, target: str, settings: Settings) -> Task:
    return read_task_file(path, target, settings.target_options, takes_own=is_own(target))


def _find_suffix(task: Task) -> str:
    """Of files with programs; "": the task's language has none."""
    target = get_target(task.target)
    return target.suffix if isinstance(target, Suffixed) else ""


async def judge_known(session: RunSession, known: KnownPrograms, start: Sequence[Experience]) -> None:
    """Before the first round: judge what has no verdict yet and take what is right; of `start`, what another run
    solved, the rest. Nothing happens where a round has begun."""
    store, run = session.store, session.run
    for note in known.notes:
        session.warn_once(note)
    if store.read_rounds(run):
        return
    judged = {entry.key for entry in store.read_known(run) if entry.verdict.outcome is not Outcome.UNJUDGED}
    fresh = [program for program in known.programs if (program.task.digest, program.source) not in judged]
    numbers = count(1)

    async def judge_one(program: KnownProgram) -> Verdict | None:
        verdict = await _judge_program(session, program)
        is_right = verdict is not None and verdict.passed
        session.on_event(KnownJudged(program, is_right, next(numbers), len(fresh)))
        return verdict

    verdicts = await asyncio.gather(*map(judge_one, fresh))
    pairs = [(program, verdict) for program, verdict in zip(fresh, verdicts, strict=True) if verdict is not None]
    store.put([row for pair in pairs for row in known_rows(run, *pair)]).result()
    for program, verdict in pairs:
        if not verdict.passed:
            what = f"known: {program.place} is not right for task {program.task.id}, so that nobody is shown it"
            session.warn_once(f"{what}\n{explain_message(program.task, verdict.message)}")
    take_known(session)
    right = {entry.program.task.digest for entry in store.read_known(run) if entry.verdict.passed}
    if both := [experience.task.id for experience in start if experience.task.digest in right]:
        session.warn_once(f"known goes before --from: {', '.join(both)}: both have programs; the known ones are shown")
    rows = [row for experience in start for row in experience_rows(run, experience, None, False)]
    store.put(rows).result()  # what is there stays


async def _judge_program(session: RunSession, program: KnownProgram) -> Verdict | None:
    try:
        return await session.judge.judge(program.task, program.source, Level.FULL)
    except VerifierError as error:
        session.warn_once(f"known: {program.place} was not judged, so that nobody is shown it: {error}")
        return None


def take_known(session: RunSession) -> None:
    """Between two rounds: what the run was given, is right and has no program yet becomes an experience. Of several
    programs for a task the first one is taken; what the run has solved by then stays its own."""
    store, run = session.store, session.run
    given = [entry.program for entry in store.read_known(run) if entry.verdict.passed]
    solved = {kept.experience.task.digest for kept in store.read_experiences(run, with_children=True)} if given else ()
    fresh = {program.task.digest: program for program in reversed(given) if program.task.digest not in solved}
    rounds = store.read_rounds(run) if fresh else []
    if not fresh or any(solved is None for _, solved in rounds):
        return
    taken = [fresh[digest] for digest in reversed(fresh)]
    experiences = [
        Experience(program.task, program.source, 1.0, len(rounds) or -1, KNOWN + program.author) for program in taken
    ]
    store.put([row for each in experiences for row in experience_rows(run, each, None, False)]).result()
    session.on_event(ProgramsGiven(tuple(taken), len(rounds)))


async def submit_program(store: Store, run: str, program: KnownProgram, judge: Judge) -> Verdict:
    """Judge a program for one of the run's tasks and give it to the run, if it is right: the next round to begin shows
    it, in whichever process. Raises UsageError where the run has ended or solved the task; StoreError."""
    refuse_submission(store, run, program.task)
    judge = judge.with_secret(store.read_secret(run)) if isinstance(judge, Secretive) else judge
    verdict = await judge.judge(program.task, program.source, Level.FULL)
    if verdict.passed:
        refuse_submission(store, run, program.task)  # judging takes time
        await asyncio.wrap_future(store.put(known_rows(run, program, verdict)))
        if end := store.end_reason(run):
            what = f"run {run}: it ended ({end}) while the program was stored, so that no round shows it"
            raise UsageError(f"{what}; try: opsmith run --known FOLDER --from {run}")
    return verdict


def refuse_submission(store: Store, run: str, task: Task) -> None:
    """Raises UsageError where the run would not use a program for the task."""
    if end := store.end_reason(run):
        what = f"run {run}: given a program for {task.id}; expected a run that goes on: it ended ({end})"
        raise UsageError(f"{what}; try: a further run with --known FOLDER --from {run}")
    given = [entry.program for entry in store.read_known(run) if entry.verdict.passed]
    uses = {program.task.digest: f"was given {program.place} for it" for program in reversed(given)}
    for kept in store.read_experiences(run):
        if kept.sample is not None:
            uses[kept.experience.task.digest] = f"solved it in round {kept.experience.round}"
        uses.setdefault(kept.experience.task.digest, "began with a program for it")
    if task.digest in uses:
        what = f"run {run}: given a program for {task.id}; expected a task without one: it {uses[task.digest]}"
        raise UsageError(f"{what}; nothing was changed")


def find_submitted(store: Store, run: str, name: str) -> Task:
    """The run's own task of that id. Raises UsageError."""
    tasks = {task.id: task for task in store.read_tasks(run)}
    if name not in tasks:
        raise UsageError(f"run {run}: given task {name!r}; expected one of its own: {', '.join(sorted(tasks))}")
    return tasks[name]
