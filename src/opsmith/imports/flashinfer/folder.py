"""A data set of definitions as a folder of problem files: a row for each file, whatever becomes of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from opsmith.errors import TaskError
from opsmith.imports.flashinfer.conversion import Converted, ImportRefusalError, convert_definition
from opsmith.imports.flashinfer.dataset import DefinitionFile, find_definitions, read_definition
from opsmith.imports.flashinfer.sizes import Sizes
from opsmith.imports.licences import find_licence
from opsmith.imports.outcomes import ImportRow
from opsmith.imports.worker import ImportWorker, ImportWorkers, TrialError
from opsmith.imports.writing import ProblemFolder
from opsmith.problems.problem import Provenance

SECONDS = 60.0  # for all trials of one kind of one definition


def import_definitions(
    place: Path, folder: ProblemFolder, workers: ImportWorkers, most_bytes: int, tell: Callable[[str], None]
) -> Iterator[ImportRow]:
    """Every definition of a folder, or of one file, in order. Raises UsageError."""
    files = find_definitions(place)
    for number, file in enumerate(files, 1):
        tell(f"{file.label}, {number} of {len(files)}")
        with workers.open_worker() as worker:
            yield _import_file(file, place, folder, worker, most_bytes)


def _import_file(
    file: DefinitionFile, place: Path, folder: ProblemFolder, worker: ImportWorker, most_bytes: int
) -> ImportRow:
    start = time.monotonic()
    try:
        converted = _convert_file(file, place, worker, most_bytes)
        written = folder.write_problem(converted.file)
    except (ImportRefusalError, TrialError, TaskError) as error:
        return ImportRow(file.label, refusal=str(error), seconds=time.monotonic() - start)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        failure = f"the import itself failed: {type(error).__name__}: {error}"  # a mistake of ours costs one file only
        return ImportRow(file.label, refusal=failure, seconds=time.monotonic() - start)
    return ImportRow(
        file.label,
        converted.file.name,
        str(written),
        warnings=converted.warnings,
        bytes_from=converted.bytes_from,
        bytes_to=converted.bytes_to,
        seconds=time.monotonic() - start,
    )


def _convert_file(file: DefinitionFile, place: Path, worker: ImportWorker, most_bytes: int) -> Converted:
    read = read_definition(file)
    licence = find_licence(file.path, "", place)
    source = Provenance("flashinfer", file.label, read.sha256, licence, read.text)

    def try_at(text: str, sets: Sequence[Sizes]) -> list[str]:
        answer = worker.ask({"text": text, "sets": [dict(sizes) for sizes in sets]}, SECONDS)
        mistakes = [str(trial["mistake"]) for trial in answer["trials"]]
        if len(mistakes) != len(sets):
            raise TrialError("the process that ran its code gave no answer")
        return mistakes

    return convert_definition(read, source, most_bytes, try_at)
