"""A folder of KernelBench's files as a folder of problem files: a row for each, whatever becomes of it."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opsmith.errors import TaskError, UsageError
from opsmith.imports.foreign_code import CodeRefusalError
from opsmith.imports.kernelbench.source import read_module
from opsmith.imports.licences import find_licence
from opsmith.imports.outcomes import ImportRow
from opsmith.imports.worker import ImportWorkers, TrialError
from opsmith.imports.writing import ProblemFolder
from opsmith.outside import read_text
from opsmith.problems.files.reading import ProblemFile, read_problem
from opsmith.problems.problem import Provenance
from opsmith.running.nursery import Services

SECONDS = 60.0  # for one file
MOST_FILES = 20_000
MOST_WORKERS = 4
ANALYSES = Services(
    "opsmith.imports.kernelbench.sampling:load_sampler",
    "",
    {"worker": "opsmith.imports.kernelbench.analysis:serve_modules"},
)


@dataclass(frozen=True)
class ModuleLimits:
    """What an imported problem may hold and compute at its largest sizes, and how long its import may take."""

    max_bytes: int
    max_operations: int
    seconds: float = SECONDS


@dataclass(frozen=True)
class _Outcome:
    """A file's problem, not yet written, or why there is none."""

    label: str
    seconds: float
    file: ProblemFile | None = None
    refusal: str = ""
    answer: Mapping[str, Any] | None = None


def import_modules(
    place: Path, folder: ProblemFolder, workers: ImportWorkers, limits: ModuleLimits, tell: Callable[[str], None]
) -> Iterator[ImportRow]:
    """Every module of a folder, or of one file, in order. Raises UsageError."""
    paths = find_modules(place)
    labels = [path.name if place.is_file() else str(path.relative_to(place)) for path in paths]
    with ThreadPoolExecutor(min(MOST_WORKERS, os.cpu_count() or 1)) as threads:
        pairs = zip(paths, labels, strict=True)
        futures = [threads.submit(_import_file, path, label, place, workers, limits) for path, label in pairs]
        try:
            for number, future in enumerate(futures, 1):
                outcome = future.result()
                tell(f"{outcome.label}, {number} of {len(futures)}")
                yield _write_outcome(outcome, folder)
        finally:
            for future in futures:
                future.cancel()


def find_modules(place: Path) -> list[Path]:
    """The Python files of a folder, numbered ones in the order of their numbers. Raises UsageError."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise UsageError(f"{place}: does not exist; expected a KernelBench file, or a folder of them")
    paths = [path for path in place.rglob("*.py") if path.is_file() and not _is_aside(path.relative_to(place))]
    if not paths:
        raise UsageError(f"{place}: no .py file in it; expected KernelBench's level1/1_NAME.py and the like")
    if len(paths) > MOST_FILES:
        raise UsageError(f"{place}: {len(paths)} files; expected at most {MOST_FILES}")
    return sorted(paths, key=_order_path)


def _is_aside(path: Path) -> bool:
    return path.name == "__init__.py" or any(name.startswith((".", "__")) for name in path.parts[:-1])


def _order_path(path: Path) -> list[tuple[int, str]]:
    """Numbers by their value."""
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", str(path))]


def name_problem(label: str) -> str:
    """The name of the problem of a file: its folder's and its own.

    >>> name_problem("level1/23_Softmax.py"), name_problem("23_Softmax.py"), name_problem("my softmax.py")
    ('level1_23_softmax', 'kernel_23_softmax', 'my_softmax')
    """
    words = re.sub(r"\W+", "_", label.removesuffix(".py"), flags=re.ASCII).strip("_").lower()[:90]
    return words if words[:1].isalpha() else f"kernel_{words}"


def _import_file(path: Path, label: str, place: Path, workers: ImportWorkers, limits: ModuleLimits) -> _Outcome:
    start = time.monotonic()
    try:
        text = read_text(path)
        read_module(text)
        level = Path(label).parent.name.lower()  # whose results are counted together
        group = level if re.fullmatch(r"[a-z]\w*", level, re.ASCII) else "kernelbench"
        request: dict[str, Any] = {"text": text, "name": name_problem(label), "group": group}
        request |= {"max_bytes": limits.max_bytes, "max_operations": limits.max_operations}
        with workers.open_worker() as worker:
            answer = worker.ask(request, limits.seconds)
        if answer.get("refusal"):
            raise TrialError(str(answer["refusal"])[:400])
        file = _read_answer(answer, text, label, find_licence(path, text, place))
    except (CodeRefusalError, TrialError, TaskError) as error:
        return _Outcome(label, time.monotonic() - start, refusal=str(error))
    return _Outcome(label, time.monotonic() - start, file, answer=answer)


def _read_answer(answer: Mapping[str, Any], text: str, label: str, licence: str) -> ProblemFile:
    """The problem file that a worker drafted, with what we know of its source. Raises TrialError and TaskError."""
    try:
        file = read_problem(str(answer["text"]), label)
        drafted = answer["source"]
        source = Provenance(
            "kernelbench",
            label,
            hashlib.sha256(text.encode()).hexdigest(),
            licence,
            text,
            tuple(map(str, drafted["arguments"])),
            {str(name): str(key) for name, key in drafted["weights"].items()},
            {str(name): int(size) for name, size in drafted["sizes"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise TrialError("the process that ran its code gave no answer") from None
    if file.name != name_problem(label):
        raise TrialError("the process that ran its code answered for another file")
    return replace(file, problem=replace(file.problem, source=source))


def _write_outcome(outcome: _Outcome, folder: ProblemFolder) -> ImportRow:
    if outcome.file is None or outcome.answer is None:
        return ImportRow(outcome.label, refusal=outcome.refusal, seconds=outcome.seconds)
    try:
        written = folder.write_problem(outcome.file)
    except TaskError as error:
        return ImportRow(outcome.label, refusal=str(error), seconds=outcome.seconds)
    texts = tuple(str(warning)[:200] for warning in outcome.answer.get("warnings") or ())
    fixed = [str(name)[:60] for name in outcome.answer.get("fixed") or ()]
    return ImportRow(
        outcome.label,
        outcome.file.name,
        str(written),
        warnings=(*texts, f"does not vary: {', '.join(fixed)}") if fixed else texts,
        bytes_from=_read_count(outcome.answer, "own_bytes"),
        bytes_to=_read_count(outcome.answer, "large_bytes"),
        seconds=outcome.seconds,
    )


def _read_count(answer: Mapping[str, Any], key: str) -> int | None:
    count = answer.get(key)
    return count if type(count) is int and count >= 0 else None
