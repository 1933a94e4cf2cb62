"""A profiler of the user's own: a command that is run with the program's source, and what it prints and draws.

It is the user's program, run as he would run it: not confined, with the variables of `environment` and no others. It
works in an empty folder of its own, has a deadline, and is killed with its process group. Screenshots of profilers with
windows come in this way: every PNG file that it leaves there is a report.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from opsmith.environment import select_variables
from opsmith.errors import UsageError
from opsmith.measuring.measure import choose_timed_sets
from opsmith.models.pictures import encode_picture
from opsmith.profiling.profiler import ProfileSubject, ProfilingError, make_report
from opsmith.records import PICTURE, ProfileReport, Task
from opsmith.running.turnstile import use_device
from opsmith.targets import get_target
from opsmith.targets.protocols import Built, Stating, Suffixed, Timed

PLACES = ("source", "artefact", "folder", "shape")  # what words in braces stand for
DEADLINE_S = 120.0
MOST_PICTURES = 8
_TEXT_BYTES, _FILE_BYTES, _PICTURE_BYTES = 1 << 18, 256 << 20, 4 << 20
_ARTEFACT = "program"  # what a build that is timed calls the program


class CommandProfiler:
    """Fits `Profiler`. Raises UsageError for a command that names no program, or a place that there is not."""

    name = "command"
    is_quick = True

    def __init__(self, command: str, deadline: float = DEADLINE_S) -> None:
        self._words = _split_command(command)
        self._deadline = deadline

    def fits_task(self, task: Task) -> bool:
        return True

    def explain_lack(self, task: Task) -> str:
        return ""

    def profile_program(self, subject: ProfileSubject) -> Iterator[ProfileReport]:
        """What it printed, then its pictures by the names of their files."""
        with tempfile.TemporaryDirectory(prefix="opsmith-profile-") as place:
            folder = Path(place)
            printed = self._run_words(self._fill_words(subject, folder), folder).replace(f"{folder}/", "")
            pictures, refusals = _read_pictures(folder)
        if printed.strip() or refusals:
            heading = f"What the user's command printed; its words are its own: {' '.join(self._words)}"
            yield make_report(self.name, "\n".join([heading, "", printed.rstrip(), *refusals, ""]))
        yield from pictures

    def _fill_words(self, subject: ProfileSubject, folder: Path) -> list[str]:
        """The command's words; the files that they name are written."""
        target = get_target(subject.task.target)
        source = folder / f"program{target.suffix if isinstance(target, Suffixed) else '.txt'}"
        source.write_text(subject.source, encoding="utf-8", errors="replace")
        values = {"source": str(source), "folder": str(folder), "shape": _name_shape(subject)}
        if any("{artefact}" in word for word in self._words):
            values["artefact"] = str(_write_artefact(subject, folder))
        return [_fill_word(word, values) for word in self._words]

    def _run_words(self, words: Sequence[str], folder: Path) -> str:
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as messages, use_device():
            code = _run_process(words, folder, (printed, messages), self._deadline)
            text, message = _read_beginning(printed), _read_beginning(messages)
        if code is None:
            raise ProfilingError(f"{words[0]} had not ended after {self._deadline:g} s")
        if code:
            last = " ".join(message.split())[-300:] or "it said nothing"
            raise ProfilingError(f"{words[0]} ended with status {code}: {last}")
        return text


def _split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--profile-command: given {command!r}: {error}") from error
    if not words:
        raise UsageError("--profile-command: given no word; expected a program and its arguments")
    return words


def _fill_word(word: str, values: Mapping[str, str]) -> str:
    """With values in the place of names in braces; other braces stay: they may be the program's business."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def _name_shape(subject: ProfileSubject) -> str:
    """Sizes as `M=64,N=64`: the largest that the task is timed at, or its own; "": it has none."""
    target = get_target(subject.task.target)
    sizes: Mapping[str, int] = {}
    if subject.speeds:
        sizes = subject.speeds[-1].measurement.sizes
    elif isinstance(target, Timed) and isinstance(target, Stating):
        sizes = [*choose_timed_sets(subject.task).values()][-1]
    elif isinstance(target, Stating):
        problem = target.find_problem(subject.task)
        sizes = problem.select_sizes(problem.base_sizes)
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def _write_artefact(subject: ProfileSubject, folder: Path) -> Path:
    """The program as its user would build it. Raises ProfilingError."""
    target = get_target(subject.task.target)
    if isinstance(target, Timed):
        build = target.build_timed(subject.task, subject.source)
    elif isinstance(target, Built):
        build = target.build_program(subject.task, subject.source)
    else:
        raise ProfilingError(f"{{artefact}}: programs of target {subject.task.target} are not built")
    if not build.artefacts:
        raise ProfilingError(f"the program was not built: {build.failure or build.errors[0]}")
    name = _ARTEFACT if _ARTEFACT in build.artefacts else next(iter(build.artefacts))
    path = folder / f"{name}.so" if isinstance(target, Timed) else folder / name
    path.write_bytes(build.artefacts[name])
    path.chmod(0o700)
    return path


def _run_process(
    words: Sequence[str], folder: Path, outputs: tuple[IO[bytes], IO[bytes]], deadline: float
) -> int | None:
    """The exit code; None: it was killed at its deadline. What is left of its group is killed in any case."""
    environment = select_variables(os.environ) | {"TMPDIR": str(folder)}
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=outputs[0],
            stderr=outputs[1],
            start_new_session=True,
        )
    except OSError as error:
        raise ProfilingError(f"{words[0]}: {error.strerror}") from error
    try:
        with contextlib.suppress(OSError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
        return process.wait(deadline)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_beginning(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_TEXT_BYTES).decode(errors="replace")


def _read_pictures(folder: Path) -> tuple[list[ProfileReport], list[str]]:
    """Those that a model can be shown, and why others are left out."""
    pictures: list[ProfileReport] = []
    refusals: list[str] = []
    for path in sorted(folder.glob("*.png")):
        try:
            if len(pictures) == MOST_PICTURES:
                raise ValueError(f"expected at most {MOST_PICTURES}")
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _PICTURE_BYTES:
                raise ValueError(f"expected a plain file of at most {_PICTURE_BYTES >> 20} MiB")
            pictures.append(
                ProfileReport(CommandProfiler.name, PICTURE, encode_picture(PICTURE, path.read_bytes()).data)
            )
        except ValueError as error:
            refusals.append(f"(picture {path.name} is left out: {error})")
    return pictures, refusals
