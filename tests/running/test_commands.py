"""Commands over files: what they leave, what they may do, and how each limit ends them."""

import os
import socket
import sys
import sysconfig
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.running import landlock, sandbox
from opsmith.running.commands import CommandFailure, CommandLimits, CommandOrder, CommandResult, run_commands

pytestmark = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())

PYTHON = str(Path(sys.executable).resolve())
LIBRARY = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
SYSTEM = [Path(path) for path in ("/lib", "/lib64", "/usr/lib", sysconfig.get_config_var("LIBDIR") or "/lib")]
READABLE = [Path(PYTHON), *LIBRARY, *SYSTEM, Path("/etc/ld.so.cache")]
TIGHT = CommandLimits(cpu_seconds=5, seconds=20, file_bytes=1 << 20, printed_bytes=1 << 16, message_bytes=1 << 16)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where they work: nothing is left there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert os.listdir(folder) == []


def order_script(script: str, *arguments: str, outputs: Sequence[str] = (), has_processes: bool = True) -> CommandOrder:
    """A Python script as the one command."""
    command = [PYTHON, "-S", "-B", "work.py", *arguments]
    files = {"work.py": textwrap.dedent(script).encode()}
    return CommandOrder(files, [command], outputs, {"LC_ALL": "C"}, READABLE, has_processes=has_processes)


def run_script(
    script: str, *arguments: str, has_processes: bool = True, limits: CommandLimits = TIGHT
) -> CommandResult:
    result = run_commands(order_script(script, *arguments, has_processes=has_processes), limits)
    assert isinstance(result, CommandResult), result
    return result


@pytest.mark.parametrize("has_processes", [True, False])
def test_files_go_in_and_come_out(has_processes: bool) -> None:
    script = """
        import sys
        open("y", "wb").write(sys.stdin.buffer.read() + open("x", "rb").read())
        print("printed"); print("said", file=sys.stderr); sys.exit(3)
        """
    order = order_script(script, outputs=["y", "absent"], has_processes=has_processes)
    order = replace(order, files={**order.files, "x": memoryview(b"\0x"), "in": b"first "}, stdin="in")
    result = run_commands(order, TIGHT)
    assert isinstance(result, CommandResult), result
    assert (result.files, result.printed, result.messages) == ({"y": b"first \0x"}, b"printed\n", "said\n")
    assert result.codes == (3,)
    assert not result.limit
    assert not result.is_ended_well


def test_commands_run_in_turn_until_one_fails() -> None:
    order = order_script("import sys; print(sys.argv[1]); sys.exit(sys.argv[1] == '2')")
    commands = [[*order.commands[0], str(number)] for number in (1, 2, 3)]
    result = run_commands(replace(order, commands=commands), TIGHT)
    assert isinstance(result, CommandResult), result
    assert (result.printed, result.codes) == (b"1\n2\n", (0, 1))


@pytest.mark.parametrize("has_processes", [True, False])
@pytest.mark.parametrize(
    ("script", "limits", "limit"),
    [
        ("while True: pass", replace(TIGHT, cpu_seconds=1), "1 s of processor time"),
        (
            "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
            replace(TIGHT, cpu_seconds=1),
            "1 s of processor time",
        ),
        ("import time; time.sleep(60)", replace(TIGHT, seconds=0.5), "0.5 s"),
        ("while True: print('x' * 1000)", TIGHT, "65536 bytes of output"),
        ("import sys\nsys.stderr.write('x' * 65537)", TIGHT, "65536 bytes of messages"),
        (
            "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('y', 'wb').write(bytes(2 << 20))",
            TIGHT,
            "1048576 bytes in one file",
        ),
    ],
)
def test_every_limit_ends_them_and_is_named(
    script: str, limits: CommandLimits, limit: str, has_processes: bool
) -> None:
    result = run_script(script, has_processes=has_processes, limits=limits)
    assert result.limit == limit
    assert result.is_late == (limit == "0.5 s")
    assert len(result.printed) <= limits.printed_bytes


def test_memory_in_use_is_watched_where_addresses_are_not_limited() -> None:
    script = "import mmap, time\nm = mmap.mmap(-1, 1 << 33)\nprint('mapped', flush=True)\nb = bytearray(1 << 28)\ntime.sleep(60)"
    limits = replace(TIGHT, memory=None, resident=128 << 20)
    result = run_script(script, has_processes=False, limits=limits)
    assert (result.printed, result.limit) == (b"mapped\n", "134217728 bytes of memory")


def test_addresses_are_limited() -> None:
    result = run_script("import mmap\nmmap.mmap(-1, 1 << 33)", limits=replace(TIGHT, memory=1 << 30))
    assert "Cannot allocate memory" in result.messages


def test_where_no_process_may_be_started_threads_and_own_signals_still_work() -> None:
    script = """
        import os, signal, threading
        def attempt(name, action):
            try:
                action()
                print(name)
            except OSError:
                pass
        attempt("fork", os.fork)
        attempt("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))
        attempt("parent", lambda: os.kill(os.getppid(), 0))
        attempt("session", os.setsid)
        attempt("outside", lambda: open("/etc/passwd"))
        thread = threading.Thread(target=print, args=("thread",))
        thread.start(); thread.join()
        attempt("own", lambda: os.kill(os.getpid(), 0))
        import sys; sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGABRT)
        """
    result = run_script(script, has_processes=False)
    assert result.printed.decode().split() == ["thread", "own"]
    assert result.codes == (-6,)


DEEP = """
    import os
    for _ in range(1200):  # more than Python calls itself, in a path of 4,800 characters
        os.mkdir("deep")
        os.chdir("deep")
    """
OBSTACLES = """
    import contextlib, os, sys
    make = {
        "folder": lambda: os.makedirs(b"y/inner"),
        "link": lambda: os.symlink("/etc/passwd", "y"),
        "pipe": lambda: os.mkfifo("y"),
        "shut": lambda: os.mkdir("y", 0),
        "odd": lambda: os.makedirs(b"y\\xff/y\\xff"),
    }
    with contextlib.suppress(OSError):
        make[sys.argv[1]]()
    """


def test_a_folder_of_folders_deeper_than_any_path_is_removed() -> None:
    """The fixture looks whether anything stays."""
    result = run_commands(replace(order_script(DEEP), makes_folders=True), TIGHT)
    assert isinstance(result, CommandResult), result
    assert result.is_ended_well, result.messages


@pytest.mark.parametrize(
    ("kind", "words"),
    [("folder", "a folder"), ("shut", "a folder"), ("odd", None), ("link", None), ("pipe", None)],
)
def test_what_lies_where_an_output_belongs_is_named_and_removed(kind: str, words: str | None) -> None:
    """Links and pipes cannot be made at all."""
    result = run_commands(replace(order_script(OBSTACLES, kind, outputs=["y"]), makes_folders=True), TIGHT)
    assert isinstance(result, CommandResult), result
    assert (result.files, result.obstacles.get("y")) == ({}, words)


def test_what_is_left_behind_is_killed(tmp_path: Path) -> None:
    """A process in the background, which holds the streams, keeps nobody waiting."""
    script = """
        import os, time
        if os.fork() == 0:
            time.sleep(30)
        print(os.getpid())
        """
    result = run_script(script)
    assert result.is_ended_well
    assert result.seconds < 20


@pytest.mark.parametrize("makes", [True, False])
def test_folders_are_made_only_where_that_is_allowed(makes: bool) -> None:
    order = order_script("import os; os.mkdir('sub'); open('sub/x', 'w').close(); print('made')")
    result = run_commands(replace(order, makes_folders=makes), TIGHT)
    assert isinstance(result, CommandResult), result
    assert (result.printed == b"made\n") == makes


@pytest.mark.parametrize("executes", [True, False])
def test_a_program_of_the_folder_runs_only_where_that_is_allowed(executes: bool) -> None:
    program = Path("/bin/true").resolve().read_bytes()
    order = CommandOrder({"program": program}, [["./program"]], readable=SYSTEM, executes_folder=executes)
    result = run_commands(replace(order, has_processes=False), TIGHT)
    if executes:
        assert isinstance(result, CommandResult), result
        assert result.is_ended_well
    else:
        assert isinstance(result, CommandFailure)


def test_a_program_that_is_not_there_is_ours() -> None:
    result = run_commands(CommandOrder({}, [["/nowhere/simulator"]]), TIGHT)
    assert isinstance(result, CommandFailure)
    assert "/nowhere/simulator" in result.reason


CONNECT = """
    import socket, sys
    def attempt(name, action):
        try:
            action()
            print(name)
        except OSError:
            pass
    port, other = map(int, sys.argv[1:])
    attempt("licence", lambda: socket.create_connection(("127.0.0.1", port)).sendall(b"hello"))
    attempt("other", lambda: socket.create_connection(("127.0.0.1", other)))
    attempt("datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    attempt("local", lambda: socket.socket(socket.AF_UNIX))
    attempt("fast", lambda: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", other)))
    """


@pytest.mark.skipif(landlock.find_version() < landlock.LIMITS_PORTS, reason="Landlock before version 4 has no ports")
@pytest.mark.parametrize("has_processes", [True, False])
def test_only_the_licence_servers_port_can_be_reached(has_processes: bool) -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as licence,
        closing(socket.create_server(("127.0.0.1", 0))) as other,
    ):
        heard: list[bytes] = []
        thread = threading.Thread(target=lambda: heard.append(licence.accept()[0].recv(5)))
        thread.start()
        ports = [server.getsockname()[1] for server in (licence, other)]
        order = order_script(CONNECT, *map(str, ports), has_processes=has_processes)
        result = run_commands(replace(order, ports=ports[:1]), TIGHT)
        thread.join()
    assert isinstance(result, CommandResult), result
    assert result.printed.split() == [b"licence"], result.messages
    assert heard == [b"hello"]


def test_without_ports_there_is_no_network() -> None:
    result = run_script(CONNECT, "1", "2")
    assert result.printed == b""


def test_nothing_is_run_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "the kernel offers no Landlock")
    result = run_commands(order_script("print()"), TIGHT)
    assert isinstance(result, CommandFailure)
    assert "no Landlock" in result.reason
