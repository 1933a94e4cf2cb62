"""One compile: what it may do, how it ends, and what is left of it, for sources that try everything."""

import contextlib
import ctypes
import errno
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from opsmith.running import compiler, sandbox, toolchain
from opsmith.running.command_process import ProcessOrder
from opsmith.running.commands import CommandLimits
from opsmith.running.compiler import (
    Artefact,
    CompileFailure,
    CompileOrder,
    CompileRefusal,
    CompileResult,
    run_compiler,
)
from opsmith.running.toolchain import NO_COMPILER, find_toolchain

needs_isolation = pytest.mark.skipif(bool(sandbox.missing()), reason=sandbox.missing())
needs_gcc = pytest.mark.skipif(find_toolchain() is None, reason=NO_COMPILER)

RIGHT = "#include <math.h>\nfloat twice(float x) { return sqrtf(x * x) * 2; }\n"
TIGHT = CommandLimits(cpu_seconds=2, memory=256 << 20, file_bytes=4 << 20)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where compiles work: nothing is left there, whatever was compiled, and no process that works there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert os.listdir(folder) == []
    assert not [cwd for cwd in list_working_folders() if cwd.startswith(str(folder))]


def list_working_folders() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield os.readlink(process / "cwd")


def compile_text(source: str, limits: CommandLimits = TIGHT, *options: str) -> CompileResult:
    link = ("k.o", "-shared", "-o", "k.so", "-lm")
    order = CompileOrder({"k.c": source.encode()}, (("-O1", "-fPIC", *options, "-c", "k.c", "-o", "k.o"), link), "k.so")
    return run_compiler(order, limits)


def refuse(source: str, limits: CommandLimits = TIGHT) -> CompileRefusal:
    """The refusal of a source; after it the next compile is right."""
    result = compile_text(source, limits)
    assert isinstance(result, CompileRefusal), result
    assert isinstance(compile_text(RIGHT), Artefact)
    return result


@needs_gcc
@needs_isolation
def test_a_right_source_becomes_a_library(tmp_path: Path) -> None:
    result = compile_text(RIGHT)
    assert isinstance(result, Artefact), result
    (tmp_path / "k.so").write_bytes(result.data)
    twice = ctypes.CDLL(str(tmp_path / "k.so")).twice
    twice.argtypes, twice.restype = [ctypes.c_float], ctypes.c_float
    assert twice(3.0) == 6.0


@needs_gcc
@needs_isolation
def test_equal_sources_become_equal_bytes() -> None:
    assert compile_text(RIGHT) == compile_text(RIGHT)


@needs_gcc
@needs_isolation
def test_a_wrong_source_is_refused_in_the_words_of_the_compiler() -> None:
    refusal = refuse("float f(void) { return undeclared; }")
    assert "'undeclared' undeclared" in refusal.messages
    assert not refusal.limit


@needs_gcc
@needs_isolation
@pytest.mark.parametrize(
    "source",
    [
        '#include "{secret}"\n',
        '#define PLACE "{secret}"\n#include PLACE\n',
        '__asm__(".incbin \\"{secret}\\"");\n',
        '__asm__(".include \\"{secret}\\"");\n',
        '#include_next "{secret}"\n',
        '#include "/etc/passwd"\n',
        '#include "/proc/self/environ"\n',
        '#include "../../secret.h"\n',
    ],
)
def test_nothing_outside_is_read(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("#error TOP-SECRET\n")
    monkeypatch.setenv("OPSMITH_SECRET", "TOP-SECRET")
    messages = refuse(source.replace("{secret}", str(secret))).messages
    assert "TOP-SECRET" not in messages
    assert "root:" not in messages


@needs_gcc
@needs_isolation
def test_nothing_is_known_of_the_users_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "math.h").write_text("#error another header\n")
    for name in ("CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH", "LIBRARY_PATH", "DEPENDENCIES_OUTPUT"):
        monkeypatch.setenv(name, str(tmp_path))
    assert isinstance(compile_text(RIGHT), Artefact)


@needs_gcc
@needs_isolation
@pytest.mark.parametrize(
    ("source", "limit"),
    [
        pytest.param("char big[2000000000] = {1};", "4194304 bytes in one file", id="array"),
        pytest.param('__asm__(".fill 2000000000, 1, 1");', "4194304 bytes in one file", id="fill"),
        pytest.param(
            "".join(f"#define M{n} M{n - 1} M{n - 1} M{n - 1} M{n - 1}\n" for n in range(1, 30)).replace("M0", "x+x")
            + "int x; int f(void) { return M29 x; }",
            "",
            id="macros",
        ),
        pytest.param('#include "k.c"\n#include "k.c"\n', "", id="itself"),
        pytest.param(f"int f(void) {{ return {'(' * 200_000}1{')' * 200_000}; }}", "", id="brackets"),
        pytest.param("int f(void) { return " + "-~" * 200_000 + "1; }", "", id="signs"),
        pytest.param("int f(void) " + "{" * 100_000 + "}" * 100_000, "", id="blocks"),
        pytest.param(
            "#define F(x) F2(x, x)\n#define F2(x, y) F(x) F(y)\nint a = F(F(F(F(F(F(1))))));", "", id="mutual"
        ),
        pytest.param("x" * (1 << 21), "1048576 bytes of source", id="large"),
        pytest.param("int a" + "[2]" * 100_000 + ";", "", id="dims"),
        pytest.param("#error " + "x" * 900_000, "262144 bytes of messages", id="loud"),
    ],
)
def test_what_is_endless_or_huge_is_refused(source: str, limit: str) -> None:
    refusal = refuse(source)
    assert refusal.limit == limit or not limit


@needs_gcc
@needs_isolation
def test_the_processor_time_is_limited() -> None:
    """Each file includes itself twice: 2^200 of them."""
    source = "#if __INCLUDE_LEVEL__ < 190\n" + '#include "k.c"\n' * 2 + "#endif\n"
    assert refuse(source, replace(TIGHT, cpu_seconds=1)).limit == "1 s of processor time"


@needs_gcc
@needs_isolation
def test_the_deadline_is_not_charged_to_the_source() -> None:
    source = "#if __INCLUDE_LEVEL__ < 190\n" + '#include "k.c"\n' * 2 + "#endif\n"
    result = compile_text(source, replace(TIGHT, cpu_seconds=60, seconds=0.7))
    assert isinstance(result, CompileFailure)
    assert "0.7 s" in result.reason


@needs_gcc
@needs_isolation
def test_a_full_disk_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prefix: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", fail)
    result = compile_text(RIGHT)
    assert isinstance(result, CompileFailure)
    assert "disk" in result.reason


@needs_gcc
@needs_isolation
def test_a_disk_without_room_for_the_artefact_is_ours() -> None:
    result = compile_text("int f( {", replace(TIGHT, file_bytes=1 << 55))
    assert isinstance(result, CompileFailure)
    assert "nearly full" in result.reason


def test_no_compiler_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "find_toolchain", lambda name: None)
    assert compile_text(RIGHT) == CompileFailure(NO_COMPILER)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert toolchain.find_toolchain.__wrapped__() is None


@needs_gcc
def test_nothing_is_compiled_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "missing", lambda: "the kernel offers no Landlock")
    result = compile_text(RIGHT)
    assert isinstance(result, CompileFailure)
    assert "no Landlock" in result.reason


@needs_gcc
@needs_isolation
def test_a_toolchain_that_cannot_read_its_headers_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = find_toolchain()
    assert whole is not None
    readable = tuple(path for path in whole.readable if "include" not in str(path))
    monkeypatch.setattr(compiler, "find_toolchain", lambda name: replace(whole, readable=readable))
    result = compile_text("#include <math.h>\nint f( {")
    assert isinstance(result, CompileFailure)
    assert "refuses a right program too" in result.reason


@needs_gcc
@needs_isolation
def test_several_at_once() -> None:
    sources = [RIGHT, "int f( {", "char big[2000000000] = {1};", RIGHT] * 2
    with ThreadPoolExecutor(4) as pool:
        kinds = [type(result) for result in pool.map(compile_text, sources)]
    assert kinds == [Artefact, CompileRefusal, CompileRefusal, Artefact] * 2


# -- what a compiler that was taken over could do


ATTEMPTS = """
import os, signal, socket, sys
def attempt(name, action):
    try:
        action()
        results.append(name)
    except OSError:
        pass
results = []
secret, folder = sys.argv[1:]
attempt("read", lambda: open(secret).read())
attempt("write", lambda: open(secret, "a"))
attempt("truncate", lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC))
attempt("remove", lambda: os.unlink(secret))
attempt("rename", lambda: os.rename(secret, folder + "/mine"))
attempt("link", lambda: os.link(secret, folder + "/linked"))
attempt("symlink", lambda: os.symlink(secret, folder + "/k.so"))
attempt("folder", lambda: os.mkdir(folder + "/sub"))
attempt("pipe", lambda: os.mkfifo(folder + "/pipe"))
attempt("list", lambda: os.listdir("/"))
attempt("processes", lambda: os.listdir("/proc"))
attempt("socket", lambda: socket.socket())
attempt("pair", lambda: socket.socketpair())
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("signal all", lambda: os.kill(-1, 0))
attempt("session", lambda: os.setsid())
attempt("group", lambda: os.setpgid(0, 0))
attempt("mode", lambda: os.chmod(folder, 0o777))
attempt("program", lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]))
before = len(results)
pid = os.fork()
if pid == 0:
    attempt("child's session", os.setsid)
    attempt("child's read", lambda: open(secret).read())
    os._exit(len(results) - before)
results.append("fork") if os.waitpid(pid, 0)[1] == 0 else results.append("child")
open(folder + "/own", "w").write("x")
os.unlink(folder + "/own")
print(" ".join(results), file=sys.stderr)
"""


@needs_isolation
def test_a_compiler_that_was_taken_over_is_confined(tmp_path: Path, temporary: Path) -> None:
    """Python in its place, with all rights of a compiler: only what it needs succeeds."""
    secret = tmp_path / "secret"
    secret.write_text("TOP-SECRET")
    folder = temporary / "work"
    folder.mkdir()
    python = Path(sys.executable).resolve()
    library = [str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib")]
    result = run_order([str(python), "-S", "-c", ATTEMPTS, str(secret), str(folder)], folder, [str(python), *library])
    folder.rmdir()
    assert result.split() == ["fork"]
    assert secret.read_text() == "TOP-SECRET"


def run_order(command: list[str], folder: Path, readable: list[str]) -> str:
    """What a command prints that is run as a compiler."""
    ours, theirs = os.pipe()
    system = ["/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", sysconfig.get_config_var("LIBDIR") or "/lib"]
    limits = {"RLIMIT_CPU": 20}
    order = ProcessOrder([command], {"LC_ALL": "C"}, str(folder), [*readable, *system], limits, report=theirs)
    process = subprocess.run(
        [sys.executable, "-S", "-P", "-m", "opsmith.running.command_process", *order.write_words()],
        env={"PYTHONPATH": str(Path(compiler.__file__).parents[2])},
        pass_fds=[theirs],
        capture_output=True,
        text=True,
        check=True,
    )
    os.close(theirs)
    with open(ours, "rb") as report:
        assert report.read().split()[::2] == [b"ended", b"0"], process.stderr
    return process.stderr


def test_nothing_of_it_is_loaded_until_it_is_asked_for() -> None:
    code = (
        "import sys, opsmith, opsmith.cli, opsmith.api, opsmith.learn.loop, opsmith.running.forks\n"
        "opsmith.verify\n"
        "parts = ('opsmith.targets.c.', 'opsmith.targets.native', 'opsmith.running.com', 'opsmith.running.toolchain',"
        " 'tree_sitter')\n"
        "print([name for name in sys.modules if name.startswith(parts)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
