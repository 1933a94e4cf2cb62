"""The n-th call of a store's files fails, or is the last: what is lost, doubled, or said badly?

    python tests/chaos/store_faults.py [--every 300] [--beyond 100] [--begin 1] [--modes ...] [--log FILE]
    python tests/chaos/store_faults.py --table FILE...     # of logs: how trials ended, and what is wrong

A small run (three tasks, two rounds, an embedded model, the verifier in its process) is done in a fork of its own, in
which the n-th call of a file of the store fails (`file_faults.c`, preloaded): once or from then on, because the disk
refuses or is full; or there the process is killed. The same run is then done again by another fork, without a fault. It
must end with what an undisturbed run holds, and must not ask for a reply that the first one had received.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from learn.tiny_run import SETTINGS, TASKS, InProcess, TinyModel  # noqa: E402

from opsmith.errors import OpsmithError  # noqa: E402
from opsmith.learn.loop import improve  # noqa: E402
from opsmith.models import Reply, Request  # noqa: E402
from opsmith.store import Store, patience  # noqa: E402

RUN = SETTINGS.replace(samples=3, max_rounds=2)
SOURCE = HERE / "file_faults.c"
WAITS = "the run waits for"
GOES_ON = "the run goes on"
MOST_S = 60.0  # for a run of a fifth of a second


@dataclass(frozen=True)
class Mode:
    """How calls fail, and what the run is told while it waits."""

    error: int
    lasting: bool = False
    deadly: bool = False
    ends: str = ""  # of a lasting fault: "mended" as the run says that it waits, or "hurried": Ctrl-C
    everywhere: bool = False  # in the user's folder for unsaved replies too, so that some may be lost: that is said


MODES = {
    "I/O error, once": Mode(errno.EIO),
    "full disk, once": Mode(errno.ENOSPC),
    "I/O error until mended": Mode(errno.EIO, lasting=True, ends="mended"),
    "full disk until mended": Mode(errno.ENOSPC, lasting=True, ends="mended"),
    "full disk, Ctrl-C": Mode(errno.ENOSPC, lasting=True, ends="hurried"),
    "I/O error, Ctrl-C": Mode(errno.EIO, lasting=True, ends="hurried"),
    "full disk everywhere, Ctrl-C": Mode(errno.ENOSPC, lasting=True, ends="hurried", everywhere=True),
    "killed": Mode(errno.EIO, deadly=True),
}


@dataclass(frozen=True)
class Trial:
    mode: Mode
    number: int  # of the call that fails; 0: none does


@dataclass
class Outcome:
    """What one process came to; a process that was killed leaves the default."""

    end: str = "killed"  # why the run ended, or the type of the error
    message: str = ""
    received: list[str] = field(default_factory=list)  # requests that the model has answered
    warned: list[str] = field(default_factory=list)
    failed: str = ""  # the call that failed first
    calls: int = 0
    rows: list[list[str]] = field(default_factory=list)


class Counted(TinyModel):
    """It notes which requests it has answered."""

    def __init__(self, note: Callable[[str], object]) -> None:
        super().__init__()
        self._note = note

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        self._note(f"{request.seed} {request.temperature}")
        return reply


def build_faults(folder: Path) -> Path:
    """The library that is preloaded."""
    library = folder / "file_faults.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def perform_run(folder: Path, trial: Trial) -> Outcome:
    """The run in a fork; `folder` has the store, and a home for what cannot be stored."""
    book = folder / "answered"
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            outcome = _run_in_fork(folder, trial, book)
            with open(writing, "w", encoding="utf-8") as pipe:
                json.dump(asdict(outcome), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    timer = threading.Timer(MOST_S, os.kill, (pid, 9))
    timer.start()
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    timer.cancel()
    os.waitpid(pid, 0)
    outcome = Outcome(**json.loads(text)) if text else Outcome()
    outcome.received = book.read_text().splitlines() if book.exists() else []
    book.unlink(missing_ok=True)
    return outcome


def _run_in_fork(folder: Path, trial: Trial, book: Path) -> Outcome:
    faults = ctypes.CDLL(None)
    faults.faults_failed.restype = ctypes.c_char_p
    place, home = folder / "store", folder / "state"
    os.environ["XDG_STATE_HOME"] = str(home)
    patience.LOOK_S = 0.02
    outcome, mode = Outcome(), trial.mode
    with book.open("a", buffering=1) as notes:
        faults.faults_watch(bytes(place), bytes(home) if mode.everywhere else b"")
        faults.faults_arm(trial.number, mode.error, mode.lasting, mode.deadly)
        try:
            with Store.open(place) as store:
                _listen(store, mode, lambda: faults.faults_arm(0, 0, 0, 0), outcome)
                model = Counted(lambda name: notes.write(f"{name}\n"))
                result = improve(TASKS[:3], model, RUN, store, judge=InProcess())
                outcome.end, outcome.calls = result.end, faults.faults_counted()
                if not trial.number:
                    outcome.rows = sorted(map(list, store.read_contents(result.run)))
        except BaseException as error:  # whatever it is, a user would see it
            outcome.end = "" if isinstance(error, OpsmithError) else "a traceback: "
            outcome.end += type(error).__name__
            outcome.message = str(error)
    outcome.failed = faults.faults_failed().decode()
    return outcome


def _listen(store: Store, mode: Mode, mend: Callable[[], object], outcome: Outcome) -> None:
    """Note what a person would be told, and do what he would do."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words = record.getMessage()
            outcome.warned.append(words)
            if WAITS in words and mode.ends == "mended":
                threading.Timer(0.05, mend).start()
            if WAITS in words and mode.ends == "hurried":
                threading.Timer(0.05, store.hurry, (0.0,)).start()

    log = logging.getLogger("opsmith")
    log.propagate = False
    log.handlers = [Listener()]


def find_faults(outcome: Outcome, again: Outcome, whole: Outcome, mode: Mode) -> list[str]:
    """What is wrong, in words; empty: nothing."""
    wrong = []
    if outcome.end.startswith("a traceback"):
        wrong.append(f"{outcome.end}: {outcome.message}")
    if outcome.end == "killed" and not mode.deadly:
        wrong.append("it never ended")
    if outcome.end.endswith("Error") and not re.search(r".+: .+; .+", outcome.message, re.DOTALL):
        wrong.append(f"a message without a remedy: {outcome.message}")
    if again.end != whole.end:
        wrong.append(f"the same command again: {again.end}: {again.message}")
    lost, more = Counter(map(tuple, whole.rows)), Counter(map(tuple, again.rows))
    if again.end == whole.end and lost != more:
        wrong.append(f"{(lost - more).total()} rows are lost, {(more - lost).total()} are new")
    twice = Counter(outcome.received) & Counter(again.received)
    is_said = any("replies are lost" in words for words in outcome.warned)
    if twice and not mode.deadly and not is_said:
        wrong.append(f"{twice.total()} replies were asked for again, and nothing says so")
    return wrong


def disturb_run(folder: Path, trial: Trial, whole: Outcome) -> tuple[Outcome, list[str]]:
    """What the disturbed run came to, and what is wrong after the same run was done again."""
    own = Path(tempfile.mkdtemp(dir=folder))
    try:
        outcome = perform_run(own, trial)
        again = perform_run(own, Trial(MODES["killed"], 0))
        return outcome, find_faults(outcome, again, whole, trial.mode)
    finally:
        shutil.rmtree(own)


def choose_numbers(calls: int, begin: int, every: int, beyond: int, seed: int = 0) -> list[int]:
    """Every number from `begin` up to `every`, and so many of those beyond."""
    first = list(range(begin, min(every, calls) + 1))
    rest = range(every + 1, calls + 1)
    return first + random.Random(seed).sample(rest, min(beyond, len(rest)))  # in this order: it may be cut short


@dataclass(frozen=True)
class Disturbed:
    """One trial of a sweep, as it stands in a log."""

    mode: str
    number: int
    outcome: Outcome
    wrong: list[str]


def sweep(modes: Sequence[str], begin: int, every: int, beyond: int) -> Iterator[Disturbed]:
    """Needs the library preloaded."""
    with tempfile.TemporaryDirectory(prefix="opsmith-faults-") as name:
        folder = Path(name)
        whole = perform_run(Path(tempfile.mkdtemp(dir=folder)), Trial(MODES["killed"], 0))
        numbers = choose_numbers(whole.calls, begin, every, beyond)
        for number in numbers:
            for mode in modes:
                yield Disturbed(mode, number, *disturb_run(folder, Trial(MODES[mode], number), whole))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--begin", type=int, default=1)
    parser.add_argument("--every", type=int, default=300)
    parser.add_argument("--beyond", type=int, default=100)
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--log", type=Path, default=Path(os.devnull))
    parser.add_argument("--table", type=Path, nargs="*")
    options = parser.parse_args()
    if options.table:
        print(write_table([_read_line(line) for log in options.table for line in log.read_text().splitlines()]))
        return 0
    if "file_faults" not in os.environ.get("LD_PRELOAD", ""):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"LD_PRELOAD": str(build_faults(Path(folder)))}
            return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    trials = []
    with options.log.open("a", buffering=1, encoding="utf-8") as log:
        for trial in sweep(options.modes, options.begin, options.every, options.beyond):
            trial.outcome.rows.clear()
            trials.append(trial)
            log.write(f"{json.dumps(asdict(trial))}\n")
            for words in trial.wrong:
                print(f"{trial.mode}, call {trial.number} ({trial.outcome.failed}): {words}", flush=True)
    print(write_table(trials))
    return int(any(trial.wrong for trial in trials))


def _read_line(line: str) -> Disturbed:
    row = json.loads(line)
    return Disturbed(row["mode"], row["number"], Outcome(**row["outcome"]), row["wrong"])


def _describe_end(outcome: Outcome) -> str:
    if any(WAITS in words for words in outcome.warned) and "rounds" in outcome.end:
        return "waited, went on by itself"
    return "went on as if nothing were" if "rounds" in outcome.end else outcome.end


def write_table(trials: Sequence[Disturbed]) -> str:
    """How trials ended by mode, which calls failed, what was said and what is wrong, in Markdown."""
    ends = Counter((trial.mode, _describe_end(trial.outcome)) for trial in trials)
    kinds = sorted({kind for _, kind in ends})
    lines = [f"| fault | trials | {' | '.join(kinds)} |", "|---|---|" + "---|" * len(kinds)]
    for mode in dict.fromkeys(trial.mode for trial in trials):
        counts = [ends[mode, kind] for kind in kinds]
        lines.append(f"| {mode} | {sum(counts)} | {' | '.join(map(str, counts))} |")
    failed = Counter(trial.outcome.failed.partition(" ")[0] or "none" for trial in trials)
    calls = ", ".join(f"{name} {count}" for name, count in failed.most_common())
    lines += ["", f"Calls that failed: {calls}.", "", "What was said:", ""]
    words = Counter(_shorten_words(text) for trial in trials for text in (trial.outcome.message, *trial.outcome.warned))
    lines += [f"- {count}: {text}" for text, count in words.most_common() if text]
    wrong = [f"- {trial.mode}, call {trial.number}: {words}" for trial in trials for words in trial.wrong]
    return "\n".join([*lines, "", f"Wrong: {len(wrong)}.", *wrong, ""])


def _shorten_words(words: str) -> str:
    """Without the folders of one trial."""
    return re.sub(r"/\S*/", "", re.sub(r"-[\w]{8}\.jsonl", ".jsonl", words.replace("\n", " ")))


if __name__ == "__main__":
    sys.exit(main())
