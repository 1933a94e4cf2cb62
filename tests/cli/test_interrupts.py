"""Ctrl-C and kill: a message, the exit code of a shell, and no process left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="the providers extra is not installed")
from models.servers import OpenAIServer
from terminals import hears_hangup

TESTS = Path(__file__).parents[1]


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from opsmith.cli import main; main()", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS / "judging")])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_until(what) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def descendants(pid: int) -> set[int]:
    """The processes below `pid`, from /proc."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if fields[0] != "Z":
            parents[int(name)] = int(fields[1])
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGHUP, marks=hears_hangup)])
def test_ctrl_c_and_a_closed_terminal_end_verify_and_its_workers(tmp_path, sent):
    (tmp_path / "endless_0.yaml").write_text("target: scripted_target:SCRIPTED\n")
    (tmp_path / "program.txt").write_text("sleep")
    process = start("verify", tmp_path / "endless_0.yaml", "--impl", tmp_path / "program.txt")
    wait_until(lambda: len(descendants(process.pid)) == 2)
    below = descendants(process.pid)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=100)
    assert (process.returncode, errors) == (130, "opsmith: interrupted\n")
    wait_until(lambda: not alive(below))


@needs_proc
def test_ctrl_c_ends_a_run_in_good_order_and_kill_leaves_no_process(tasks):
    def answer(body):
        time.sleep(0.05)
        return "impl: |\n  x\n"

    with OpenAIServer(answer) as server:
        model = ["--model", "openai/any", "--base-url", server.url, "--tasks", tasks, "--samples", 200]
        command = ["run", *model, "--concurrency", 2, "--out", tasks / "runs"]
        process = start(*command)
        wait_until(lambda: server.count > 5)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=100)
        assert process.returncode == 130
        assert "(interrupted)" in output
        assert "the same command goes on from here" in errors

        asked = server.count
        process = start(*command)
        wait_until(lambda: server.count > asked + 5 and len(descendants(process.pid)) > 1)
        below = descendants(process.pid)
        process.kill()
        process.communicate(timeout=100)
        wait_until(lambda: not alive(below))
