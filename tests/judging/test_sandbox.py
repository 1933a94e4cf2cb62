"""Code of a task's author in a worker: what it tries has no effect, and touches no verdict but its own task's."""

import os
import socket

import pytest
import torch
from harmful import RIGHT, SMALL, WRONG, needs_isolation, saying, step_task

from opsmith.api import load_task
from opsmith.judging.pool import Pool
from opsmith.records import Boundary, Outcome, Stage
from opsmith.running import syscalls

pytestmark = needs_isolation


@pytest.fixture(scope="module")
def pool():
    with Pool(1, sandbox=SMALL) as shared:
        assert shared.verify(step_task(), RIGHT).passed
        yield shared


def at_fault(verdict):
    return (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.TASK)


def attempts(code):
    """The code in each place where an author can put some."""
    return [step_task(**{"global": code}), step_task(body=code), step_task(expected=code)]


def test_a_file_cannot_be_written(pool, tmp_path):
    made, old = tmp_path / "made", tmp_path / "old"
    old.write_text("kept")
    for task in attempts(f"open({str(made)!r}, 'w')") + attempts(f"import os; os.remove({str(old)!r})"):
        verdict = pool.verify(task, RIGHT)
        assert at_fault(verdict)
        assert "PermissionError" in verdict.message
    assert not made.exists()
    assert old.read_text() == "kept"


def test_a_file_of_the_user_cannot_be_read(pool, tmp_path):
    (tmp_path / "canary").write_text("secret")
    for path in (tmp_path / "canary", os.path.expanduser("~/.bashrc"), "/etc/passwd", "/proc/self/environ", __file__):
        verdict = pool.verify(saying(f"found = open({str(path)!r}, 'rb').read()"), RIGHT)
        assert at_fault(verdict)
        assert "ValueError: found" not in verdict.message
        assert "PermissionError" in verdict.message or not os.path.exists(path)


def test_what_is_imported_can_be_read(pool):
    code = "import antigravity, numpy.polynomial, torch.distributions\nfound = open(torch.__file__).read(3)"
    assert (
        'found \'"""\'' in pool.verify(saying(f"import webbrowser\n{code}".replace("antigravity, ", "")), RIGHT).message
    )


def test_no_server_is_reached(pool):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = server.getsockname()
        for task in attempts(f"import socket; socket.create_connection({address}, timeout=1)"):
            verdict = pool.verify(task, RIGHT)
            assert at_fault(verdict)
            assert "PermissionError" in verdict.message
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.fork()", "PermissionError"),
        ("os.posix_spawn('/bin/true', ['true'], {})", "PermissionError"),
        ("os.execv('/bin/true', ['true'])", "PermissionError"),
        ("os.kill(os.getppid(), 9)", "PermissionError"),
        ("os.kill(-1, 9)", "PermissionError"),
        ("os.killpg(os.getpgid(os.getppid()), 9)", "PermissionError"),
        ("signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)", "PermissionError"),
        ("fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", "PermissionError"),
        ("os.chmod('/tmp', 0o777)", "PermissionError"),
        ("os.setuid(1)", "PermissionError"),
        ("os.unshare(0)" if hasattr(os, "unshare") else "os.setsid()", "PermissionError"),
        ("os.sched_setaffinity(os.getppid(), [0])", "PermissionError"),
        ("resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "Error"),
        ("resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1, 1))", "PermissionError"),
        ("os.memfd_create('x')", "PermissionError"),
        ("mmap.mmap(-1, 100 << 30)", "Cannot allocate memory"),
    ],
)
def test_what_an_author_tries_is_the_tasks_fault(pool, code, words):
    imports = "import os, signal, fcntl, resource, mmap, torch\n"
    nursery = pool._nursery._process.pid
    verdict = pool.verify(saying(f"{imports}found = {code}"), RIGHT)
    assert at_fault(verdict)
    assert words in verdict.message
    assert "ValueError: found" not in verdict.message
    assert pool.verify(step_task(), RIGHT).passed
    assert pool._nursery._process.pid == nursery


def test_all_system_calls_of_the_tables_are_refused(pool):
    tables = syscalls.NETWORK, syscalls.PROCESSES, syscalls.FILES, syscalls.SHARED, syscalls.SYSTEM
    calls = {name: number for table in tables for name, number in table.items()}
    code = f"""
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        found = [name for name, number in {calls!r}.items() if libc.syscall(number, *[-1] * 6) != -1 or ctypes.get_errno() != 1]
        found += [] if libc.syscall({syscalls.UNKNOWN}, 0) == -1 and ctypes.get_errno() == errno.ENOSYS else ["unknown"]
    """
    assert "found []" in pool.verify(saying(code), RIGHT).message


def test_death_with_the_parent_cannot_be_called_off(pool):
    code = "import ctypes\nfound = [ctypes.CDLL(None).prctl(option, 0, 0, 0, 0) for option in (1, 4)]"
    assert "found [-1, 0]" in pool.verify(saying(code), RIGHT).message  # PR_SET_DUMPABLE is let through


def test_a_worker_keeps_its_socket_and_arena_beside_the_null_device(pool):
    code = """
        import os, stat
        found = []
        for fd in range(256):
            try:
                found.append(stat.S_IFMT(os.fstat(fd).st_mode))
            except OSError:
                pass
        found = [found[:3] == [stat.S_IFCHR] * 3, sorted(found[3:]) == [stat.S_IFREG, stat.S_IFSOCK]]
    """
    assert "found [True, True]" in pool.verify(saying(code), RIGHT).message


def test_threads_work_and_a_worker_may_signal_itself(pool):
    code = """
        import os, threading
        found = []
        thread = threading.Thread(target=found.append, args=(1,))
        thread.start()
        thread.join()
        os.kill(os.getpid(), 0)
    """
    assert "found [1]" in pool.verify(saying(code), RIGHT).message


@pytest.mark.parametrize(
    "body", ["held = [torch.ones(1 << 20) for _ in range(10 ** 6)]", "bytearray(100 << 30)", "torch.zeros(100 << 30)"]
)
def test_lack_of_memory_is_held_against_nobody(pool, body):
    verdict = pool.verify(step_task(body=body), RIGHT)
    assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
    assert pool.verify(step_task(), RIGHT).passed


HALF_AN_ANSWER = """
import os, time
for fd in range(3, 64):
    try:
        os.write(fd, bytes([0, 0, 0, 9]) + b'{')
    except OSError:
        pass
time.sleep(1000)
"""


def test_code_that_never_ends_leaves_the_candidate_unjudged(monkeypatch):
    monkeypatch.setattr("opsmith.judging.limits.PREPARE_S", 1.0)
    endless = ["import time; time.sleep(1000)", "\nwhile True:\n  pass", HALF_AN_ANSWER]
    with Pool(3, deadline=1.0, sandbox=SMALL) as pool:
        for future in [pool.submit(step_task(**{"global": code}), RIGHT) for code in endless]:
            verdict = future.result(timeout=30)
            assert (verdict.outcome, verdict.charged_to) == (Outcome.UNJUDGED, Boundary.SANDBOX)
            assert "within 1 s" in verdict.message
        assert pool.verify(load_task("attn_0"), "return E0").stage == Stage("TYPE")


FORGING = """
import opsmith.judging.worker as worker
from opsmith.records import to_json, Candidate, Verdict, Stage, Outcome, Boundary
def forged(task, request):
    name = Candidate(request["source"]).id
    passed = to_json(Verdict(name, Stage.MATCH, Outcome.PASSED, Boundary.CANDIDATE))
    return {answer}
worker._ANSWERS["verify"] = forged
torch.equal = torch.allclose = lambda *_, **__: True
"""


def test_what_an_author_breaks_breaks_only_verdicts_on_his_own_task(pool):
    forging = step_task("forging_0", **{"global": FORGING.format(answer="passed")})
    pool.verify(forging, RIGHT)
    assert pool.verify(forging, WRONG).passed  # his own loss
    bundled = load_task("bmm_0")
    for task, wrong in ((step_task(), WRONG), (step_task("other_0"), WRONG), (bundled, "return E0")):
        assert pool.verify(task, wrong).outcome is Outcome.REFUSED
    assert pool.verify(step_task(), RIGHT).passed
    assert pool.verify(bundled, bundled.impl).passed


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "None",
        "dict()",
        "passed | dict(candidate='of another')",
        "passed | dict(trials='many')",
        "passed | dict(max_abs_error=[1])",
        "passed | dict(warnings=[1])",
        "passed | dict(stage='PARSE')",
        "passed | dict(errors=[dict(kind=1, where='', given='', expected='')])",
    ],
)
def test_an_answer_that_is_no_verdict_on_the_candidate_counts_for_nothing(pool, answer):
    task = step_task(**{"global": FORGING.format(answer=answer)})
    pool.verify(task, WRONG)  # from now on its worker forges; a fresh one has not run the author's code yet
    assert pool.verify(task, RIGHT).passed
    assert pool.verify(task, WRONG).outcome is Outcome.REFUSED


def test_bundled_tasks_share_a_worker_and_others_do_not(pool):
    own = step_task("attn_0"), step_task("attn_0", body="1")  # their name alone makes no bundled task of them
    for task in (load_task("attn_0"), *own, load_task("bmm_0"), own[0]):
        pool.verify(task, "return E0")
    owners = [owner for owner, _ in pool._idle._workers]
    assert [owners.count(owner) for owner in ("", *(task.digest for task in own))] == [1, 1, 1]


def test_a_confined_worker_computes_with_the_processors_vector_instructions(pool):
    here = torch.backends.cpu.get_cpu_capability()
    body = f"assert torch.backends.cpu.get_cpu_capability() == {here!r}"
    verdict = pool.verify(step_task(body=body), RIGHT)
    assert verdict.passed, verdict.message
