"""How one candidate is executed, from our side: its process is started, asked for outputs and killed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from opsmith.judging.candidate import BROKEN, ERROR, LONGEST_ERROR, OUTPUTS, READY, SIZE
from opsmith.judging.limits import Limits
from opsmith.records import WHOLE_RUN, Boundary, Diagnostic, Task, printable
from opsmith.running.arena import CAPACITY, Buffer, opened_files
from opsmith.running.cgroups import MEMORY, PROCESSES, GroupLimits
from opsmith.running.nursery import Nursery, Process
from opsmith.running.sandbox import Sandbox
from opsmith.running.watch import count_threads
from opsmith.targets import Build, is_own

_LARGEST_ANSWER = len(BROKEN) + 4 * LONGEST_ERROR  # bytes: a character has at most four
_CRASHED = "a process that was killed by"  # how findings on signals begin
_WATCH_S = 0.02  # between two looks at the threads of a program that has some
_FREE_THREADS, _TEAMS = 32, 8  # threads beyond, and of, what a build asks for: regions may be nested
_SEAT_BYTES = 64 << 20  # for the process that it is forked from
_START_S = 30.0  # for importing the target


class Execution(Protocol):
    """One candidate, ready to run."""

    def ask_outputs(self, trial: str, inputs: Buffer) -> Buffer | Diagnostic:
        """What it answers for a trial, until it is asked again; or the finding against it."""

    def close(self) -> None:
        """End all that is left of it."""


@dataclass(frozen=True)
class Launcher:
    """From where processes of candidates are started, with which limits."""

    nursery: Nursery
    sandbox: Sandbox
    limits: Limits


class NotStartedError(Exception):
    """A candidate's process ended before it was confined, or the target had failed there: not the candidate's doing."""

    def __init__(self, target: str, ended: str, fault: str = "") -> None:
        super().__init__(fault or ended)
        self.charged_to = Boundary.TARGET if fault else Boundary.SANDBOX
        where, given = (f"target {target}", fault) if fault else ("the candidate's process", f"one that {ended}")
        expected, remedy = "a process that is confined and waits for inputs", "mend the target there" if fault else ""
        self.finding = Diagnostic(self.charged_to.name, where, given, expected, remedy)


class NotRunError(NotStartedError):
    """Commands could not be run on a program: not the candidate's doing either."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(target, reason)
        self.finding = Diagnostic("SANDBOX", f"commands of target {target}", reason, "commands that can be run")


class ShortageError(NotStartedError):
    """A candidate's process was ended for memory that others had taken: not the candidate's doing either."""

    def __init__(self) -> None:
        given = "one that was killed while its own memory was within its limit: there was none left"
        super().__init__("", given)
        remedy = "make room, or judge fewer at once"
        self.finding = Diagnostic("SANDBOX", "the candidate's process", given, "memory for it", remedy)


class _TooManyThreadsError(Exception):
    """A program that has threads has far more than were asked for."""


@dataclass
class CandidateProcess:
    """A confined process that knows the program."""

    nursery: Nursery
    process: Process
    limits: Limits
    end: float  # of all its trials, by time.monotonic
    threads: int = 1  # that its build asks for

    def ask_outputs(self, trial: str, inputs: Buffer) -> Buffer | Diagnostic:
        end = min(self.end, time.monotonic() + self.limits.trial)
        try:
            (size,) = self.process.arena.write_blobs([inputs])
            self.process.channel.send(SIZE.pack(size), end)
            answer = self._receive_answer(end)
        except TimeoutError:
            return self.limits.refuse_late(trial, end == self.end)
        except _TooManyThreadsError:
            return self._refuse_team(trial)
        except ValueError as error:
            return _refuse_run(trial, str(error), "leave the descriptors alone, return the outputs")
        except (OSError, EOFError):
            return self._refuse_end(trial, self.nursery.kill(self.process))
        return self._read_answer(trial, answer)

    def close(self) -> None:
        self.nursery.kill(self.process)

    def _refuse_end(self, trial: str, ended: str) -> Diagnostic:
        """The finding against a process that has ended. Raises ShortageError."""
        if self.process.is_shortage:
            raise ShortageError
        if self.process.excess == MEMORY and self.process.seat is not None:
            given = self.process.seat.group.limits.describe_excess(MEMORY)
            return _refuse_run(trial, f"more than {given}", "use less memory")
        if self.process.excess == PROCESSES and self.threads > 1:
            return self._refuse_team(trial)
        return _refuse_run(trial, f"a process that {ended}", "look for what ends it")

    def _refuse_team(self, trial: str) -> Diagnostic:
        given = f"more than {_most_threads(self.threads)} threads"
        return _refuse_run(trial, given, f"the task asks for {self.threads}")

    def _receive_answer(self, end: float) -> bytes:
        """Its answer. Raises _TooManyThreadsError too: their number is nothing that the kernel limits for root."""
        if self.threads == 1:
            return self.process.channel.receive(_LARGEST_ANSWER, end)
        while not self.process.channel.wait_message(_WATCH_S) and time.monotonic() < end:
            self._refuse_threads()
        answer = self.process.channel.receive(_LARGEST_ANSWER, end)
        self._refuse_threads()
        return answer

    def _refuse_threads(self) -> None:
        if count_threads(self.process.pid) > _most_threads(self.threads):
            self.nursery.kill(self.process)
            raise _TooManyThreadsError

    def _read_answer(self, trial: str, answer: bytes) -> Buffer | Diagnostic:
        if answer.startswith(ERROR):
            return _refuse_run(trial, _read_words(answer.removeprefix(ERROR)), "")
        if answer.startswith(OUTPUTS) and len(answer) == len(OUTPUTS) + SIZE.size:
            try:
                return self.process.arena.view_blobs(SIZE.unpack(answer.removeprefix(OUTPUTS)))[0]
            except ValueError as error:
                return _refuse_run(trial, str(error), "leave the descriptors alone, return the outputs")
        return _refuse_run(trial, "an answer that is neither outputs nor an error", "leave the descriptors alone")


def start_process(launcher: Launcher, task: Task, source: str, build: Build | None) -> CandidateProcess:
    """A process for a program, or for what it was built to. Raises NotStartedError, VerifierError."""
    language = "" if is_own(task.target) else task.target  # the nursery runs no code but ours
    artefacts: Mapping[str, bytes] = build.artefacts if build is not None else {}
    threads = build.threads if build is not None else 1
    with opened_files(artefacts) as fds:
        process = launcher.nursery.fork_candidate(launcher.sandbox, language, fds, _limit_together(launcher, threads))
    begin = time.monotonic()
    request = {"target": task.target, "source": source, "artefacts": list(artefacts), "threads": threads}
    try:
        process.channel.send(json.dumps(request).encode(), begin + _START_S)
        answer = process.channel.receive(_LARGEST_ANSWER, begin + _START_S)
    except (OSError, EOFError, ValueError):
        raise NotStartedError(task.target, launcher.nursery.kill(process)) from None
    if answer != READY:
        launcher.nursery.kill(process)
        raise NotStartedError(task.target, "", _read_words(answer.removeprefix(BROKEN)))
    process.is_confined = True
    end = time.monotonic() + launcher.limits.candidate
    return CandidateProcess(launcher.nursery, process, launcher.limits, end, threads)


def _most_threads(threads: int) -> int:
    return _FREE_THREADS + _TEAMS * threads


def _limit_together(launcher: Launcher, threads: int) -> GroupLimits:
    """What its group may use: the nursery's seat is in it too, and one thread more than we refuse."""
    memory = launcher.sandbox.memory + CAPACITY + _SEAT_BYTES
    return GroupLimits(memory, 2 + _most_threads(threads), threads + 0.5 if threads > 1 else None, threads)


def is_crash(finding: Diagnostic) -> bool:
    """Whether it says that a signal has ended the process."""
    return finding.given.startswith(_CRASHED)


def _read_words(error: bytes) -> str:
    """A program's own words, in a form that no terminal obeys."""
    text = error[: 4 * LONGEST_ERROR].decode(errors="replace")[:LONGEST_ERROR]
    return printable(text, "\n")


def _refuse_run(trial: str, given: str, remedy: str) -> Diagnostic:
    return Diagnostic("RUN", trial, given, WHOLE_RUN, remedy)
