"""Commands over files of others: a confined process that is gone, with its folder, when we return.

The third confinement beside a worker's and a candidate's. The commands may read and execute what the order names, write
plain files in one temporary folder, and start processes where the order says so. They have no network but a licence
server's ports, no signals to others and none of the user's variables. What comes back is what they left and printed,
with the limit that they broke, or a failure of ours, which is no fault of the files. What it means is the caller's to
say.

What they use together (memory, processes and threads, processors) is limited where groups can be made (`cgroups`);
elsewhere the kernel does not bind the number of processes of root, and counts those of others per user. All of them are
killed at the end, since none can leave the process group. Should we be killed ourselves, the folder stays.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import selectors
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opsmith.outside import remove_folder
from opsmith.running import landlock, mounts, sandbox
from opsmith.running.cgroups import Group, GroupLimits, lend_group
from opsmith.running.command_process import ENDED, REPLACED, UNCONFINED, UNMOUNTED, ProcessOrder
from opsmith.running.turnstile import use_device
from opsmith.running.watch import count_threads, measure_resident

_PACKAGES = str(Path(__file__).parents[2])  # where the child imports us from
_LOADER_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONHOME")  # what Python itself may need to start
_CHUNK = 1 << 16  # bytes read at once
_REPORT_BYTES = 1 << 12
_DYING_S = 5.0  # for the end of what was killed
_SHOWN_LINES = 20  # of each stream, the last ones
_MEMORIES = 2  # of one process, that all processes of an order may use together
_log = logging.getLogger("opsmith.commands")
_STACK = 64 << 20  # bytes
_WATCH_S = 0.02  # between two looks at the memory of a process that is watched
_GROUP_WATCH_S = 0.1  # between two looks at what a group has met


SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/dev/urandom")  # what programs load


@dataclass(frozen=True)
class CommandLimits:
    """What one order may use."""

    cpu_seconds: int | None = 10  # of processor time, each process; None: not limited, as the kernel's clock of a
    # process that is limited goes on in steps of milliseconds
    seconds: float = 60.0  # of the clock, all commands together
    memory: int | None = 1 << 30  # bytes of addresses, each process; None: not limited (a sanitizer maps terabytes)
    resident: int | None = None  # bytes of memory in use, which we watch; only where no process may be started
    threads: int = 256  # and processes, together; where no group can be made, watched as memory in use is
    cores: float = 4.0  # of processors, together, where a process has `cpu_seconds`
    file_bytes: int = 32 << 20  # each file that is written
    printed_bytes: int = 1 << 18  # on the standard output
    message_bytes: int = 1 << 18  # on the standard error
    files_together: int = 512 << 20  # bytes of temporary files beside those of the order, where a size can be set
    open_files: int = 64

    @property
    def together(self) -> GroupLimits:
        """What all processes of an order may use."""
        memory = self.resident or self.memory
        cores = None if self.cpu_seconds is None else self.cores
        return GroupLimits(None if memory is None else _MEMORIES * memory, self.threads, cores)


@dataclass(frozen=True)
class CommandOrder:
    """Files by name, the commands that work on them in turn until one fails, and the names of the files they make."""

    files: Mapping[str, bytes | memoryview]
    commands: Sequence[Sequence[str]]  # each an absolute program, or `./NAME` of a file here, and its arguments
    outputs: Sequence[str] = ()  # a file that is not there afterwards is left out of the result
    environment: Mapping[str, str] = field(default_factory=dict)  # all variables; TMPDIR is the folder
    readable: Sequence[Path] = ()  # files and folders that may be read and executed
    stdin: str = ""  # one of the files; "": nothing can be read there
    has_processes: bool = True  # may be started; False: one command, and threads are all that it may start
    executes_folder: bool = False  # programs in the folder may be executed; files of the order are made executable
    makes_folders: bool = False  # in the folder
    ports: Sequence[int] = ()  # of TCP: a licence server's, to which connections may be made

    def __post_init__(self) -> None:
        if not self.has_processes and len(self.commands) != 1:
            raise ValueError(f"CommandOrder: {len(self.commands)} commands, yet no processes may be started")


@dataclass(frozen=True)
class CommandResult:
    """What the commands left."""

    files: Mapping[str, bytes]  # of the order's outputs, those that are plain files of sensible size
    printed: bytes
    messages: str
    codes: tuple[int, ...]  # exit codes, negative for signals; none where we ended them
    limit: str = ""  # what was broken, in words: `10 s of processor time`
    is_late: bool = False  # that limit is the clock's: perhaps only the machine is busy
    seconds: float = 0.0  # by the clock
    obstacles: Mapping[str, str] = field(default_factory=dict)  # outputs with what lies there instead: `a folder`

    @property
    def is_ended_well(self) -> bool:
        return not self.limit and bool(self.codes) and not any(self.codes)


@dataclass(frozen=True)
class CommandFailure:
    """Something of ours is at fault, and nothing can be said of the files."""

    reason: str


@dataclass
class _Streams:
    """What is heard of a process, and why we stopped hearing."""

    printed: bytearray = field(default_factory=bytearray)
    messages: bytearray = field(default_factory=bytearray)
    limit: str = ""
    is_late: bool = False
    is_shortage: bool = False  # one was killed for memory that others had taken


@dataclass(frozen=True)
class _Ending:
    """How a process ended: its report, and the status and processor time of its leader."""

    report: str
    code: int
    cpu_seconds: float


def find_python() -> tuple[str, list[Path]]:
    """The program of this Python, without the packages of an environment, and what it must be able to read."""
    program = Path(sys.executable).resolve()
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    libraries = (Path(name).resolve() for name in (*places, sysconfig.get_config_var("LIBDIR") or "/lib"))
    return str(program), [*map(Path, SYSTEM), program, *libraries]


def run_commands(order: CommandOrder, limits: CommandLimits) -> CommandResult | CommandFailure:
    """Run them, once nobody has this machine's processor alone. Raises nothing for files, whatever they hold."""
    reason = sandbox.missing()
    if not reason and order.ports and landlock.find_version() < landlock.LIMITS_PORTS:
        reason = f"connections cannot be limited to ports {list(order.ports)}: that came with Linux 6.7"
    if reason:
        return CommandFailure(f"no commands are run on files of others without isolation: {reason}")
    with use_device():
        result = _run_confined(order, limits)
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s", describe_commands(order, result))
    return result


def describe_commands(order: CommandOrder, result: CommandResult | CommandFailure) -> str:
    """The commands as a shell would take them, in a folder with the files, and what came of them."""
    lines = [f"$ {shlex.join(command)}" for command in order.commands]
    lines.append(f"files: {', '.join(f'{name} ({len(data)} bytes)' for name, data in order.files.items()) or 'none'}")
    if isinstance(result, CommandFailure):
        return "\n".join([*lines, f"not run: {result.reason}"])
    ends = f"more than {result.limit}" if result.limit else f"status {', '.join(map(str, result.codes))}"
    produced = ", ".join(f"{name} ({len(result.files[name])} bytes)" for name in order.outputs if name in result.files)
    lines.append(f"ended: {ends}, after {result.seconds:.2f} s; made: {produced or 'nothing that was asked for'}")
    for name, text in (("stdout", result.printed.decode(errors="replace")), ("stderr", result.messages)):
        lines += [f"{name}: {line}" for line in text.splitlines()[-_SHOWN_LINES:]]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Workplace:
    """The folder of an order, where files have a size together if that can be had."""

    folder: Path  # where its processes see it
    files: int = -1  # the descriptor of a file system that they put there; -1: none

    @property
    def place(self) -> Path:
        """Where we see it."""
        return self.folder if self.files < 0 else Path(f"/proc/self/fd/{self.files}")


class _NotMountedError(OSError):
    """A file system that could be made could not be put over the folder."""


_unmountable = threading.Event()  # that has happened: it is not tried again


def _run_confined(order: CommandOrder, limits: CommandLimits) -> CommandResult | CommandFailure:
    begin = time.monotonic()
    size = max(limits.files_together, 2 * limits.file_bytes) + sum(map(len, order.files.values()))
    if _unmountable.is_set() or size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4:
        size = 0
    try:
        folder = Path(tempfile.mkdtemp(prefix="opsmith-commands-")).resolve()
        try:
            with mounts.open_files_of_size(size) if size else contextlib.nullcontext(-1) as files:
                workplace = _Workplace(folder, files)
                _write_files(order, workplace.place)
                streams, ending = _run_process(order, limits, workplace)
                return _read_result(order, limits, streams, ending, workplace, time.monotonic() - begin)
        finally:
            remove_folder(folder)
    except _NotMountedError:
        _unmountable.set()
        return _run_confined(order, limits)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return CommandFailure(f"the disk of temporary files is full: {os.strerror(error.errno)}")
        return CommandFailure(f"the commands could not be started: {error.strerror or error}")


def _write_files(order: CommandOrder, folder: Path) -> None:
    for name, data in order.files.items():
        path = folder / name
        path.write_bytes(data)
        if order.executes_folder:
            path.chmod(0o700)


# -- the process


def _run_process(order: CommandOrder, limits: CommandLimits, workplace: _Workplace) -> tuple[_Streams, _Ending]:
    """Start it, hear it to its end or a limit, and kill all that is left of it."""
    deadline = time.monotonic() + limits.seconds
    ours, theirs = os.pipe()
    with open(ours, "rb", 0) as report, lend_group(limits.together) as group:
        try:
            process = _start_process(order, limits, workplace, theirs, group)
        finally:
            os.close(theirs)
        streams = _Streams()
        try:
            _hear_process(process, streams, limits, group, deadline)
        finally:
            code, cpu_seconds = _end_process(process, streams)
        streams.limit = streams.limit or _find_excess(process, streams, limits, group)
        streams.is_shortage = group is not None and group.was_shortage()
        return streams, _Ending(_read_report(report.read(_REPORT_BYTES), streams), code, cpu_seconds)


def _write_order(
    order: CommandOrder, limits: CommandLimits, workplace: _Workplace, report: int, start: int
) -> ProcessOrder:
    resources = {
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_AS": limits.memory,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_STACK": _STACK,
        "RLIMIT_CORE": 0,
    }
    return ProcessOrder(
        order.commands,
        {**order.environment, "TMPDIR": str(workplace.folder)},
        str(workplace.folder),
        [str(path) for path in order.readable],
        {name: amount for name, amount in resources.items() if amount is not None},
        order.ports,
        report=report,
        files=workplace.files,
        start=start,
        has_processes=order.has_processes,
        executes_folder=order.executes_folder,
        makes_folders=order.makes_folders,
    )


def _start_process(
    order: CommandOrder, limits: CommandLimits, workplace: _Workplace, report: int, group: Group | None
) -> subprocess.Popen[bytes]:
    """Started, and told to begin once it is in its group: moving takes the kernel a while, as importing takes it."""
    variables = {name: os.environ[name] for name in _LOADER_VARIABLES if name in os.environ}
    start, begin = os.pipe()
    try:
        request = _write_order(order, limits, workplace, report, start)
        passed = [report, start, *([workplace.files] if workplace.files >= 0 else [])]
        with open(workplace.place / order.stdin if order.stdin else os.devnull, "rb", 0) as stdin:
            process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-m", "opsmith.running.command_process", *request.write_words()],
                env=variables | {"PYTHONPATH": _PACKAGES, "LC_ALL": "C"},
                cwd=workplace.folder,
                pass_fds=passed,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # a group of its own, which is killed as one
            )
        try:
            if group is not None:
                group.add_process(process.pid)
            os.write(begin, b"!")
        except (ProcessLookupError, BrokenPipeError):
            pass  # it has ended already, which is said later
        except OSError:
            process.kill()
            process.communicate()
            raise
        return process
    finally:
        os.close(start)
        os.close(begin)


def _hear_process(
    process: subprocess.Popen[bytes],
    streams: _Streams,
    limits: CommandLimits,
    group: Group | None,
    deadline: float,
) -> None:
    """Read what it prints until its leader ends or a limit is broken."""
    leader = os.pidfd_open(process.pid)
    watched = math.inf if group is None else _GROUP_WATCH_S
    watched = watched if limits.resident is None else _WATCH_S
    try:
        with _select_streams(process) as selector:
            selector.register(leader, selectors.EVENT_READ)
            while not streams.limit:
                ready = selector.select(min(max(deadline - time.monotonic(), 0), watched))
                if any(key.fd == leader for key, _ in ready):
                    return
                _read_streams(selector, ready, streams)
                streams.limit = _find_excess(process, streams, limits, group) or streams.limit
                if not streams.limit and time.monotonic() >= deadline:
                    streams.limit, streams.is_late = f"{limits.seconds:g} s", True
    finally:
        os.close(leader)


@contextlib.contextmanager
def _select_streams(process: subprocess.Popen[bytes]) -> Iterator[selectors.BaseSelector]:
    """The open ones of its output and messages; a key's data says which it is."""
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("printed", process.stdout), ("messages", process.stderr)):
            assert pipe is not None
            selector.register(pipe.fileno(), selectors.EVENT_READ, name)
        yield selector


def _read_streams(
    selector: selectors.BaseSelector, ready: Sequence[tuple[selectors.SelectorKey, int]], streams: _Streams
) -> None:
    for key, _ in ready:
        chunk = os.read(key.fd, _CHUNK)
        if chunk:
            getattr(streams, key.data).extend(chunk)
        else:
            selector.unregister(key.fd)


def _find_excess(
    process: subprocess.Popen[bytes], streams: _Streams, limits: CommandLimits, group: Group | None
) -> str:
    """The limit that is broken while it runs; what was printed is cut there."""
    if len(streams.printed) > limits.printed_bytes:
        del streams.printed[limits.printed_bytes :]
        return f"{limits.printed_bytes} bytes of output"
    if len(streams.messages) > limits.message_bytes:
        del streams.messages[limits.message_bytes :]
        return f"{limits.message_bytes} bytes of messages"
    if limits.resident is not None and measure_resident(process.pid) > limits.resident:
        return f"{limits.resident} bytes of memory"
    if limits.resident is not None and count_threads(process.pid) > limits.threads:
        return f"{limits.threads} threads"
    excess = group.find_excess() if group is not None else ""
    return group.limits.describe_excess(excess) if group is not None and excess else ""


def _end_process(process: subprocess.Popen[bytes], streams: _Streams) -> tuple[int, float]:
    """Kill the group before its leader is reaped: until then its number cannot be another's.

    The others have ended once nobody holds the pipes: only then is nothing written any longer. Gives the leader's exit
    code and processor time.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with _select_streams(process) as selector:
        while selector.get_map() and (ready := selector.select(_DYING_S)):
            _read_streams(selector, ready, streams if not streams.limit else _Streams())
    for pipe in (process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime


# -- what it left


def _read_report(report: bytes, streams: _Streams) -> str:
    """Its last line: after the news of a replacement only the news that it failed can come."""
    if report.strip():
        return report.decode(errors="replace").strip().splitlines()[-1]
    words = streams.messages.decode(errors="replace").strip()[-200:]
    return f"{UNCONFINED} the process of commands could not be started: {words}"


def _read_result(
    order: CommandOrder,
    limits: CommandLimits,
    streams: _Streams,
    ending: _Ending,
    workplace: _Workplace,
    seconds: float,
) -> CommandResult | CommandFailure:
    """Raises _NotMountedError."""
    if ending.report.startswith(UNMOUNTED):
        raise _NotMountedError
    codes, cpu_seconds = _read_codes(ending)
    if streams.is_shortage:
        return CommandFailure("a command was killed for memory that others had taken; is there memory left?")
    if codes is None and not streams.limit:
        return CommandFailure(ending.report.removeprefix(f"{UNCONFINED} "))
    messages = streams.messages.decode(errors="replace")
    limit = streams.limit or _find_broken_limit(limits, messages, codes or (), cpu_seconds)
    if not limit and any(codes or ()):
        if workplace.files >= 0 and mounts.is_full(workplace.files):
            limit = f"{limits.files_together} bytes in all its files together"
        elif workplace.files < 0 and shutil.disk_usage(workplace.folder).free < limits.file_bytes:
            return CommandFailure(f"the disk of temporary files is nearly full; {limits.file_bytes} bytes are needed")
        elif codes and codes[-1] == -signal.SIGKILL:
            return CommandFailure("a command was killed by somebody else; is there memory left?")
    contents = {name: _read_file(workplace.place / name, limits) for name in order.outputs}
    files = {name: content for name, content in contents.items() if isinstance(content, bytes)}
    obstacles = {name: content for name, content in contents.items() if content and isinstance(content, str)}
    ended_codes = () if streams.limit else codes or ()
    printed = bytes(streams.printed)
    return CommandResult(files, printed, messages, ended_codes, limit, streams.is_late, seconds, obstacles)


def _read_codes(ending: _Ending) -> tuple[tuple[int, ...] | None, float]:
    """The exit codes and the processor time; None: no command was run."""
    if ending.report == REPLACED:
        return (ending.code,), ending.cpu_seconds
    word, *numbers = ending.report.split()
    return (tuple(map(int, numbers[1:])), float(numbers[0])) if word == ENDED else (None, 0.0)


def _find_broken_limit(limits: CommandLimits, messages: str, codes: Sequence[int], cpu_seconds: float) -> str:
    """The limit of the operating system that ended a command; a driver tells of its own child by the signal's name."""
    if not any(codes):
        return ""
    if limits.cpu_seconds is None:
        return f"{limits.file_bytes} bytes in one file" if codes[-1] == -signal.SIGXFSZ else ""
    is_out_of_time = codes[-1] == -signal.SIGKILL and cpu_seconds >= limits.cpu_seconds
    if codes[-1] == -signal.SIGXCPU or is_out_of_time or "CPU time limit exceeded" in messages:
        return f"{limits.cpu_seconds} s of processor time"
    if codes[-1] == -signal.SIGXFSZ or "File size limit exceeded" in messages:
        return f"{limits.file_bytes} bytes in one file"
    return ""


def _read_file(path: Path, limits: CommandLimits) -> bytes | str:
    """The bytes of a plain file of sensible size, or in words what lies there instead: "" is nothing. A link is not
    followed."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
        if status.st_size > limits.file_bytes:
            return f"a file of {status.st_size} bytes"
        return path.read_bytes()
    except OSError as error:
        return "" if isinstance(error, FileNotFoundError) else f"no file that can be read ({error.strerror})"
